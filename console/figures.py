"""Figures as pages write them: a mean with its spread and over how many, metrics as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.metric_keys import MetricKey
from backend.queries import reused
from backend.queries.runs import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    label: str
    value: str
    detail: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A run's metrics: names down, ks across; None where it was not measured so."""

    ks: Sequence[int]
    rows: Sequence[tuple[str, Sequence[Mapping[str, Any] | None]]]


def spread(metric: Mapping[str, Any] | None) -> str:
    """`0.812 ± 0.030`: half the width of the interval, which need not be the same to both sides."""
    if metric is None or metric["mean"] is None:
        return "n/a"
    if metric["low"] is None or metric["high"] is None:
        return f"{metric['mean']:.3f}"
    return f"{metric['mean']:.3f} ± {(metric['high'] - metric['low']) / 2:.3f}"


def over(metric: Mapping[str, Any] | None) -> str:
    """`498 of 500`."""
    return "" if metric is None else f"{metric['n']:,} of {metric['n_total']:,}"


def tile(key: str, metric: Mapping[str, Any]) -> Tile:
    return Tile(label=key, value=spread(metric), detail=over(metric))


def matrix(run: RunRow) -> Matrix:
    parsed = [MetricKey.parse(key) for key in run.metrics]
    ks = sorted({key.k for key in parsed})
    names = list(dict.fromkeys(str(key).rpartition("@")[0] for key in parsed))
    return Matrix(ks=ks, rows=[(name, [run.metrics.get(f"{name}@{k}") for k in ks]) for name in names])


def measured_in(run: RunRow) -> str:
    """Whose a run's latencies are, where not its own: those of results that were taken over come along with them."""
    n = reused.n_reused(run)
    return "" if not n else "the earlier run's" if n >= run.n_questions else "partly the earlier run's"


def setting(value: object) -> str:
    """A setting's value as people write it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {setting(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return " / ".join(map(setting, value))
    return str(value)


def query(**values: object) -> str:
    return urlencode({name: value for name, value in values.items() if value not in {None, ""}})


def whole(text: str, *, field: str) -> int | None:
    """A whole number of a query, None where there is none. Raises ValidationError."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        message = f"{field} is a whole number, not {text[:40]!r}."
        raise ValidationError(
            message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
        )
    return int(text)
