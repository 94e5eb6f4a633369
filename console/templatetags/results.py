"""What the pages of results write."""

from typing import Any

from django import template

from backend.core.states import RunState
from backend.core.types import Outcome
from backend.queries.runs import RunRow
from console import figures

register = template.Library()


@register.filter
def spread(metric: Any) -> str:
    return figures.spread(metric)


@register.filter
def over(metric: Any) -> str:
    return figures.over(metric)


@register.filter
def as_tag(tag: str) -> str:
    """A filter by tag, as the query of an address."""
    return figures.query(tag=tag)


@register.filter
def signed(value: float | None) -> str:
    return "n/a" if value is None else f"{value:+.3f}"


@register.filter
def p_value(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


@register.filter
def at(values: Any, key: Any) -> Any:
    """An entry of a mapping by a key that is a variable; None where there is none."""
    return values.get(key) if hasattr(values, "get") else None


@register.filter
def minutes(seconds: float | None) -> str:
    """A duration as people say it."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@register.filter
def hits(run: Any) -> list[Any]:
    """hit@k of a run at each of its ks."""
    return [run.metrics.get(f"hit@{k}") for k in run.ks]


@register.filter
def missing(run: Any) -> int:
    """Questions of a run without a result."""
    return sum(int(run.counts.get(name, 0)) for name in ("n_error", "n_not_run", "n_cancelled"))


@register.filter
def is_open(run: RunRow) -> bool:
    """Whether its figures are still to come, or to change."""
    return run.partial and run.state != RunState.CANCELLED


@register.filter
def measured_in(run: Any) -> str:
    return figures.measured_in(run)


@register.filter
def setting(value: object) -> str:
    return figures.setting(value)


@register.filter
def of_unanswerable(outcome: str) -> str:
    """How a question ended that nothing answers: silent where nothing came back, which is what it asks for. Answered is
    no fault where no min_score cuts anything (docs/metrics.md)."""
    return {Outcome.EMPTY.value: "silent", Outcome.OK.value: "answered"}.get(outcome, outcome.replace("_", " "))


@register.filter
def as_scope(base_id: Any) -> str:
    """How the form names a base."""
    return f"base:{base_id}"


@register.filter
def percent(share: float | None) -> str:
    return "" if share is None else f"{share:+.1%}"
