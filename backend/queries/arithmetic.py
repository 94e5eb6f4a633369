"""How a metric of one question of a run came about, term by term."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.core import arithmetic
from backend.core.arithmetic import Arithmetic
from backend.core.errors import NotFoundError
from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey
from backend.core.types import Level
from backend.models import Question, Result, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """`arithmetic` None: the question ended without a judged list, as `outcome` says. `paths`: by key of a term.
    `excluded` says why a question with a value is in no mean."""

    ordinal: int
    key: str
    question: str | None
    outcome: str
    metric: str
    formula: str
    arithmetic: Arithmetic | None
    grades: tuple[float, ...]
    threshold: float | None
    paths: Mapping[str, str]
    excluded: str = ""


def explain(run: Run, question: str, *, metric: str = "") -> Explained:
    """A question by its key, else by its ordinal; the primary metric unless one is named. Raises NotFoundError,
    ValidationError for a metric that is none or looks deeper than the run."""
    key = MetricKey.parse(metric or run.primary_metric, top_k=run.top_k)
    return _explained(run, _result(run, question), [key])[0]


def explain_each(run: Run, ordinal: int, *, metrics: Sequence[str]) -> list[Explained]:
    """Several metrics of the question at this place; two queries. Raises as `explain` does."""
    result = Result.objects.filter(run=run, ordinal=ordinal).first()
    if result is None:
        raise NotFoundError("question in this run", ordinal)
    return _explained(run, result, [MetricKey.parse(metric, top_k=run.top_k) for metric in metrics])


def _explained(run: Run, result: Result, keys: Sequence[MetricKey]) -> list[Explained]:
    asked = Question.objects.filter(version=run.evaluation.question_set_version_id, ordinal=result.ordinal).first()
    judged = None if result.judged is None else JudgedList.from_json(result.judged)
    names = "d" if run.level == Level.DOCUMENT else "c"
    paths = {str(entry[names]): str(entry["p"]) for entry in reversed(result.ranking)}
    return [
        Explained(
            ordinal=result.ordinal,
            key=result.question_key,
            question=None if asked is None else asked.text,
            outcome=result.outcome,
            metric=str(key),
            formula=arithmetic.FORMULAS[key.name],
            arithmetic=None if judged is None else arithmetic.explain(key, judged),
            grades=() if judged is None else judged.grades,
            threshold=None if judged is None else judged.threshold,
            paths=paths,
            excluded=_excluded(asked, judged),
        )
        for key in keys
    ]


def _result(run: Run, question: str) -> Result:
    rows = Result.objects.filter(run=run)
    found = rows.filter(question_key=question).first()
    if found is None and question.isascii() and question.isdigit() and len(question) < 9:
        found = rows.filter(ordinal=int(question)).first()
    if found is None:
        raise NotFoundError("question in this run", question)
    return found


def _excluded(asked: Question | None, judged: JudgedList | None) -> str:
    if asked is not None and asked.unanswerable:
        return "It is marked unanswerable, so it is in no mean."
    if judged is not None and not judged.n_relevant:
        return "Nothing relevant is expected, so there is no value."
    return ""
