"""One baseline against one or more candidates."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backend.core.comparison.pairing import Paired, QuestionDelta, p_value, pair, question_deltas
from backend.core.comparison.sides import Side, differences, warnings
from backend.core.comparison.transitions import Transitions, transitions
from backend.core.comparison.verdicts import (
    DEFAULT_MARGIN,
    Decision,
    Tested,
    decide,
    is_covered,
    not_comparable,
    not_decided,
)
from backend.core.errors import ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.resampling import holm


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate against the baseline. All but the decision is empty where the two are not comparable.

    `others` are the metrics that both runs have beside the primary one: delta and interval, no verdict.
    `deltas` are those of the primary metric.
    """

    name: str
    decision: Decision
    primary: Paired | None = None
    others: tuple[Paired, ...] = ()
    deltas: tuple[QuestionDelta, ...] = ()
    transitions: Transitions | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole answer; `seed` and `margin` repeat it."""

    baseline: str
    primary_metric: str
    seed: int
    margin: float
    candidates: tuple[Candidate, ...]


def compare(
    baseline: Side,
    candidates: Sequence[Side],
    *,
    primary: MetricKey,
    eligible: Collection[str],
    seed: int,
    margin: float = DEFAULT_MARGIN,
) -> Comparison:
    """Compare by question. `eligible` are the keys of the questions with R >= 1 that are not unanswerable.

    The primary metric alone is tested, once per candidate that is comparable and scored on enough questions; Holm's
    adjustment is over those. Raises ValidationError where a comparable run was not measured with it.
    """
    keys = tuple(dict.fromkeys(eligible))
    pairings: dict[int, _Pairing] = {}
    for index, candidate in enumerate(candidates):
        if not differences(baseline, candidate):
            pairings[index] = _pairing(baseline, candidate, primary=primary, eligible=keys, seed=seed)
    tests = _tests(pairings, primary=primary, seed=seed)
    return Comparison(
        baseline=baseline.name,
        primary_metric=str(primary),
        seed=seed,
        margin=margin,
        candidates=tuple(
            _candidate(
                baseline,
                candidate,
                pairing=pairings.get(index),
                tested=tests.get(index),
                primary=primary,
                eligible=keys,
                seed=seed,
                margin=margin,
            )
            for index, candidate in enumerate(candidates)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairing:
    paired: Paired
    deltas: tuple[QuestionDelta, ...]


def _pairing(baseline: Side, candidate: Side, *, primary: MetricKey, eligible: Collection[str], seed: int) -> _Pairing:
    for side in (baseline, candidate):
        if str(primary) not in side.values:
            raise ValidationError(
                f"{side.name} was not measured with {primary}: score it again with this metric, or name one of"
                f" {', '.join(side.values) or 'none'}.",
                field="primary_metric",
            )
    deltas = question_deltas(baseline.values[str(primary)], candidate.values[str(primary)], eligible=eligible)
    return _Pairing(paired=pair(deltas, metric=primary, n_eligible=len(eligible), seed=seed), deltas=deltas)


def _tests(pairings: Mapping[int, _Pairing], *, primary: MetricKey, seed: int) -> dict[int, Tested]:
    p_values = {
        index: p_value(pairing.paired, pairing.deltas, metric=primary, seed=seed)
        for index, pairing in pairings.items()
        if is_covered(pairing.paired)
    }
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    ascending = sorted(p_values, key=p_values.__getitem__)
    return {
        index: Tested(p=p_values[index], adjusted_p=adjusted[index], n_steps=len(ascending) - position)
        for position, index in enumerate(ascending)
    }


def _candidate(
    baseline: Side,
    candidate: Side,
    *,
    pairing: _Pairing | None,
    tested: Tested | None,
    primary: MetricKey,
    eligible: Collection[str],
    seed: int,
    margin: float,
) -> Candidate:
    if pairing is None:
        return Candidate(name=candidate.name, decision=not_comparable(differences(baseline, candidate)))
    others = [name for name in baseline.values if name in candidate.values and name != str(primary)]
    return Candidate(
        name=candidate.name,
        decision=not_decided(pairing.paired) if tested is None else decide(pairing.paired, tested, margin=margin),
        primary=pairing.paired,
        others=tuple(
            pair(
                question_deltas(baseline.values[name], candidate.values[name], eligible=eligible),
                metric=MetricKey.parse(name),
                n_eligible=len(eligible),
                seed=seed,
            )
            for name in others
        ),
        deltas=pairing.deltas,
        transitions=transitions(
            baseline.first_ranks, candidate.first_ranks, top_k=min(baseline.top_k, candidate.top_k)
        ),
        warnings=warnings(baseline, candidate),
    )
