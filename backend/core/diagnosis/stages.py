"""The rank of a passage in each stage's list, at the run's level."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backend.core.types import Level

# The names of the stages as rankings store them; FINAL is the list that the run scored.
MEANING, WORDS, FUSED, RERANKER = "meaning", "words", "fused", "reranker"
LEGS = (MEANING, WORDS)
FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePassage:
    """A passage of a ranking: its document, and its place among the passages of each stage that ranked it."""

    document: str
    stages: Mapping[str, int]


def level_ranks(
    passages: Sequence[StagePassage], *, level: Level, top_k: int, wanted: Collection[int] | None = None
) -> dict[int, dict[str, int]]:
    """For the passages at these places (all, unless `wanted`): the rank each gives its key in every stage's list.

    `passages` are in final order and hold all that any stage ranked. At passage level these are the places
    themselves. At document level a list is collapsed as it is for judging: a passage before the first one of the
    (`top_k` + 1)-th document is evidence for its document, whose rank it gives; a later one is none, and gives the
    number of documents that come up to it.
    """
    chosen = range(len(passages)) if wanted is None else wanted
    ranks: dict[int, dict[str, int]] = {place: {} for place in chosen}
    if level is Level.PASSAGE:
        for place in ranks:
            ranks[place] = {**passages[place].stages, FINAL: place + 1}
        return ranks
    lists: dict[str, list[tuple[int, int]]] = {stage: [] for place in ranks for stage in passages[place].stages}
    for place, one in enumerate(passages):
        for stage, rank in one.stages.items():
            if stage in lists:
                lists[stage].append((rank, place))
    collapse_into(ranks, lists, documents=[one.document for one in passages], top_k=top_k)
    return ranks


def collapse_into(
    ranks: dict[int, dict[str, int]],
    lists: Mapping[str, list[tuple[int, int]]],
    *,
    documents: Sequence[str],
    top_k: int,
) -> None:
    """The work of `level_ranks` at document level, for callers that have many passages and no need of objects:
    `documents` in final order, `lists` per stage (rank, place) in any order. Fills the places that are in `ranks`."""
    for stage, ranked in lists.items():
        _collapse(documents, [place for _, place in sorted(ranked)], stage=stage, top_k=top_k, ranks=ranks)
    _collapse(documents, range(len(documents)), stage=FINAL, top_k=top_k, ranks=ranks)


def _collapse(
    documents: Sequence[str],
    ordered: Sequence[int],
    *,
    stage: str,
    top_k: int,
    ranks: dict[int, dict[str, int]],
) -> None:
    first: dict[str, int] = {}
    for place in ordered:
        document = documents[place]
        known = first.setdefault(document, len(first) + 1)
        if place in ranks:
            ranks[place][stage] = known if len(first) <= top_k else len(first)
