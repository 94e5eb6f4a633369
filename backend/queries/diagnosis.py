"""The rows that causes of loss are read from: a run's scored results with what their questions expect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.types import GOOD_OUTCOMES
from backend.models import Question, Result, Run

_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One result with a judged list. `ranking` and `cut` as stored (docs/architecture.md)."""

    ordinal: int
    judged: dict[str, Any]
    ranking: Sequence[dict[str, Any]]
    cut: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    text: str
    tags: tuple[str, ...] = ()
    unanswerable: bool = False


def scored(run: Run, *, ordinals: Sequence[int] | None = None) -> Iterator[Scored]:
    """The results that ended `ok` or `empty`, in question order, read in batches."""
    rows: QuerySet[Result] = Result.objects.filter(
        run=run, outcome__in=[one.value for one in GOOD_OUTCOMES], judged__isnull=False
    )
    if ordinals is not None:
        rows = rows.filter(ordinal__in=list(ordinals))
    found = rows.order_by("ordinal").values_list("ordinal", "judged", "ranking", "cut")
    for ordinal, judged, ranking, cut in found.iterator(chunk_size=_ROWS):
        if judged is not None:
            yield Scored(ordinal=ordinal, judged=judged, ranking=ranking, cut=cut)


def asked(version_id: UUID | None, *, ordinals: Sequence[int] | None = None) -> dict[int, Asked]:
    """The questions by ordinal; none where the set is gone."""
    if version_id is None:
        return {}
    rows = Question.objects.filter(version=version_id)
    if ordinals is not None:
        rows = rows.filter(ordinal__in=list(ordinals))
    return {
        ordinal: Asked(text=text, tags=tuple(tags), unanswerable=unanswerable)
        for ordinal, text, tags, unanswerable in rows.values_list("ordinal", "text", "tags", "unanswerable")
    }
