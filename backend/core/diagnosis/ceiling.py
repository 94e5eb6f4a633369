"""What a perfect reranker could reach with the pool there was, and what the reranker there was did."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backend.core.diagnosis.losses import RankedPassage
from backend.core.types import Level


def ceiling(
    passages: Sequence[tuple[str, RankedPassage]], relevant: Collection[int], *, level: Level, k: int, depth: int
) -> float | None:
    """recall@k of the pool in perfect order: what a perfect reranker could reach. None without an expectation.

        ceiling@k = the most relevant expectations that k keys of the pool satisfy / R

    `passages` are (passage id, passage); the pool is the first `depth` passages before a reranker. A key is a document
    or a passage, by level. With two expectations, of which the pool holds one, the ceiling is 0.5 at every k. Exact
    where R <= k; beyond, keys are taken by what each adds, which is exact while none satisfies two.
    """
    if not relevant:
        return None
    wanted = set(relevant)
    keys: dict[str, set[int]] = {}
    for passage_id, passage in passages:
        place = passage.place_in_pool if passage.place_in_pool is not None else passage.final
        held = wanted.intersection(passage.satisfied)
        if held and place is not None and place <= depth:
            keys.setdefault(passage.document if level is Level.DOCUMENT else passage_id, set()).update(held)
    covered: set[int] = set()
    for _ in range(min(k, len(keys))):
        best = max(keys.values(), key=lambda held: len(held - covered))
        if best <= covered:
            break
        covered |= best
    return len(covered) / len(wanted)


class Move(StrEnum):
    """What the reranker did to the first relevant result of a question."""

    UP = "up"
    DOWN = "down"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Questions by what the reranker did to them. One whose pool holds nothing relevant is unchanged."""

    n_up: int = 0
    n_down: int = 0
    n_unchanged: int = 0

    @staticmethod
    def of(moves: Iterable[Move]) -> "Lift":
        counted = dict.fromkeys(Move, 0)
        for one in moves:
            counted[one] += 1
        return Lift(n_up=counted[Move.UP], n_down=counted[Move.DOWN], n_unchanged=counted[Move.UNCHANGED])


def move(passages: Iterable[RankedPassage], relevant: Collection[int]) -> Move:
    """The best rank of anything relevant, at the run's level, before and after the reranker."""
    wanted = set(relevant)
    holding = [one for one in passages if wanted.intersection(one.satisfied)]
    never = float("inf")
    before = min((rank for one in holding if (rank := one.first_stage) is not None), default=never)
    after = min((rank for one in holding if (rank := one.final) is not None), default=never)
    if after == before:
        return Move.UNCHANGED
    return Move.UP if after < before else Move.DOWN
