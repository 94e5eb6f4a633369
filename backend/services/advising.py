"""The figures of a finished run, gathered for advice: its own, and what the other runs of its evaluation add."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from backend.core import configs, languages
from backend.core.advice import Advice, Chunks, Figures, Interval, Label, Languages, NotIndexed, advise
from backend.core.comparison import Decision, Verdict
from backend.core.configs import RetrievalConfig
from backend.core.resolving import LabelState
from backend.models import Document, Index, ResolvedLabel, Run
from backend.providers import registry
from backend.providers.base import ProviderError
from backend.queries import advice as queries
from backend.queries import comparisons
from backend.search import providers
from backend.search.types import IndexRef, SearchScope
from backend.services import diagnoses

# The rules speak of recall@5 and the like; a shallower run has no such figures, and they are silent.
K = 5
_MOST_LABELS = 20
_ENGLISH_ONLY = re.compile(
    r"english|(^|[-_/])en([-_.v]|$)|all-minilm|all-mpnet|(^|/)gte-(small|base|large)$|(^|/)e5-(small|base|large)(-v2)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A comparison of two runs: the decision, and the mean delta of the primary metric."""

    decision: Decision
    delta: float | None

    @property
    def n_needed(self) -> int | None:
        return self.decision.n_needed if self.decision.verdict is Verdict.TOO_FEW_QUESTIONS else None


def of(run: Run) -> list[Advice]:
    """At most five, the strongest first; none before the run has ended. Reads the run's rankings: about a second for
    2,000 questions, so for a page of its own rather than for lists. Of an imported run only what is said of the set:
    the rest speaks of settings that its engine does not have."""
    told = advise(figures(run)) if run.metrics and run.pruned_at is None else []
    return [one for one in told if run.mode != diagnoses.IMPORTED or one.id == "few_questions"]


def figures(run: Run) -> Figures:
    """Of a run that has its numbers. `run.evaluation` and its set version are read."""
    runs = queries.scored_by_mode(run)
    summary = diagnoses.summarise(run, k=min(K, run.top_k)).summary
    config = configs.from_stored(run.config)
    scope = SearchScope.from_json(run.evaluation.plan["scope"])
    indexes = scope.indexes_for(config.index)
    version_id = run.evaluation.question_set_version_id
    means = {key: value["mean"] for key, value in run.metrics.items() if value["mean"] is not None}
    reranked = _compared(run, runs.get("hybrid"), runs.get("hybrid_rerank"))
    leg = _better_leg(run, runs)
    fused = _compared(run, leg, runs.get("hybrid"))
    alone = queries.Alone()
    if version_id is not None and {"semantic", "keyword"} <= runs.keys() and run.top_k >= K:
        alone = queries.alone(meaning=runs["semantic"].id, words=runs["keyword"].id, version_id=version_id, k=K)
    missing = _labels(run)
    return Figures(
        n_scored=int(run.counts.get("n_scored", 0)),
        primary_metric=run.primary_metric,
        primary=_interval(run.metrics.get(run.primary_metric)),
        n_needed=next((one.n_needed for one in (reranked, fused) if one is not None and one.n_needed), None),
        metrics=means,
        # A mean of 0 says that it is 0 for every question.
        best_recall=max((mean for key, mean in means.items() if key.startswith("recall@")), default=None),
        is_graded=any(key.startswith("judged@") for key in run.metrics),
        mean_relevant=summary.mean_relevant,
        mode=config.base,
        reranker=config.reranker,
        ceiling=summary.ceiling if summary.k == K else None,
        pool_depth=config.rerank_depth,
        n_missed=summary.overall.n_missed,
        n_wrong_passage=summary.overall.n_wrong_passage,
        causes=summary.overall.causes,
        n_expectations=missing.n_expectations,
        n_unresolved=missing.n_unresolved,
        unresolved=missing.unresolved,
        not_indexed=missing.not_indexed,
        rerank_verdict=None if reranked is None else reranked.decision.verdict,
        rerank_delta=None if reranked is None else reranked.delta,
        rerank_ms=_rerank_ms(runs.get("hybrid_rerank")),
        fusion_verdict=None if fused is None else fused.decision.verdict,
        fusion_delta=None if fused is None else fused.delta,
        better_leg="" if leg is None else leg.mode,
        ann_recall=run.counts.get("ann_recall"),
        semantic_recall=_recall(runs.get("semantic")),
        keyword_recall=_recall(runs.get("keyword")),
        n_codes_by_words_alone=alone.n_codes_by_words,
        n_by_meaning_alone=alone.n_by_meaning,
        languages=Languages(
            questions=() if version_id is None else languages.of_many(queries.sample_of_questions(version_id)),
            documents=languages.of_many(queries.sample_of_documents([one.knowledge_base_id for one in indexes])),
        ),
        **_of_indexes(indexes, config),
    )


def _of_indexes(indexes: Sequence[IndexRef], config: RetrievalConfig) -> dict[str, Any]:
    """What the Indexes' settings say; over several that differ, nothing."""
    keyword = {one.language for one in indexes}
    sizes = {int(one.settings.get("chunking", {}).get("size", 0)) for one in indexes}
    embedders = {one.embedder for one in indexes}
    counted = Index.objects.filter(id__in=[one.id for one in indexes]).values_list("n_chunks", "n_chunks_truncated")
    embedder = embedders.pop() if len(embedders) == 1 else ""
    size = sizes.pop() if len(sizes) == 1 else 0
    return {
        "keyword_language": keyword.pop() if len(keyword) == 1 else "",
        "embedder": embedder,
        "embedder_is_english_only": config.needs_vector and _is_english_only(embedder),
        "overrides_prefixes": any(one.query_prefix is not None or one.document_prefix is not None for one in indexes),
        "chunks": Chunks(size=size, n=sum(n for n, _ in counted), n_truncated=sum(n for _, n in counted))
        if size
        else None,
    }


def _is_english_only(spec: str) -> bool:
    """By the model's name: nothing else tells. A model that is not known is not spoken of."""
    if not spec:
        return False
    try:
        return _ENGLISH_ONLY.search(registry.describe_embedder(spec, providers.installation()).model) is not None
    except ProviderError:
        return False


def _compared(run: Run, baseline: Run | None, candidate: Run | None) -> _Judged | None:
    if baseline is None or candidate is None:
        return None
    made = comparisons.compare(
        run.workspace, baseline=baseline.id, candidates=[candidate.id], primary_metric=run.primary_metric
    )
    (one,) = made.comparison.candidates
    return _Judged(decision=one.decision, delta=None if one.primary is None else one.primary.mean_delta)


def _better_leg(run: Run, runs: Mapping[str, Run]) -> Run | None:
    def mean(leg: Run) -> float:
        value = (leg.metrics.get(run.primary_metric) or {}).get("mean")
        return -1.0 if value is None else float(value)

    legs = [runs[mode] for mode in ("semantic", "keyword") if mode in runs]
    return max(legs, key=mean, default=None)


def _recall(run: Run | None) -> float | None:
    value = None if run is None else (run.metrics.get(f"recall@{K}") or {}).get("mean")
    return None if value is None else float(value)


def _rerank_ms(run: Run | None) -> float | None:
    value = None if run is None else run.timings.get("steps_ms", {}).get("rerank", {}).get("p50")
    return None if value is None else float(value)


def _interval(stored: Mapping[str, Any] | None) -> Interval | None:
    if stored is None or stored["mean"] is None:
        return None
    return Interval(mean=stored["mean"], low=stored["low"], high=stored["high"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labels:
    n_expectations: int = 0
    n_unresolved: int = 0
    unresolved: tuple[Label, ...] = ()
    not_indexed: tuple[NotIndexed, ...] = ()


def _labels(run: Run) -> _Labels:
    known = diagnoses.unresolved(run)
    if known is None:
        return _Labels()
    resolution, rows = known
    nothing = {LabelState.NO_DOCUMENT, LabelState.NO_PASSAGE, LabelState.NO_TEXT}
    unmatched = [row for row in rows if LabelState(row.state) in nothing]
    return _Labels(
        n_expectations=resolution.n_expectations,
        n_unresolved=len(unmatched),
        unresolved=tuple(
            Label(label=row.label, nearest=row.nearest[0] if row.nearest else "") for row in unmatched[:_MOST_LABELS]
        ),
        not_indexed=_not_indexed(rows),
    )


def _not_indexed(rows: Sequence[ResolvedLabel]) -> tuple[NotIndexed, ...]:
    ids: dict[UUID, None] = {
        key: None for row in rows if LabelState(row.state) is LabelState.NOT_INDEXED for key in row.documents
    }
    documents = Document.objects.filter(id__in=list(ids)[:_MOST_LABELS]).order_by("path")
    return tuple(NotIndexed(path=path, reason=reason) for path, reason in documents.values_list("path", "reason"))
