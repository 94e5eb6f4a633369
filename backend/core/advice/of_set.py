"""What is wrong with the set: said however few questions are scored."""

# ruff: noqa: ARG001  all rules have one signature

from math import ceil, sqrt

from backend.core.advice.figures import Figures, Thresholds
from backend.core.advice.saying import Advice, questions, share
from backend.core.diagnosis import Cause

# 95 % confidence and 80 % power, as the comparison has it (METRICS: comparing two runs).
_Z, _POWER_Z = 1.96, 0.84
_SHOWN = 3


def few_questions(figures: Figures, limits: Thresholds) -> Advice | None:
    n = figures.n_scored
    width = figures.primary.width if figures.primary is not None else 0.0
    if n >= limits.few_questions and width <= limits.wide_interval:
        return None
    metric = figures.primary_metric or "the primary metric"
    told = f"Only {n:,} questions are scored"
    if figures.primary is not None and n:
        told += f", and {metric} is known to {figures.primary.low:.2f} to {figures.primary.high:.2f} only"
    needed = _needed(figures, limits)
    about = (
        f"tell settings apart that differ by {limits.difference:g}"
        if figures.n_needed is None
        else "show the difference from the other run"
    )
    return Advice(
        id="few_questions",
        sentence=f"{told}. About {max(needed - n, 1):,} more would {about}.",
        strength=2.0 + max(0.0, 1 - n / limits.few_questions) / 2,
    )


def _needed(figures: Figures, limits: Thresholds) -> int:
    """((z + 0.84) sd / delta)^2, with the standard deviation that the interval tells; at least the rule's own limit."""
    if figures.n_needed is not None:
        return figures.n_needed
    deviation = 0.4
    if figures.primary is not None and figures.n_scored > 1 and figures.primary.width > 0:
        deviation = min(0.5, figures.primary.width / (2 * _Z) * sqrt(figures.n_scored))
    return max(limits.few_questions, ceil(((_Z + _POWER_Z) * deviation / limits.difference) ** 2))


def labels_unresolved(figures: Figures, limits: Thresholds) -> Advice | None:
    nothing_found = figures.n_scored > 0 and figures.best_recall == 0
    if not figures.n_unresolved and not nothing_found:
        return None
    shown = "; ".join(
        f"{one.label} → {one.nearest}" if one.nearest else one.label for one in figures.unresolved[:_SHOWN]
    )
    if figures.n_unresolved:
        told = f"{figures.n_unresolved} of {figures.n_expectations} expectations match nothing"
        told += f" ({shown}{'; …' if figures.n_unresolved > _SHOWN else ''})" if shown else ""
    else:
        told = f"Recall is 0 for every one of {figures.n_scored:,} questions"
    share = figures.n_unresolved / figures.n_expectations if figures.n_expectations else 1.0
    return Advice(
        id="labels_unresolved",
        sentence=f"{told}. Copy the paths from Documents; preflight lists every label with the nearest name.",
        strength=3.0 + (1.0 if nothing_found else share),
    )


def not_indexed(figures: Figures, limits: Thresholds) -> Advice | None:
    n = figures.causes.get(Cause.NOT_INDEXED, 0)
    if not n or (not figures.not_indexed and figures.n_unresolved):
        # Labels that name nothing at all are spoken of by labels_unresolved.
        return None
    shown = "; ".join(
        f"{one.path} ({one.reason.rstrip('.')})" if one.reason else one.path for one in figures.not_indexed[:_SHOWN]
    )
    named = f": {shown}{'; …' if len(figures.not_indexed) > _SHOWN else ''}" if shown else ""
    return Advice(
        id="not_indexed",
        sentence=f"{n:,} {questions(n)} missed because what they expect is not indexed{named}. No setting finds"
        " it before it is.",
        strength=2.5 + share(n, figures.n_scored) / 2,
    )
