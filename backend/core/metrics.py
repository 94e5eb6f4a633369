"""The metrics, for one question: each a pure function of the judged list and a cut.

All take `k` (from 1 to the list's `top_k`; anything else is a ValidationError, never a quiet number) and give a
number between 0 and 1, or None for a question without a relevant expectation, which has no metrics and is counted
apart. Rules that hold for all of them:

- ties: the list's order is the search's order; nothing is sorted again here;
- duplicates: the judged list holds each key once, and credits each expectation once;
- empty: a list that came back empty scores 0.

R is the number of relevant expectations (grade >= the threshold). Where every expectation is one document and the
list is one of documents, the values are those of trec_eval's `success_k`, `P_k`, `recall_k`, `recip_rank` on a run
cut at k, `map_cut_k` and `ndcg_cut_k`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from math import log2

from backend.core.errors import ValidationError
from backend.core.judging import JudgedList

METRIC_DEFINITIONS_VERSION = "1"


class Gain(StrEnum):
    """What a grade is worth in ndcg."""

    LINEAR = "linear"
    EXP = "exp"


def hit(judged: JudgedList, *, k: int) -> float | None:
    """Whether anything relevant is in the first k ranks.

        hit@k = 1 if a relevant expectation is satisfied at a rank <= k, else 0

    The first relevant result at rank 2 gives hit@1 = 0 and hit@3 = 1. trec_eval calls it success_k.
    """
    if _is_unscored(judged, k=k):
        return None
    return 1.0 if any(rank.relevant for rank in judged.ranks[:k]) else 0.0


def recall(judged: JudgedList, *, k: int) -> float | None:
    """How much of what should be found is found in the first k ranks.

        recall@k = relevant expectations satisfied at ranks <= k / R

    The denominator is R, never min(R, k): with R = 20, five relevant results on top give recall@5 = 5 / 20 = 0.25.
    Every expectation a result satisfies counts, also two at one rank.
    """
    if _is_unscored(judged, k=k):
        return None
    found = sum([judged.is_relevant(index) for rank in judged.ranks[:k] for index in rank.new])
    return found / judged.n_relevant


def precision(judged: JudgedList, *, k: int) -> float | None:
    """How much of the first k ranks is relevant.

        precision@k = ranks <= k whose result is relevant / k

    The denominator is k, also when fewer came back: 2 relevant of 3 returned give precision@10 = 2 / 10 = 0.2.
    A result that satisfies an expectation already counted is relevant all the same.
    """
    if _is_unscored(judged, k=k):
        return None
    return sum([rank.relevant for rank in judged.ranks[:k]]) / k


def mrr(judged: JudgedList, *, k: int) -> float | None:
    """How early the first relevant result comes (reciprocal rank; its mean over questions is MRR).

        mrr@k = 1 / rank of the first result that satisfies a relevant expectation, 0 if that rank is > k or none

    The first at rank 2 gives mrr@10 = 0.5; at rank 11, mrr@10 = 0. Source: Voorhees, TREC-8 Question Answering
    Track Report, 1999.
    """
    if _is_unscored(judged, k=k):
        return None
    for number, rank in enumerate(judged.ranks[:k], start=1):
        if rank.relevant:
            return 1.0 / number
    return 0.0


def average_precision(judged: JudgedList, *, k: int) -> float | None:
    """How early all relevant expectations come (average precision; its mean over questions is MAP).

        map@k = (sum over ranks r <= k with a newly satisfied relevant expectation of
                 (number of such ranks <= r) / r) / R

    The denominator is R, as in trec_eval's map_cut: R = 4 with hits at ranks 1 and 3 gives
    map@3 = (1/1 + 2/3) / 4 = 0.41667. Two expectations satisfied at one rank count as one such rank, so a
    single passage that holds both of two gives 0.5.
    """
    if _is_unscored(judged, k=k):
        return None
    total = 0.0
    n_found = 0
    for number, rank in enumerate(judged.ranks[:k], start=1):
        if rank.new and any(judged.is_relevant(index) for index in rank.new):
            n_found += 1
            total += n_found / number
    return total / judged.n_relevant


def ndcg(judged: JudgedList, *, k: int, gain: Gain = Gain.LINEAR) -> float | None:
    """How close the order is to the best possible one, by grade.

        ndcg@k = DCG@k / IDCG@k, DCG@k = sum over ranks r <= k of gain_r / log2(r + 1)

    The gain of a rank is the highest grade among the expectations first satisfied there (`exp`: 2^grade - 1), the
    ideal list holds all positive grades of the question, high to low, cut at k. Grades 3 and 1 found in the order
    1, 3 give (1/1 + 3/1.58496) / (3/1 + 1/1.58496) = 0.79671, and 0.70981 with gain=exp. Every grade > 0 counts:
    the threshold only decides whether the question is scored at all.

    Source: Järvelin and Kekäläinen, ACM TOIS 20(4), 2002 (linear gain); Burges et al., ICML 2005 (gain=exp).
    """
    if _is_unscored(judged, k=k):
        return None
    ideal = judged.ideal
    reached = dcg(gains([rank.gain for rank in judged.ranks[:k]], gain=gain, highest=ideal[0]))
    best = dcg(gains(ideal[:k], gain=gain, highest=ideal[0]))
    return min(reached / best, 1.0)


def judged_share(judged: JudgedList, *, k: int) -> float | None:
    """How much of what came back has been judged at all (key: `judged`).

        judged@k = results at ranks <= k with any judgement, of whatever grade / min(k, results returned)

    Low values say that the labels do not cover what this search finds, and that the other metrics are too low.
    2 judged of 3 returned give judged@10 = 2 / 3. It is a figure for sets with graded or negative judgements.
    """
    if _is_unscored(judged, k=k):
        return None
    ranks = judged.ranks[:k]
    return sum([rank.judged for rank in ranks]) / len(ranks) if ranks else 0.0


@lru_cache(maxsize=4096)
def discount(rank: int) -> float:
    """What a gain at this rank, from 1, is multiplied by in DCG: 1 / log2(rank + 1)."""
    return 1.0 / log2(rank + 1)


def dcg(values: Iterable[float]) -> float:
    """Discounted cumulative gain of gains in rank order."""
    return sum([value * discount(rank) for rank, value in enumerate(values, start=1) if value])


# Above this the sums could overflow, and only their ratio matters.
_HIGHEST_PLAIN = 500.0


def gains(grades: Iterable[float], *, gain: Gain, highest: float) -> Sequence[float]:
    """The gain of each grade. `highest` is the question's highest: where it is above 500, all are scaled alike."""
    if gain is Gain.EXP:
        if highest > _HIGHEST_PLAIN:
            return [2.0 ** (grade - highest) if grade > 0 else 0.0 for grade in grades]
        return [2.0**grade - 1.0 if grade > 0 else 0.0 for grade in grades]
    if highest > _HIGHEST_PLAIN:
        return [grade / highest for grade in grades]
    return list(grades)


def _is_unscored(judged: JudgedList, *, k: int) -> bool:
    if not 1 <= k <= judged.top_k:
        raise ValidationError(f"k must be from 1 to top_k ({judged.top_k}), not {k}.", field="k")
    return judged.n_relevant == 0
