"""What a stored ranking can still answer: at another level, another cut, by other labels.

A Result keeps the beginning of its ranking without a gap (up to the key after the `top_k`-th), and of the rest only
what was within `top_k` of some stage or satisfied something (docs/architecture.md). Numbers may only be made of the
part without a gap: what lies beyond it is not known to be complete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core.diagnosis.stages import FINAL, StagePassage, level_ranks
from backend.core.types import Level

Entry = Mapping[str, Any]
"""A stored entry: `r`, `c`, `d`, `p`, `s`, `o`, `k` and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How deep rankings were kept when they were made: `top_k` keys of this level, and what comes before the next."""

    level: Level
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A ranking's beginning, best first. `whole`: it is all that came back."""

    entries: tuple[Entry, ...]
    whole: bool

    def n_keys(self, level: Level) -> int:
        return len({key_of(entry, level=level) for entry in self.entries})


def key_of(entry: Entry, *, level: Level) -> str:
    return str(entry["d"] if level is Level.DOCUMENT else entry["c"])


def known(ranking: Sequence[Entry], *, kept: Kept) -> Known:
    """The part without a gap. Fewer keys than were kept at most: there were no more."""
    entries = []
    for rank, entry in enumerate(ranking, start=1):
        if entry["r"] != rank:
            break
        entries.append(entry)
    found = Known(entries=tuple(entries), whole=False)
    return Known(entries=found.entries, whole=found.n_keys(kept.level) < kept.top_k)


def deepest(beginning: Known, *, kept: Kept, level: Level, looks_at_content: bool) -> int | None:
    """The largest top_k that can be answered; None: any.

    A document's evidence for a content label are its passages before the next document but `top_k`, so such a label
    needs one document more to be known; a label that names a document does not.
    """
    if beginning.whole:
        return None
    n = beginning.n_keys(level)
    if level is Level.DOCUMENT and looks_at_content:
        n -= 1
    return max(n, kept.top_k) if level is kept.level else n


def among_documents(
    ranking: Sequence[Entry], *, beginning: Known, level: Level, top_k: int, kept: Kept
) -> dict[int, dict[str, int]]:
    """For the places in `ranking` that satisfy something (`x`): the rank among documents in each stage, to be stored as
    `l`. Nothing at passage level, where it follows from the entries.

    Exact as far as a stage's own list is kept without a gap. Beyond, it is what was stored at the same level, else
    the rank among passages, which is never better than the true one: so no stage is said to have had a document
    within k that had not.
    """
    places = [place for place, entry in enumerate(ranking) if entry.get("x")]
    if level is not Level.DOCUMENT or not places:
        return {}
    passages = [
        StagePassage(document=str(entry["d"]), stages={name: int(value[0]) for name, value in entry["k"].items()})
        for entry in ranking
    ]
    counted = level_ranks(passages, level=level, top_k=top_k, wanted=places)
    reach = {name: _reach(passages, name) for one in passages for name in one.stages}
    found = {}
    for place in places:
        entry, own = ranking[place], passages[place].stages
        earlier: Mapping[str, int] = (entry.get("l") or {}) if kept.level is Level.DOCUMENT else {}
        ranks = {
            stage: counted[place][stage] if rank <= reach[stage] else int(earlier.get(stage, rank))
            for stage, rank in own.items()
        }
        is_known = place < len(beginning.entries)
        ranks[FINAL] = counted[place][FINAL] if is_known else int(earlier.get(FINAL, entry["r"]))
        found[place] = ranks
    return found


def _reach(passages: Sequence[StagePassage], stage: str) -> int:
    """How many of a stage's first passages are all kept."""
    ranks = sorted(one.stages[stage] for one in passages if stage in one.stages)
    n = 0
    for rank in ranks:
        if rank != n + 1:
            break
        n = rank
    return n
