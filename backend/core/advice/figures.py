"""The figures that advice is read from, and the thresholds it is given by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backend.core.comparison import Verdict
from backend.core.diagnosis import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label that matches nothing, as written, with the nearest name there is (or none)."""

    label: str
    nearest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotIndexed:
    """A document that is expected and not indexed, with the reason that is stored on it."""

    path: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """How the Index is cut: the usual size in characters, and how many passages the model's window cuts."""

    size: int
    n: int = 0
    n_truncated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """Detected, as language names, each of more than a stray few texts."""

    questions: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(sorted({*self.questions, *self.documents}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run, and what the other runs of its evaluation add. None, 0 or empty: not known, and no rule speaks of it.

    `metrics` are means by key. `primary` is the metric that carries the verdict, with its interval, under
    `primary_metric`; `n_needed` comes from a comparison that found too few questions. `best_recall` is the highest
    recall of any question. `ceiling` is the pool ceiling at 5. `rerank_verdict` compares `hybrid_rerank` to `hybrid`,
    `fusion_verdict` `hybrid` to its better leg, `better_leg`. The recalls by leg are at 5, each from its own run.
    """

    n_scored: int
    primary_metric: str = ""
    primary: Interval | None = None
    n_needed: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    best_recall: float | None = None
    is_graded: bool = False
    mean_relevant: float | None = None
    mode: str = ""
    reranker: str = ""
    ceiling: float | None = None
    pool_depth: int | None = None
    n_missed: int = 0
    n_wrong_passage: int = 0
    causes: Mapping[Cause, int] = field(default_factory=dict)
    n_expectations: int = 0
    n_unresolved: int = 0
    unresolved: tuple[Label, ...] = ()
    not_indexed: tuple[NotIndexed, ...] = ()
    rerank_verdict: Verdict | None = None
    rerank_delta: float | None = None
    rerank_ms: float | None = None
    fusion_verdict: Verdict | None = None
    fusion_delta: float | None = None
    better_leg: str = ""
    semantic_recall: float | None = None
    keyword_recall: float | None = None
    n_codes_by_words_alone: int = 0
    n_by_meaning_alone: int = 0
    keyword_language: str = ""
    languages: Languages = Languages()
    embedder: str = ""
    embedder_is_english_only: bool = False
    overrides_prefixes: bool = False
    chunks: Chunks | None = None
    ann_recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When each rule speaks. `difference` is what a set should be able to show, for `few_questions`."""

    most: int = 5
    few_questions: int = 20
    wide_interval: float = 0.2
    difference: float = 0.1
    rerank_recall: float = 0.85
    rerank_mrr: float = 0.7
    low_recall: float = 0.7
    low_precision: float = 0.6
    low_precision_relevant: float = 3.0
    low_mrr: float = 0.6
    low_ndcg: float = 0.6
    keyword_near_zero: float = 0.1
    keyword_share_of_semantic: float = 0.25
    keep_hybrid: int = 2
    main_cause: float = 0.5
    long_chunk: int = 1000
    short_chunk: int = 500
    weak_semantic: float = 0.7
    ann_recall: float = 0.95
