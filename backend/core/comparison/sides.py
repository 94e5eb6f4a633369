"""What a comparison needs of a run, and whether two of them may be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backend.core.types import Level

Values = Mapping[str, float | None]
"""Question key -> value; None, or no entry, for a question that was not scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusChange:
    """How many documents differ from the baseline's corpus."""

    n_added: int = 0
    n_removed: int = 0
    n_changed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run. `question_set` is the set, whatever its version. `values` are per printed metric key; `first_ranks`
    holds the scored questions alone, None for missed.

    `measured_in` is the run that its results were measured in, where that is known; `is_copy` says that it is another.
    `corpus_change` is against the baseline, where the caller knows it; without it a difference is warned of
    without numbers.
    """

    name: str
    question_set: str
    set_hash: str
    level: Level
    threshold: float
    definitions: str
    top_k: int
    values: Mapping[str, Values]
    first_ranks: Mapping[str, int | None] = field(default_factory=dict)
    corpus_fingerprint: str = ""
    corpus_change: CorpusChange | None = None
    measured_in: str = ""
    is_copy: bool = False


def differences(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """Why the two measure different things, each in words; empty when they may be compared."""
    reasons = []
    if baseline.set_hash != candidate.set_hash:
        is_one_set = baseline.question_set == candidate.question_set
        reasons.append(
            "they asked different versions of the question set" if is_one_set else "they asked different question sets"
        )
    if baseline.level != candidate.level:
        reasons.append(f"the baseline ranks {baseline.level}s and the candidate {candidate.level}s")
    if baseline.threshold != candidate.threshold:
        reasons.append(
            f"a result counts as relevant from grade {baseline.threshold:g} in the baseline and from"
            f" {candidate.threshold:g} in the candidate"
        )
    if baseline.definitions != candidate.definitions:
        reasons.append(
            f"their metrics follow different definitions (version {baseline.definitions} and {candidate.definitions})"
        )
    return tuple(reasons)


def one_measurement(baseline: Side, candidate: Side) -> str:
    """A sentence where both show the results of one measurement, empty where each was measured."""
    if not baseline.measured_in or baseline.measured_in != candidate.measured_in:
        return ""
    if baseline.is_copy and candidate.is_copy:
        return "Both took over their results from one earlier run, so they are the same."
    copy, other = ("candidate", "baseline") if candidate.is_copy else ("baseline", "candidate")
    return f"The {copy} took over all its results from the {other}, so they are the same."


def warnings(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """What does not forbid the comparison but may explain its outcome."""
    if baseline.corpus_fingerprint == candidate.corpus_fingerprint:
        return ()
    if not (baseline.corpus_fingerprint and candidate.corpus_fingerprint):
        return ("One of the two runs was imported: nothing says whether both searched the same documents.",)
    change = candidate.corpus_change
    if change is None:
        return ("The two runs searched different documents, which may be what the difference comes from.",)
    counts = f"{change.n_added} added, {change.n_removed} removed, {change.n_changed} changed"
    return (f"The documents changed between the two runs ({counts}), which may be what the difference comes from.",)
