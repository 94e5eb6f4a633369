"""Over a set: how many questions each cause lost, over all and by tag, the pool ceiling and the rerank lift."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum

from backend.core.diagnosis.ceiling import Lift, Move
from backend.core.diagnosis.funnel import Funnel, Reached, funnel
from backend.core.diagnosis.losses import Cause, QuestionLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """One scored question: `ceiling` and `move` beside its loss; `recall` is the one it reached at the same k,
    `n_relevant` its R, `reached` how far what it expects came."""

    loss: QuestionLoss
    tags: tuple[str, ...] = ()
    ceiling: float | None = None
    recall: float | None = None
    n_relevant: int = 1
    move: Move | None = None
    reached: Reached | None = None
    ordinal: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """`causes` leaves out those with no question; they add up to `n_missed`. `n_wrong_passage` of the missed had the
    right document within k."""

    n: int = 0
    n_missed: int = 0
    n_wrong_passage: int = 0
    causes: Mapping[Cause, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`ceiling` and `recall` are means over the scored questions at `k`, `mean_relevant` is that of their R; `lift` is
    None without a reranker, `funnel` where no stage is known (an imported ranking)."""

    k: int
    overall: Losses
    by_tag: Mapping[str, Losses]
    untagged: Losses | None = None
    ceiling: float | None = None
    recall: float | None = None
    mean_relevant: float | None = None
    lift: Lift | None = None
    funnel: Funnel | None = None


def summarise(diagnosed: Iterable[Diagnosed], *, k: int) -> Summary:
    """A question counts under each of its tags, one without any in `untagged` (None where each has one). Tags are in
    the order of their names."""
    every: list[Diagnosed] = []
    by_tag: dict[str, list[Diagnosed]] = {}
    for one in diagnosed:
        every.append(one)
        for tag in dict.fromkeys(one.tags):
            by_tag.setdefault(tag, []).append(one)
    untagged = [one for one in every if not one.tags]
    moves = [one.move for one in every if one.move is not None]
    return Summary(
        k=k,
        overall=_losses(every),
        by_tag={tag: _losses(by_tag[tag]) for tag in sorted(by_tag)},
        untagged=_losses(untagged) if untagged else None,
        ceiling=_mean(one.ceiling for one in every),
        recall=_mean(one.recall for one in every),
        mean_relevant=_mean(float(one.n_relevant) for one in every),
        lift=Lift.of(moves) if moves else None,
        funnel=funnel(one.reached for one in every if one.reached is not None),
    )


def _losses(diagnosed: list[Diagnosed]) -> Losses:
    causes = Counter(one.loss.cause for one in diagnosed if one.loss.cause is not None)
    return Losses(
        n=len(diagnosed),
        n_missed=causes.total(),
        n_wrong_passage=sum(one.loss.wrong_passage for one in diagnosed),
        causes={cause: causes[cause] for cause in Cause if causes[cause]},
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None
