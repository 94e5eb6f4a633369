"""One baseline against one or more candidates."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backend.core.comparison.pairing import Paired, QuestionDelta, p_value, pair_all, pairing_of, question_deltas
from backend.core.comparison.sides import Side, differences, one_measurement, warnings
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
    comparable = [index for index, candidate in enumerate(candidates) if not differences(baseline, candidate)]
    pairings = _pairings(baseline, candidates, comparable, primary=primary, eligible=keys, seed=seed)
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
                margin=margin,
            )
            for index, candidate in enumerate(candidates)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paired:
    primary: Paired
    others: tuple[Paired, ...]
    deltas: tuple[QuestionDelta, ...]


def _pairings(
    baseline: Side,
    candidates: Sequence[Side],
    comparable: Sequence[int],
    *,
    primary: MetricKey,
    eligible: Collection[str],
    seed: int,
) -> dict[int, _Paired]:
    """Every metric of each comparable candidate, all at once: draws are shared."""
    names: dict[int, list[str]] = {}
    for index in comparable:
        candidate = candidates[index]
        for side in (baseline, candidate):
            if str(primary) not in side.values:
                raise ValidationError(
                    f"{side.name} was not measured with {primary}: score it again with this metric, or name one of"
                    f" {', '.join(side.values) or 'none'}.",
                    field="primary_metric",
                )
        others = [name for name in baseline.values if name in candidate.values and name != str(primary)]
        names[index] = [str(primary), *others]
    made = iter(
        pair_all(
            [
                pairing_of(
                    baseline.values[name],
                    candidates[index].values[name],
                    metric=MetricKey.parse(name),
                    eligible=eligible,
                )
                for index in comparable
                for name in names[index]
            ],
            seed=seed,
        )
    )
    found = {}
    for index in comparable:
        first, *others_paired = [next(made) for _ in names[index]]
        deltas = question_deltas(
            baseline.values[str(primary)], candidates[index].values[str(primary)], eligible=eligible
        )
        found[index] = _Paired(primary=first, others=tuple(others_paired), deltas=deltas)
    return found


def _tests(pairings: Mapping[int, _Paired], *, primary: MetricKey, seed: int) -> dict[int, Tested]:
    p_values = {
        index: p_value(pairing.primary, pairing.deltas, metric=primary, seed=seed)
        for index, pairing in pairings.items()
        if is_covered(pairing.primary)
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
    pairing: _Paired | None,
    tested: Tested | None,
    margin: float,
) -> Candidate:
    if pairing is None:
        return Candidate(name=candidate.name, decision=not_comparable(differences(baseline, candidate)))
    why_same = one_measurement(baseline, candidate)
    return Candidate(
        name=candidate.name,
        decision=not_decided(pairing.primary)
        if tested is None
        else decide(pairing.primary, tested, margin=margin, why_same=why_same),
        primary=pairing.primary,
        others=pairing.others,
        deltas=pairing.deltas,
        transitions=transitions(
            baseline.first_ranks, candidate.first_ranks, top_k=min(baseline.top_k, candidate.top_k)
        ),
        warnings=warnings(baseline, candidate),
    )
