"""How far what is expected came: found by a leg, in the pool, within k before a reranker, within k after it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from backend.core.diagnosis.losses import RankedPassage
from backend.core.diagnosis.stages import LEGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Shares of one question's relevant expectations, each of 0 to 1. `pool` are the passages a reranker sees (or
    would see), `before` is recall@k of what it was given, `after` that of the final list."""

    leg: float
    pool: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """Means of `Reached` over the questions that could be diagnosed; `n` of them."""

    n: int
    leg: float
    pool: float
    before: float
    after: float


def reached(passages: Sequence[RankedPassage], relevant: Collection[int], *, k: int, depth: int) -> Reached | None:
    """None without a relevant expectation. An expectation that nothing kept satisfies reached no stage.

    Of two expectations, one found by a leg at rank 60 and beyond a pool of 50, the other first all along:
    leg 1, pool, before and after 0.5.
    """
    if not relevant:
        return None
    n = {"leg": 0, "pool": 0, "before": 0, "after": 0}
    for index in relevant:
        holding = [one for one in passages if index in one.satisfied]
        places = [place for one in holding if (place := one.place_in_pool) is not None]
        n["leg"] += bool(places) or any(leg in one.level for one in holding for leg in LEGS)
        n["pool"] += any(place <= depth for place in places)
        n["before"] += any((rank := one.first_stage) is not None and rank <= k for one in holding)
        n["after"] += any(one.final is not None and one.final <= k for one in holding)
    return Reached(**{stage: count / len(relevant) for stage, count in n.items()})


def funnel(questions: Iterable[Reached]) -> Funnel | None:
    """None over no question."""
    every = list(questions)
    if not every:
        return None
    return Funnel(
        n=len(every),
        **{
            stage: fsum(getattr(one, stage) for one in every) / len(every)
            for stage in ("leg", "pool", "before", "after")
        },
    )
