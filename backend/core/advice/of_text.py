"""What words, languages, chunks and the embedding model have to do with it."""

# ruff: noqa: ARG001  all rules have one signature

from backend.core.advice.figures import Figures, Thresholds
from backend.core.advice.saying import Advice, questions, share


def keyword_language(figures: Figures, limits: Thresholds) -> Advice | None:
    words, meaning = figures.keyword_recall, figures.semantic_recall
    if words is None or meaning is None or figures.keyword_language != "simple":
        return None
    if len(figures.languages.documents) != 1 or words > limits.keyword_near_zero:
        return None
    if words > limits.keyword_share_of_semantic * meaning or meaning == 0:
        return None
    language = figures.languages.documents[0]
    return Advice(
        id="keyword_language",
        sentence=f"Words find {words:.2f} (recall@5) where meaning finds {meaning:.2f}, and the documents are in"
        f" {language} while the keyword configuration is simple: set keyword.language to {language}, index again, run"
        " again.",
        strength=1.2 + (meaning - words) / 2,
        settings=("keyword.language",),
    )


def keep_hybrid_codes(figures: Figures, limits: Thresholds) -> Advice | None:
    n = figures.n_codes_by_words_alone
    if n < limits.keep_hybrid:
        return None
    return Advice(
        id="keep_hybrid_codes",
        sentence=f"{n:,} {questions(n)} with a code or number found by words and missed by meaning: keep hybrid.",
        strength=0.3 + share(n, figures.n_scored),
        settings=("mode",),
    )


def keep_hybrid_paraphrase(figures: Figures, limits: Thresholds) -> Advice | None:
    n = figures.n_by_meaning_alone
    if n < limits.keep_hybrid:
        return None
    return Advice(
        id="keep_hybrid_paraphrase",
        sentence=f"{n:,} {questions(n)} found by meaning and missed by words: keep hybrid, and check that the embedding"
        " model answers, since only it finds them.",
        strength=0.25 + share(n, figures.n_scored),
        settings=("mode",),
    )


def multilingual(figures: Figures, limits: Thresholds) -> Advice | None:
    languages = figures.languages.all
    if len(languages) < 2 or not figures.embedder_is_english_only:
        return None
    model = f" ({figures.embedder})" if figures.embedder else ""
    return Advice(
        id="multilingual",
        sentence=f"Questions and documents are in {len(languages)} languages ({', '.join(languages)}), and the"
        f" embedding model{model} knows English only: try a multilingual one.",
        strength=1.3,
        settings=("embedding.embedder",),
    )


def chunk_smaller(figures: Figures, limits: Thresholds) -> Advice | None:
    if figures.chunks is None or figures.chunks.size < limits.long_chunk or not _is_wrong_passage(figures, limits):
        return None
    return _chunk(figures, id="chunk_smaller", told="long", advice="try smaller ones: many short facts need them")


def chunk_larger(figures: Figures, limits: Thresholds) -> Advice | None:
    if figures.chunks is None or figures.chunks.size > limits.short_chunk or not _is_wrong_passage(figures, limits):
        return None
    return _chunk(figures, id="chunk_larger", told="short", advice="try larger ones: long explanations need them")


def _is_wrong_passage(figures: Figures, limits: Thresholds) -> bool:
    return figures.n_wrong_passage > 0 and figures.n_wrong_passage >= limits.main_cause * figures.n_missed


def _chunk(figures: Figures, *, id: str, told: str, advice: str) -> Advice | None:  # noqa: A002  Advice's own name
    if figures.chunks is None:
        return None
    return Advice(
        id=id,
        sentence=f"{figures.n_wrong_passage:,} of {figures.n_missed:,} missed questions found the right document and"
        f" the wrong passage, and chunks are {told} ({figures.chunks.size:,} characters): {advice}.",
        strength=0.8 + share(figures.n_wrong_passage, figures.n_scored),
        settings=("chunking.size",),
    )


def chunks_truncated(figures: Figures, limits: Thresholds) -> Advice | None:
    chunks = figures.chunks
    if chunks is None or not chunks.n_truncated:
        return None
    of_all = f" of {chunks.n:,}" if chunks.n else ""
    return Advice(
        id="chunks_truncated",
        sentence=f"{chunks.n_truncated:,}{of_all} chunks are longer than the embedding model's window: what is past it"
        " cannot be found by meaning. Smaller chunks, or a model with a longer window.",
        strength=0.7 + share(chunks.n_truncated, chunks.n),
        settings=("chunking.size", "embedding.embedder"),
    )


def prefixes(figures: Figures, limits: Thresholds) -> Advice | None:
    recall = figures.semantic_recall
    if not figures.overrides_prefixes or recall is None or recall >= limits.weak_semantic:
        return None
    return Advice(
        id="prefixes",
        sentence=f"Meaning finds {recall:.2f} (recall@5), and the base overrides the model's own prefixes: leave them"
        " at the model's defaults.",
        strength=1.1 + (limits.weak_semantic - recall) / 2,
        settings=("embedding.query_prefix", "embedding.document_prefix"),
    )
