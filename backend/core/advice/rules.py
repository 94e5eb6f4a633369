"""All rules in their order, and the strongest of what they say.

Each is a pure function of the figures, silent where they do not carry it, with the figure in its sentence.
"""

from backend.core.advice import of_search, of_set, of_text
from backend.core.advice.figures import Figures, Thresholds
from backend.core.advice.saying import Advice, Rule

_OF_THE_SET: dict[str, Rule] = {
    "few_questions": of_set.few_questions,
    "labels_unresolved": of_set.labels_unresolved,
    "not_indexed": of_set.not_indexed,
}

# In the order of docs/advice.md.
RULES: dict[str, Rule] = _OF_THE_SET | {
    "rerank": of_search.rerank,
    "rerank_go": of_search.rerank_go,
    "rerank_no_go": of_search.rerank_no_go,
    "low_recall": of_search.low_recall,
    "low_precision": of_search.low_precision,
    "low_mrr": of_search.low_mrr,
    "low_ndcg": of_search.low_ndcg,
    "keyword_language": of_text.keyword_language,
    "keep_hybrid_codes": of_text.keep_hybrid_codes,
    "keep_hybrid_paraphrase": of_text.keep_hybrid_paraphrase,
    "multilingual": of_text.multilingual,
    "chunk_smaller": of_text.chunk_smaller,
    "chunk_larger": of_text.chunk_larger,
    "chunks_truncated": of_text.chunks_truncated,
    "prefixes": of_text.prefixes,
    "fusion_hurts": of_search.fusion_hurts,
    "ann_loss": of_search.ann_loss,
}


def advise(figures: Figures, thresholds: Thresholds | None = None) -> list[Advice]:
    """At most five, the strongest first. With fewer than 20 scored questions only what is wrong with the set."""
    limits = thresholds or Thresholds()
    rules = RULES if figures.n_scored >= limits.few_questions else _OF_THE_SET
    found = [advice for rule in rules.values() if (advice := rule(figures, limits)) is not None]
    # Sorting keeps the order of the table among equals.
    return sorted(found, key=lambda advice: -advice.strength)[: limits.most]
