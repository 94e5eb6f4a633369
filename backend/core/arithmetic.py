"""A metric of one question, term by term: what a page shows under "how is this computed"."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey, compute
from backend.core.metrics import discount, gains

FORMULAS: Final[dict[str, str]] = {
    "hit": "1 if a relevant expectation is met in the first k ranks",
    "recall": "relevant expectations met in the first k / R",
    "precision": "relevant ranks up to k / k",
    "mrr": "1 / rank of the first relevant result within k",
    "map": "sum over ranks that meet a new relevant expectation of (how many so far) / rank, / R",
    "ndcg": "sum of gain x 1 / log2(rank + 1) over the first k / the same sum for the best possible order",
    "judged": "judged results in the first k / results in the first k",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one rank adds. `term` is gain x discount; `key` is the document or passage there (empty in an ideal)."""

    rank: int
    key: str = ""
    gain: float
    discount: float
    term: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """`value` = the sum of the terms / `denominator`. Ranks that add nothing are left out.

    `ideal` holds the terms of the best possible list (ndcg only; its sum is the denominator). A question without a
    relevant expectation has no value and no terms.
    """

    metric: str
    value: float | None
    denominator: float
    terms: tuple[Term, ...] = ()
    ideal: tuple[Term, ...] = ()


def explain(key: MetricKey, judged: JudgedList) -> Arithmetic:
    """The same numbers as `compute(key, judged)`, with where they come from. Raises ValidationError for k > top_k."""
    value = compute(key, judged)
    if value is None:
        return Arithmetic(metric=str(key), value=None, denominator=0.0)
    if key.name == "ndcg":
        return _explain_ndcg(key, judged, value=value)
    terms, denominator = _EXPLAINED[key.name](judged, key.k)
    return Arithmetic(metric=str(key), value=value, denominator=denominator, terms=tuple(terms))


def _explain_ndcg(key: MetricKey, judged: JudgedList, *, value: float) -> Arithmetic:
    highest = judged.ideal[0]
    reached = gains([rank.gain for rank in judged.ranks[: key.k]], gain=key.gain, highest=highest)
    best = gains(judged.ideal[: key.k], gain=key.gain, highest=highest)
    terms = tuple(
        _discounted(number, gain, name=judged.ranks[number - 1].key)
        for number, gain in enumerate(reached, start=1)
        if gain
    )
    ideal = tuple(_discounted(number, gain) for number, gain in enumerate(best, start=1))
    denominator = sum([term.term for term in ideal])
    return Arithmetic(metric=str(key), value=value, denominator=denominator, terms=terms, ideal=ideal)


def _discounted(rank: int, gain: float, *, name: str = "") -> Term:
    return Term(rank=rank, key=name, gain=gain, discount=discount(rank), term=gain * discount(rank))


_Explained = tuple[Iterable[Term], float]


def _hit(judged: JudgedList, k: int) -> _Explained:
    return [_plain(number, name) for number, name in _relevant(judged, k)[:1]], 1.0


def _recall(judged: JudgedList, k: int) -> _Explained:
    terms = []
    for number, rank in enumerate(judged.ranks[:k], start=1):
        n_new = sum([judged.is_relevant(index) for index in rank.new])
        if n_new:
            terms.append(_plain(number, rank.key, gain=n_new))
    return terms, judged.n_relevant


def _precision(judged: JudgedList, k: int) -> _Explained:
    return [_plain(number, name) for number, name in _relevant(judged, k)], k


def _mrr(judged: JudgedList, k: int) -> _Explained:
    first = _relevant(judged, k)[:1]
    return [
        Term(rank=number, key=name, gain=1.0, discount=1.0 / number, term=1.0 / number) for number, name in first
    ], 1.0


def _map(judged: JudgedList, k: int) -> _Explained:
    found, _ = _recall(judged, k)
    return [
        Term(rank=term.rank, key=term.key, gain=n_found, discount=1.0 / term.rank, term=n_found / term.rank)
        for n_found, term in enumerate(found, start=1)
    ], judged.n_relevant


def _judged(judged: JudgedList, k: int) -> _Explained:
    ranks = judged.ranks[:k]
    terms = [_plain(number, rank.key) for number, rank in enumerate(ranks, start=1) if rank.judged]
    return terms, max(len(ranks), 1)


def _relevant(judged: JudgedList, k: int) -> list[tuple[int, str]]:
    return [(number, rank.key) for number, rank in enumerate(judged.ranks[:k], start=1) if rank.relevant]


def _plain(rank: int, key: str, *, gain: float = 1.0) -> Term:
    return Term(rank=rank, key=key, gain=gain, discount=1.0, term=gain)


_EXPLAINED: dict[str, Callable[[JudgedList, int], _Explained]] = {
    "hit": _hit,
    "recall": _recall,
    "precision": _precision,
    "mrr": _mrr,
    "map": _map,
    "judged": _judged,
}
