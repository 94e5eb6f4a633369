"""An evaluation's frozen plan: what is asked, where, and how it is scored. Never changed after submit."""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from backend.core import configs
from backend.core.configs import RetrievalConfig
from backend.core.question_sets.full_form import from_full_form
from backend.core.types import Level, Question
from backend.models import Evaluation, Run
from backend.models import Question as QuestionRow
from backend.search.types import IndexRef, SearchScope
from backend.services.answer_requests import AnswerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderPlan:
    """An embedder that questions are sent to: its spec, and the query prefix if a base overrides the model's own."""

    spec: str
    query_prefix: str | None = None

    @property
    def key(self) -> str:
        return self.spec if self.query_prefix is None else f"{self.spec}|{self.query_prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    run_id: UUID
    config: RetrievalConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`scope` names the Indexes that were live at submit, and those that configurations name."""

    evaluation_id: UUID
    workspace_id: UUID
    version_id: UUID | None
    runs: tuple[PlannedRun, ...]
    scope: SearchScope
    level: Level
    threshold: float
    top_k: int
    keys: tuple[str, ...]
    primary_metric: str
    n_questions: int
    use_cache: bool
    answers: AnswerPlan | None = None

    def index_ids(self) -> dict[UUID, list[UUID]]:
        """The Indexes that each run reads, by the run's id."""
        return {
            planned.run_id: [index.id for index in self.scope.indexes_for(planned.config.index)]
            for planned in self.runs
        }

    def embedders(self) -> dict[str, EmbedderPlan]:
        """The distinct embedders that some configuration needs, by key."""
        found: dict[str, EmbedderPlan] = {}
        for planned in self.runs:
            found |= self.embedders_of(planned)
        return found

    def embedders_of(self, planned: PlannedRun) -> dict[str, EmbedderPlan]:
        """Those that one run needs."""
        if not planned.config.needs_vector:
            return {}
        indexes = self.scope.indexes_for(planned.config.index)
        return {(embedder := embedder_of(index)).key: embedder for index in indexes if index.embedder}


def embedder_of(index: IndexRef) -> EmbedderPlan:
    return EmbedderPlan(spec=index.embedder, query_prefix=index.query_prefix)


def load(evaluation_id: UUID, *, epoch: int | None = None) -> Plan:
    """The plan of an evaluation, cached by process. Within an epoch it never changes; between two of them a run may
    have been deleted. `epoch`: the present one, from whoever knows it (a lease is of no other); else it is read."""
    if epoch is not None:
        return _load(evaluation_id, epoch)
    return _load(evaluation_id, Evaluation.objects.values_list("epoch", flat=True).get(id=evaluation_id))


@lru_cache(maxsize=64)
def _load(evaluation_id: UUID, epoch: int) -> Plan:  # noqa: ARG001  the epoch is what makes another entry
    evaluation = Evaluation.objects.only(
        "id", "workspace_id", "question_set_version_id", "plan", "n_questions", "use_cache"
    ).get(id=evaluation_id)
    plan = evaluation.plan
    runs = Run.objects.filter(evaluation_id=evaluation_id).order_by("ordinal").values_list("id", "config")
    return Plan(
        evaluation_id=evaluation_id,
        workspace_id=evaluation.workspace_id,
        version_id=evaluation.question_set_version_id,
        runs=tuple(PlannedRun(run_id=run_id, config=configs.from_stored(config)) for run_id, config in runs),
        scope=SearchScope.from_json(plan["scope"]),
        level=Level(plan["level"]),
        threshold=float(plan["threshold"]),
        top_k=int(plan["top_k"]),
        keys=tuple(plan["keys"]),
        primary_metric=plan["primary_metric"],
        n_questions=evaluation.n_questions,
        use_cache=evaluation.use_cache,
        answers=AnswerPlan.from_json(plan.get("answers")),
    )


def questions(version_id: UUID | None, ordinals: list[int]) -> dict[int, Question]:
    """Some questions of a version, by ordinal."""
    rows = QuestionRow.objects.filter(version_id=version_id, ordinal__in=ordinals)
    return {row.ordinal: to_question(row) for row in rows}


def to_question(row: QuestionRow) -> Question:
    return from_full_form(
        {
            "id": row.key,
            "question": row.text,
            "expect": row.expect,
            "tags": row.tags,
            "note": row.note,
            "must_pass": row.must_pass,
            "unanswerable": row.unanswerable,
            "reference_answer": row.reference_answer,
            "generated": row.generated,
            "source": row.source,
            "collection": row.collection,
            "line": row.line,
        }
    )
