"""The cause of each loss: the first that applies to an expectation, and for a question that of the expectation that
came furthest."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from backend.core.diagnosis.stages import FINAL, FUSED, LEGS
from backend.core.resolving import LabelState


class Cause(StrEnum):
    """In the order they are tried: each is further on the way than the one before."""

    NOT_INDEXED = "not indexed"
    CROSSES_BORDER = "text crosses a chunk border"
    OUTSIDE_SCOPE = "outside the scope"
    NO_LEG_FOUND_IT = "no leg found it"
    NOT_RETURNED = "not returned"
    DEMOTED_BY_FUSION = "demoted by fusion"
    OUTSIDE_POOL = "outside the rerank pool"
    DEMOTED_BY_RERANKER = "demoted by the reranker"
    BELOW_K = "below k"


_ORDER = {cause: place for place, cause in enumerate(Cause)}

# What resolving says of a label that nothing in the ranking satisfied.
_CAUSE_OF_STATE: Mapping[LabelState, Cause] = {
    LabelState.NO_DOCUMENT: Cause.NOT_INDEXED,
    LabelState.NO_PASSAGE: Cause.NOT_INDEXED,
    LabelState.NO_TEXT: Cause.NOT_INDEXED,
    LabelState.NOT_INDEXED: Cause.NOT_INDEXED,
    LabelState.CROSSES_BORDER: Cause.CROSSES_BORDER,
    LabelState.OUTSIDE_SCOPE: Cause.OUTSIDE_SCOPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """A passage of a ranking. `level` are its ranks at the run's level by stage, with the final one; `places` its
    ranks among passages, for the pool. `satisfied` are indices of expectations. The final rank is missing where a
    score floor cut it."""

    document: str
    satisfied: tuple[int, ...] = ()
    level: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def final(self) -> int | None:
        return self.level.get(FINAL)

    @property
    def first_stage(self) -> int | None:
        """Its rank at the run's level before a reranker: fused, or that of the only leg."""
        return _before_reranker(self.level)

    @property
    def place_in_pool(self) -> int | None:
        """The same among passages: a reranker's pool is filled by passages, whatever the level."""
        return _before_reranker(self.places)


def _before_reranker(ranks: Mapping[str, int]) -> int | None:
    if FUSED in ranks:
        return ranks[FUSED]
    return min((ranks[leg] for leg in LEGS if leg in ranks), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A relevant expectation, and what its label means in the corpus. `documents` are those that hold it."""

    index: int
    state: LabelState = LabelState.RESOLVED
    documents: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the question was asked. `rerank_depth` None: no reranker. `imported`: only the final list is known."""

    k: int
    rerank_depth: int | None = None
    imported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationLoss:
    """`cause` None: found within k. `ranks` are the best at the run's level by stage (`final` included), of whatever
    satisfied it; empty where nothing did. `wrong_passage`: its document is within k, the passage is not."""

    index: int
    cause: Cause | None
    ranks: Mapping[str, int] = field(default_factory=dict)
    wrong_passage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLoss:
    """`cause` None: at least one expectation is found within k (those that are not keep their own cause)."""

    cause: Cause | None
    expectations: tuple[ExpectationLoss, ...]

    @property
    def wrong_passage(self) -> bool:
        """Right document, wrong passage: the question is missed though a document that is expected came within k."""
        return self.cause is not None and any(one.wrong_passage for one in self.expectations)


def diagnose(passages: Sequence[RankedPassage], expected: Sequence[Expected], *, asked: Asked) -> QuestionLoss | None:
    """Where a question was lost at k. None without a relevant expectation: there is nothing to lose.

    `passages` hold at least those within k and all that satisfy something; order does not matter.
    """
    if not expected:
        return None
    within = {one.document for one in passages if one.final is not None and one.final <= asked.k}
    losses = tuple(_expectation(one, passages, within=within, asked=asked) for one in expected)
    missed = [loss for loss in losses if loss.cause is not None]
    if len(missed) < len(losses):
        return QuestionLoss(cause=None, expectations=losses)
    furthest = max(missed, key=_how_far)
    return QuestionLoss(cause=furthest.cause, expectations=losses)


def _how_far(loss: ExpectationLoss) -> int:
    return -1 if loss.cause is None else _ORDER[loss.cause]


def _expectation(
    expected: Expected, passages: Sequence[RankedPassage], *, within: Collection[str], asked: Asked
) -> ExpectationLoss:
    holding = [one for one in passages if expected.index in one.satisfied]
    ranks = _best(one.level for one in holding)
    final = ranks.get(FINAL)
    if final is not None and final <= asked.k:
        return ExpectationLoss(index=expected.index, cause=None, ranks=ranks)
    documents = expected.documents.union(one.document for one in holding)
    return ExpectationLoss(
        index=expected.index,
        cause=_cause(expected, holding, ranks=ranks, asked=asked),
        ranks=ranks,
        wrong_passage=not documents.isdisjoint(within),
    )


def _cause(expected: Expected, holding: Sequence[RankedPassage], *, ranks: Mapping[str, int], asked: Asked) -> Cause:
    k = asked.k
    if not holding:
        # What was retrieved is indexed and in the scope, whatever became of the label since.
        stated = _CAUSE_OF_STATE.get(expected.state)
        return stated or (Cause.NOT_RETURNED if asked.imported else Cause.NO_LEG_FOUND_IT)
    in_a_leg = any(ranks[leg] <= k for leg in LEGS if leg in ranks)
    if FUSED in ranks and in_a_leg and ranks[FUSED] > k:
        return Cause.DEMOTED_BY_FUSION
    if asked.rerank_depth is not None:
        places = [place for one in holding if (place := one.place_in_pool) is not None]
        if places and min(places) > asked.rerank_depth:
            return Cause.OUTSIDE_POOL
        before = [rank for one in holding if (rank := one.first_stage) is not None]
        if before and min(before) <= k:
            return Cause.DEMOTED_BY_RERANKER
    return Cause.BELOW_K


def _best(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    best: dict[str, int] = {}
    for ranks in many:
        for stage, rank in ranks.items():
            best[stage] = min(rank, best.get(stage, rank))
    return best
