"""One question of one run as its page shows it: what each stage ranked where, its text, and its past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from backend.core.diagnosis import FINAL
from backend.core.errors import NotFoundError
from backend.core.types import GOOD_OUTCOMES
from backend.models import Chunk, Question, Result, Run
from backend.queries import runs
from backend.queries.lookups import as_uuid

# In the order a search goes through them; what an engine of somebody else's returned has one of its own.
STAGES = ("meaning", "words", "engine", "fused", "reranker", FINAL)
MOST_PAST = 30
# The greatest number of the column.
_HIGHEST = 2_147_483_647
_PAST = """
SELECT r.id, r.created_at, r.label, r.name, x.outcome, x.first_rank, r.top_k, r.level
FROM unnest(%(runs)s::uuid[]) AS wanted(id)
JOIN backend_run r ON r.id = wanted.id
JOIN backend_evaluation e ON e.id = r.evaluation_id
JOIN backend_question q ON q.version_id = e.question_set_version_id AND q.key = %(key)s
JOIN backend_result x ON x.run_id = r.id AND x.ordinal = q.ordinal
ORDER BY r.created_at DESC, r.id DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A passage of the ranking. `ranks` and `scores` by stage (`final` without a score); `satisfies`: the indices of
    the expectations that it meets. `text` is the passage's own where it is still there, else the kept beginning."""

    passage: str
    document: str
    path: str
    source: str
    heading: str
    page: int | None
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    satisfies: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The question in another run of its set under a configuration of the same name."""

    run_id: UUID
    at: datetime
    label: str
    outcome: str
    first_rank: int | None
    top_k: int

    @property
    def is_scored(self) -> bool:
        return self.outcome in {one.value for one in GOOD_OUTCOMES}

    @property
    def is_found(self) -> bool:
        return self.first_rank is not None and self.first_rank <= self.top_k


def result(run: Run, ordinal: int) -> Result:
    """Raises NotFoundError."""
    found = Result.objects.filter(run=run, ordinal=ordinal).first() if ordinal <= _HIGHEST else None
    if found is None:
        raise NotFoundError("question in this run", ordinal + 1)
    return found


def question_of(run: Run, ordinal: int) -> Question | None:
    """None where the set was deleted."""
    version_id = run.evaluation.question_set_version_id
    return None if version_id is None else Question.objects.filter(version=version_id, ordinal=ordinal).first()


def places(run: Run, found: Result) -> tuple[Place, ...]:
    """What is kept of the ranking, in final order. One query, for the passages' texts."""
    texts = _texts(run, [item["c"] for item in found.ranking])
    return tuple(
        Place(
            passage=str(item["c"]),
            document=str(item["d"]),
            path=item["p"],
            source=item["s"],
            heading=item.get("h", ""),
            page=item.get("g"),
            ranks={**{stage: int(value[0]) for stage, value in item["k"].items()}, FINAL: int(item["r"])},
            scores={stage: float(value[1]) for stage, value in item["k"].items()},
            satisfies=tuple(item.get("x", ())),
            text=texts.get(str(item["c"])) or item.get("t", ""),
        )
        for item in found.ranking
    )


def stages_of(found: Sequence[Place]) -> tuple[str, ...]:
    """Those that ranked anything. The final list is one of its own only where it differs from the last of them."""
    there = [stage for stage in STAGES if any(stage in place.ranks for place in found)]
    if len(there) > 1:
        last = there[-2]
        if all(place.ranks.get(last) == place.ranks[FINAL] for place in found):
            there.remove(FINAL)
    return tuple(there)


def neighbours(run: Run, ordinal: int) -> tuple[int | None, int | None]:
    """The ordinals before and after, for those who read one question after the other."""
    before = Result.objects.filter(run=run, ordinal__lt=ordinal).order_by("-ordinal").values_list("ordinal", flat=True)
    after = Result.objects.filter(run=run, ordinal__gt=ordinal).order_by("ordinal").values_list("ordinal", flat=True)
    return before.first(), after.first()


def past(run: Run, key: str) -> list[Past]:
    """The latest runs of the same set under the same name, this one among them, newest first. Two queries, both by
    index: the question is found in each run by its place in that run's version."""
    version = run.evaluation.question_set_version
    if version is None:
        return []
    others = runs.of(run.workspace, question_set=str(version.question_set_id)).filter(name=run.name, level=run.level)
    ids = list(others.values_list("id", flat=True)[:MOST_PAST])
    with connection.cursor() as cursor:
        cursor.execute(_PAST, {"runs": ids, "key": key})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return [
        Past(run_id=row[0], at=row[1], label=row[2], outcome=row[4], first_rank=row[5], top_k=row[6]) for row in rows
    ]


def _texts(run: Run, passages: Sequence[object]) -> dict[str, str]:
    """By id, within the workspace: of an imported ranking the ids are whatever its file said."""
    ids = []
    for one in passages:
        try:
            ids.append(as_uuid(one, what="passage"))
        except NotFoundError:
            continue
    if not ids:
        return {}
    ours = Chunk.objects.filter(id__in=ids, index__knowledge_base__workspace=run.workspace_id)
    return {str(key): text for key, text in ours.values_list("id", "text")}
