"""What a search reads and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from backend.core.errors import ErrorCode
from backend.core.types import Passage
from backend.providers.base import ProviderError

MEANING, WORDS, FUSED, RERANKER = "meaning", "words", "fused", "reranker"
STAGES = (MEANING, WORDS, FUSED, RERANKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRef:
    """An Index as a search needs it, frozen in a plan. `embedder` is a spec, empty where the base has none."""

    id: UUID
    knowledge_base_id: UUID
    embedder: str
    language: str
    dimensions: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def query_prefix(self) -> str | None:
        """What this Index puts before a question; None leaves it to the model's own table."""
        return _text_or_none(self.settings.get("embedding", {}).get("query_prefix"))

    @property
    def document_prefix(self) -> str | None:
        return _text_or_none(self.settings.get("embedding", {}).get("document_prefix"))

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "knowledge_base_id": str(self.knowledge_base_id),
            "embedder": self.embedder,
            "language": self.language,
            "dimensions": self.dimensions,
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "IndexRef":
        return cls(
            id=UUID(stored["id"]),
            knowledge_base_id=UUID(stored["knowledge_base_id"]),
            embedder=stored["embedder"],
            language=stored["language"],
            dimensions=stored["dimensions"],
            settings=stored["settings"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Which Indexes are read, and the filters that act inside every leg, before its cut.

    `alternatives` are the Indexes that configurations name (`index`): each stands in for the one of its base.
    `documents` None means all.
    """

    indexes: tuple[IndexRef, ...]
    documents: frozenset[UUID] | None = None
    source: str = ""
    collection: str = ""
    alternatives: tuple[IndexRef, ...] = ()

    @property
    def all_indexes(self) -> tuple[IndexRef, ...]:
        """Every Index that any configuration may read, each once."""
        return tuple({index.id: index for index in (*self.indexes, *self.alternatives)}.values())

    def indexes_for(self, index: str) -> tuple[IndexRef, ...]:
        """The Indexes of a configuration whose `index` setting this is. Raises LookupError for an unknown one."""
        if not index:
            return self.indexes
        named = next((each for each in self.all_indexes if str(each.id) == index), None)
        if named is None:
            raise LookupError(index)
        bases = {each.knowledge_base_id: each for each in self.indexes}
        return tuple({**bases, named.knowledge_base_id: named}.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "indexes": [index.to_json() for index in self.indexes],
            "documents": None if self.documents is None else sorted(str(key) for key in self.documents),
            "source": self.source,
            "collection": self.collection,
            "alternatives": [index.to_json() for index in self.alternatives],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "SearchScope":
        documents = stored["documents"]
        return cls(
            indexes=tuple(IndexRef.from_json(index) for index in stored["indexes"]),
            documents=None if documents is None else frozenset(UUID(key) for key in documents),
            source=stored["source"],
            collection=stored["collection"],
            alternatives=tuple(IndexRef.from_json(index) for index in stored.get("alternatives", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRank:
    """The place (from 1) and score a stage gave."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A passage in a ranking. `stages` holds those stages that ranked it (keys: STAGES)."""

    passage: Passage
    stages: Mapping[str, StageRank]

    @property
    def score(self) -> float:
        """That of the last stage that ranked it."""
        return next(self.stages[stage].score for stage in reversed(STAGES) if stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a configuration has no ranking. `fatal`: no other question of the run can escape it."""

    code: ErrorCode
    reason: str
    fatal: bool = False

    @classmethod
    def of(cls, error: ProviderError) -> "Failure":
        return cls(code=error.code, reason=error.message, fatal=error.fatal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A ranking, best first. `depth` is how far each leg was read in the end; `leg_sizes` what each leg gave
    (`meaning`, `words`); `timings_ms` what each step took, a leg that several configurations share in each of them;
    `cut` what followed and lies below the score floor; `ann_recall` the share of the exact leg's first `top_k` passages
    that the approximate one has among its own, where that was asked for."""

    entries: tuple[Entry, ...]
    depth: int
    timings_ms: Mapping[str, float]
    leg_sizes: Mapping[str, int]
    cut: tuple[Entry, ...] = ()
    ann_recall: float | None = None


def above(entries: Sequence[Entry], least: float, *, stage: str = "") -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Those with at least this score (which that `stage` gave, where one is named), and the others."""
    kept: list[Entry] = []
    cut: list[Entry] = []
    for entry in entries:
        is_above = (not stage or stage in entry.stages) and entry.score >= least
        (kept if is_above else cut).append(entry)
    return tuple(kept), tuple(cut)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
