"""The verdict on one candidate: the first rule that applies, in a sentence that says what it rests on."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from statistics import NormalDist

from backend.core.comparison.pairing import Paired
from backend.core.resampling import TIE

ALPHA = 0.05
DEFAULT_MARGIN = 0.05
LEAST_PERCENT = 95
LEAST_QUESTIONS = 20
LEAST_DIFFERING = 6
_POWER_Z = 0.84  # 80 % power


class Verdict(StrEnum):
    """In the order they are tried."""

    NOT_COMPARABLE = "not comparable"
    NOT_DECIDED = "not decided"
    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE_SHOWN = "no difference shown"
    TOO_FEW_QUESTIONS = "too few questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict and its sentence. `p` and `adjusted_p` (Holm over the candidates) only where a test was made.

    `n_needed`: about how many questions would show the observed delta with 80 % power; only with `too few
    questions`, and None where the delta is 0 or fewer than six questions differ.
    """

    verdict: Verdict
    sentence: str
    p: float | None = None
    adjusted_p: float | None = None
    n_needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A test's outcome and its place in the Holm sequence: `n_steps` is what its p was multiplied by."""

    p: float
    adjusted_p: float
    n_steps: int = 1


def is_covered(paired: Paired) -> bool:
    """Whether enough of the questions that should have been scored were scored in both runs."""
    n_eligible = paired.n + paired.n_dropped
    return paired.n > 0 and 100 * paired.n >= LEAST_PERCENT * n_eligible


def not_comparable(reasons: tuple[str, ...]) -> Decision:
    return Decision(verdict=Verdict.NOT_COMPARABLE, sentence=f"Not comparable: {'; '.join(reasons)}.")


def not_decided(paired: Paired) -> Decision:
    n_eligible = paired.n + paired.n_dropped
    if n_eligible == 0:
        return Decision(verdict=Verdict.NOT_DECIDED, sentence="Not decided: no question of the set can be scored.")
    return Decision(
        verdict=Verdict.NOT_DECIDED,
        sentence=f"Not decided: only {paired.n:,} of {n_eligible:,} questions were scored in both runs,"
        f" fewer than {LEAST_PERCENT} %. Retry the failed ones.",
    )


def decide(paired: Paired, tested: Tested, *, margin: float = DEFAULT_MARGIN, why_same: str = "") -> Decision:
    """The verdict where both runs are comparable and covered (`is_covered`). `why_same` is a sentence that stands in
    place of advice where no further question could tell the two apart."""
    if paired.mean_delta is None or paired.low is None or paired.high is None:
        raise ValueError("no question was scored in both runs: nothing can be decided")
    facts = _facts(paired, tested)
    if tested.adjusted_p < ALPHA:
        verdict = Verdict.BETTER if paired.mean_delta > 0 else Verdict.WORSE
        return _decision(verdict, f"{verdict.capitalize()}: {facts}.", tested)
    if paired.n >= LEAST_QUESTIONS and -margin <= paired.low and paired.high <= margin:
        sentence = f"No difference shown: {facts}. The interval lies inside ±{margin:g}. {why_same}".rstrip()
        return _decision(Verdict.NO_DIFFERENCE_SHOWN, sentence, tested)
    if why_same:
        return _decision(Verdict.TOO_FEW_QUESTIONS, f"Too few questions: {facts}. {why_same}", tested)
    if paired.n_differing < LEAST_DIFFERING:
        advice = (
            f"Only {paired.n_differing} differ between the runs, and with fewer than {LEAST_DIFFERING}"
            f" no test can reach {ALPHA:g}"
        )
        return _decision(Verdict.TOO_FEW_QUESTIONS, f"Too few questions: {facts}. {advice}.", tested)
    needed = questions_needed(paired, n_steps=tested.n_steps)
    advice = "" if needed is None else f" About {needed:,} questions would show a difference of this size (80 % power)."
    return _decision(Verdict.TOO_FEW_QUESTIONS, f"Too few questions: {facts}.{advice}", tested, n_needed=needed)


def questions_needed(paired: Paired, *, n_steps: int = 1) -> int | None:
    """How many questions would show the observed delta with 80 % power: ((z + 0.84) sd / delta)^2.

    z belongs to the Holm step, at 0.05 / `n_steps` two-sided. Rounded up, never below n + 1; None where delta is 0.
    """
    if paired.mean_delta is None or paired.sd is None or abs(paired.mean_delta) <= TIE:
        return None
    z = NormalDist().inv_cdf(1 - ALPHA / n_steps / 2)
    return max(paired.n + 1, ceil(((z + _POWER_Z) * paired.sd / paired.mean_delta) ** 2))


def _decision(verdict: Verdict, sentence: str, tested: Tested, *, n_needed: int | None = None) -> Decision:
    return Decision(verdict=verdict, sentence=sentence, p=tested.p, adjusted_p=tested.adjusted_p, n_needed=n_needed)


def _facts(paired: Paired, tested: Tested) -> str:
    label = "p" if tested.p == tested.adjusted_p else "adjusted p"
    p = "< 0.001" if tested.adjusted_p < 0.001 else f"= {tested.adjusted_p:.3f}"
    return (
        f"{paired.metric} changed by {paired.mean_delta:+.3f} (95 % interval {paired.low:+.3f} to {paired.high:+.3f},"
        f" {label} {p}) over {paired.n:,} of {paired.n + paired.n_dropped:,} questions:"
        f" {paired.n_wins:,} better, {paired.n_losses:,} worse, {paired.n_ties:,} equal"
    )
