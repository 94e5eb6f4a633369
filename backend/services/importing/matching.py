"""Which question a ranking is for, and which of a set's names a TREC file may have written otherwise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backend.core.errors import ErrorCode, Fault, QuestionSetError, ValidationError
from backend.core.folding import fold
from backend.core.imported_rankings import Ranking
from backend.core.types import Question

MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Rankings by the key of their question, and what the others call theirs."""

    by_key: Mapping[str, Ranking]
    unknown: tuple[str, ...]


def match(rankings: Iterable[Ranking], asked: Sequence[Question]) -> Matched:
    """Rankings to questions: by key, else by text, else by folded text where that is one question's. TREC files have no
    white space in a key, so `_` may stand for it. Raises QuestionSetError for a question with two rankings."""
    names: list[dict[str, str | None]] = [{} for _ in range(4)]
    for question in asked:
        spelled = (question.key, question.text, fold(question.text), "_".join(question.key.split()))
        for known, name in zip(names, spelled, strict=True):
            known[name] = None if name in known else question.key
    found: dict[str, Ranking] = {}
    unknown, faults = [], []
    for ranking in rankings:
        wanted = (ranking.question, ranking.question, fold(ranking.question), ranking.question)
        key = next((key for known, name in zip(names, wanted, strict=True) if (key := known.get(name))), None)
        if key is None:
            unknown.append(ranking.question)
        elif key in found:
            place = ranking.place
            faults.append(
                Fault(
                    code=ErrorCode.EVAL_FILE,
                    message=f"{place}: the question {key!r} has a ranking already, at {found[key].place}",
                    line=place.line,
                    field=place.path or None,
                )
            )
        else:
            found[key] = ranking
    if faults:
        raise QuestionSetError(faults)
    if not found:
        shown = ", ".join(repr(one[:60]) for one in unknown[:MOST_NAMED])
        keys = ", ".join(repr(one.key[:60]) for one in asked[:MOST_NAMED])
        message = f"No ranking is for a question of this set: the file has {shown}; the set has {keys}."
        raise ValidationError(
            message, field="file", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="file")]
        )
    return Matched(by_key=found, unknown=tuple(unknown))


def labels(asked: Iterable[Question]) -> dict[str, str]:
    """The paths and passages that the set names, by how they are written and, where that is one alone, by how a TREC
    file must write them."""
    named = dict.fromkeys(
        name
        for question in asked
        for one in question.expectations
        for each in one.any_of
        for name in (each.path, each.passage)
        if name
    )
    written: dict[str, str] = {}
    twice: set[str] = set()
    for name in named:
        token = "_".join(name.split())
        twice.update({token} if token in written else ())
        written[token] = name
    return {token: name for token, name in written.items() if token not in twice} | {name: name for name in named}
