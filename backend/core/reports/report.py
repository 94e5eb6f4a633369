"""What a report tells, gathered once for all its forms."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a question is shown: an error is no miss, and what expects nothing is neither."""

    FOUND = "found"
    MISSED = "missed"
    ERROR = "error"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    key: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    n_total: int

    @property
    def shown(self) -> str:
        """`0.812 (498 of 500)`."""
        return "n/a" if self.mean is None else f"{self.mean:.3f} ({self.n} of {self.n_total})"

    @property
    def interval(self) -> str:
        return "" if self.low is None or self.high is None else f"{self.low:.3f} to {self.high:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFigure:
    tag: str
    n_questions: int
    metric: Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A question. `detail` says what is behind its status: a cause of loss, or an error with its code."""

    number: int
    key: str
    question: str
    status: Status
    first_rank: int | None = None
    detail: str = ""
    found: str = ""
    instead: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    must_pass: bool = False
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The comparison with a baseline: its name, the verdict and its sentence, and each metric's delta and interval."""

    baseline: str
    verdict: str
    sentence: str
    warnings: tuple[str, ...] = ()
    deltas: tuple[tuple[str, float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`primary` is one of `metrics`. `facts` are name and value; `ranks` are how many questions were first found in
    each band of ranks, `causes` how many each cause lost."""

    run_id: str
    name: str
    set_name: str
    state: str
    reason: str
    level: str
    k: int
    primary: str
    metrics: tuple[Metric, ...]
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    ranks: tuple[tuple[str, int], ...] = ()
    causes: Mapping[str, int] | None = None
    by_tag: tuple[TagFigure, ...] = ()
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    against: Against | None = None
    finished_at: str = ""

    def of(self, status: Status) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.status is status)

    @property
    def headline(self) -> Metric | None:
        return next((metric for metric in self.metrics if metric.key == self.primary), None)
