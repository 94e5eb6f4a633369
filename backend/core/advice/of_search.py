"""What the figures of ranking say: recall, order, rerankers, fusion, approximate search."""

# ruff: noqa: ARG001  all rules have one signature

from backend.core.advice.figures import Figures, Thresholds
from backend.core.advice.saying import Advice, by
from backend.core.comparison import Verdict


def rerank(figures: Figures, limits: Thresholds) -> Advice | None:
    recall, mrr = figures.metrics.get("recall@5"), _mrr(figures)
    if figures.reranker or recall is None or mrr is None:
        return None
    if recall < limits.rerank_recall or mrr > limits.rerank_mrr:
        return None
    given = (
        f" The pool ceiling is {figures.ceiling:.2f}: so much recall@5 a perfect one could reach."
        if figures.ceiling is not None
        else ""
    )
    return Advice(
        id="rerank",
        sentence=f"The right one is found but low: recall@5 is {recall:.2f}, mrr {mrr:.2f}. Try a reranker (mode"
        f" {figures.mode or 'hybrid'}_rerank).{given}",
        strength=1.0 + (limits.rerank_mrr - mrr),
        settings=("reranker",),
    )


def rerank_go(figures: Figures, limits: Thresholds) -> Advice | None:
    if figures.rerank_verdict is not Verdict.BETTER:
        return None
    return Advice(
        id="rerank_go",
        sentence=f"hybrid_rerank is better than hybrid{by(figures.rerank_delta, figures.primary_metric)}: set the"
        f" reranker{f' ({figures.reranker})' if figures.reranker else ''}.",
        strength=1.5 + min(abs(figures.rerank_delta or 0.0), 0.49),
        settings=("reranker",),
    )


def rerank_no_go(figures: Figures, limits: Thresholds) -> Advice | None:
    if figures.rerank_verdict not in {Verdict.WORSE, Verdict.NO_DIFFERENCE_SHOWN}:
        return None
    changed = by(figures.rerank_delta, figures.primary_metric)
    told = (
        f"hybrid_rerank is worse than hybrid{changed}"
        if figures.rerank_verdict is Verdict.WORSE
        else f"hybrid_rerank shows no difference from hybrid{changed}"
    )
    cost = "" if figures.rerank_ms is None else f", which saves {figures.rerank_ms:.0f} ms a question"
    is_worse = figures.rerank_verdict is Verdict.WORSE
    return Advice(
        id="rerank_no_go",
        sentence=f"{told}: leave the reranker out{cost}.",
        strength=(1.5 if is_worse else 0.9) + min(abs(figures.rerank_delta or 0.0), 0.49),
        settings=("reranker",),
    )


def low_recall(figures: Figures, limits: Thresholds) -> Advice | None:
    recall = figures.metrics.get("recall@5")
    if recall is None or recall >= limits.low_recall:
        return None
    told = f"recall@5 is {recall:.2f}"
    if figures.ceiling is None:
        advice = "Search deeper, or chunk otherwise"
    elif figures.ceiling >= limits.low_recall:
        advice = (
            f"The pool holds it (ceiling {figures.ceiling:.2f}), only too low: chunk otherwise, so that passages say"
            " one thing each, or rerank"
        )
    else:
        depth = "" if figures.pool_depth is None else f" of {figures.pool_depth}"
        advice = (
            f"The pool{depth} does not hold it (ceiling {figures.ceiling:.2f}): search deeper, then chunk otherwise"
        )
    return Advice(
        id="low_recall",
        sentence=f"{told}. {advice}.",
        strength=1.0 + (limits.low_recall - recall),
        settings=("depth", "chunking.size"),
    )


def low_precision(figures: Figures, limits: Thresholds) -> Advice | None:
    precision, relevant = figures.metrics.get("precision@5"), figures.mean_relevant
    if precision is None or relevant is None or relevant < limits.low_precision_relevant:
        return None
    if precision >= limits.low_precision:
        return None
    return Advice(
        id="low_precision",
        sentence=f"precision@5 is {precision:.2f} with {relevant:.1f} expectations a question on average: rerank, or"
        " set a score floor.",
        strength=0.6 + (limits.low_precision - precision),
        settings=("reranker", "min_score"),
    )


def low_mrr(figures: Figures, limits: Thresholds) -> Advice | None:
    recall, mrr = figures.metrics.get("recall@5"), _mrr(figures)
    if not figures.reranker or recall is None or mrr is None or mrr >= limits.low_mrr or recall < limits.low_recall:
        return None
    return Advice(
        id="low_mrr",
        sentence=f"mrr is {mrr:.2f} though recall@5 is {recall:.2f} and {figures.reranker} reranks: try another"
        " embedding model, or rewriting questions.",
        strength=0.8 + (limits.low_mrr - mrr),
        settings=("embedding.embedder",),
    )


def low_ndcg(figures: Figures, limits: Thresholds) -> Advice | None:
    ndcg = figures.metrics.get("ndcg@5")
    if not figures.is_graded or ndcg is None or ndcg >= limits.low_ndcg:
        return None
    return Advice(
        id="low_ndcg",
        sentence=f"ndcg@5 is {ndcg:.2f}: the better ones come after the worse ones. Look at fusion, or rerank.",
        strength=0.7 + (limits.low_ndcg - ndcg),
        settings=("fusion", "reranker"),
    )


def fusion_hurts(figures: Figures, limits: Thresholds) -> Advice | None:
    if figures.fusion_verdict is not Verdict.WORSE or not figures.better_leg:
        return None
    return Advice(
        id="fusion_hurts",
        sentence=f"hybrid is worse than {figures.better_leg} alone{by(figures.fusion_delta, figures.primary_metric)}:"
        f" give {figures.better_leg} more weight in fusion, or search by it alone.",
        strength=1.4 + min(abs(figures.fusion_delta or 0.0), 0.49),
        settings=("fusion.weights", "mode"),
    )


def ann_loss(figures: Figures, limits: Thresholds) -> Advice | None:
    recall = figures.ann_recall
    if recall is None or recall >= limits.ann_recall:
        return None
    return Advice(
        id="ann_loss",
        sentence=f"Approximate search finds {recall:.3f} of what exact search finds: raise ef_search, or search exactly"
        " at this size.",
        strength=0.9 + (limits.ann_recall - recall),
        settings=("ef_search", "exact"),
    )


def _mrr(figures: Figures) -> float | None:
    """mrr has one cut a run: min(10, top_k)."""
    return next((value for key, value in figures.metrics.items() if key.startswith("mrr@")), None)
