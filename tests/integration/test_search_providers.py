"""Caches around the embedder and the reranker, and what is refused from either."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from backend.core.types import Passage
from backend.models import CachedEmbedding, CachedScore, Workspace
from backend.providers.base import (
    Candidate,
    Embedded,
    EmbedderInfo,
    ProviderError,
    ProviderFault,
    Reranked,
    RerankerInfo,
)
from backend.search import embedding, providers, rerank
from backend.search.types import Entry, StageRank

pytestmark = pytest.mark.django_db


class CountingEmbedder:
    """Vectors from the text's length and first letter; keeps what it was asked."""

    def __init__(self, **info: Any) -> None:
        self.info = EmbedderInfo(**{"provider": "p", "model": "m", "batch_size": 3, **info})
        self.calls: list[list[str]] = []
        self.answer: Any = None

    def embed_documents(self, texts: Sequence[str], *, timeout: float) -> Embedded:  # noqa: ARG002  the protocol's
        self.calls.append(list(texts))
        if self.answer is not None:
            return Embedded(vectors=self.answer)
        return Embedded(
            vectors=tuple((0.1, float(len(text)), float(ord(text[0]))) for text in texts), tokens=len(texts)
        )

    embed_queries = embed_documents

    def token_offsets(self, text: str) -> Sequence[int] | None:  # noqa: ARG002  the protocol's
        return None


class CountingReranker:
    """A passage's score is its length, plus the pool's size where it depends on the pool."""

    def __init__(self, **info: Any) -> None:
        self.info = RerankerInfo(**{"spec": "http:r", "provider": "http", "model": "m", **info})
        self.calls: list[list[str]] = []
        self.answer: Any = None

    def rerank(
        self,
        query: str,  # noqa: ARG002  the protocol's
        candidates: Sequence[Candidate],
        *,
        timeout: float,  # noqa: ARG002  the protocol's
    ) -> Reranked:
        self.calls.append([candidate.text for candidate in candidates])
        scores = self.answer or tuple(float(len(candidate.text)) for candidate in candidates)
        return Reranked(scores=scores, units={"search_units": 1.0})


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(name="w")


def use_embedder(monkeypatch: pytest.MonkeyPatch, embedder: CountingEmbedder) -> CountingEmbedder:
    monkeypatch.setattr(providers, "embedder", lambda *_, **__: embedder)
    return embedder


def use_reranker(monkeypatch: pytest.MonkeyPatch, reranker: CountingReranker) -> CountingReranker:
    monkeypatch.setattr(providers, "reranker", lambda *_, **__: reranker)
    return reranker


def entries(*texts: str) -> list[Entry]:
    return [
        Entry(
            passage=Passage(id=text, document_id=text, path=text, source="s", text=text),
            stages={"meaning": StageRank(rank=rank, score=1 / rank)},
        )
        for rank, text in enumerate(texts, start=1)
    ]


def test_texts_are_embedded_once_in_batches_and_then_cached(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = use_embedder(monkeypatch, CountingEmbedder())
    texts = ["a", "bb", "a", "ccc", "dddd"]
    first = embedding.embed_queries(workspace.id, "p", texts)
    assert embedder.calls == [["a", "bb", "ccc"], ["dddd"]]
    assert (first.n_cached, first.n_calls, first.tokens) == (0, 2, 4)
    assert [vector[1] for vector in first.vectors] == [1.0, 2.0, 1.0, 3.0, 4.0]
    second = embedding.embed_queries(workspace.id, "p", [*texts, "new"])
    assert embedder.calls[2:] == [["new"]]
    assert (second.n_cached, second.n_calls) == (5, 1)
    # What comes from the cache is what came from the provider, bit for bit.
    assert second.vectors[:5] == first.vectors


def test_the_cache_tells_workspaces_models_prefixes_and_kinds_apart(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Workspace.objects.create(name="other")
    embedding_calls = 0
    for info in ({}, {"model": "n"}, {"base_url": "http://x"}, {"provider": "q"}, {"query_prefix": "query: "}):
        embedder = use_embedder(monkeypatch, CountingEmbedder(**info))
        embedding.embed_queries(workspace.id, "p", ["a"])
        embedding_calls += len(embedder.calls)
    assert embedding_calls == 5
    embedder = use_embedder(monkeypatch, CountingEmbedder())
    embedding.embed_queries(other.id, "p", ["a"])
    embedding.embed_passages(workspace.id, "p", ["a"])
    assert len(embedder.calls) == 2
    assert CachedEmbedding.objects.count() == 7


def test_without_the_cache_nothing_is_read_or_kept(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = use_embedder(monkeypatch, CountingEmbedder())
    for _ in range(2):
        embedding.embed_queries(workspace.id, "p", ["a"], use_cache=False)
    assert len(embedder.calls) == 2
    assert not CachedEmbedding.objects.exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (((0.0, 0.0),), "zeros"),
        (((math.nan, 1.0),), "finite"),
        (((1e39, 1.0),), "finite"),
        (((1.0,), (1.0,)), "2 vectors for 1 texts"),
        ((), "0 vectors"),
        (((),), "sizes"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused_and_not_cached(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    use_embedder(monkeypatch, CountingEmbedder()).answer = answer
    with pytest.raises(ProviderError, match=words) as caught:
        embedding.embed_queries(workspace.id, "p", ["a"])
    assert caught.value.fault is ProviderFault.SHAPE
    assert not CachedEmbedding.objects.exists()


def test_what_was_paid_for_before_a_failure_is_kept(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = use_embedder(monkeypatch, CountingEmbedder())
    asked = 0

    def fail_at_second() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise ProviderError(ProviderFault.RATE, "slow down", retryable=True)

    texts = ["a", "bb", "ccc", "dddd"]
    with pytest.raises(ProviderError):
        embedding.embed_queries(workspace.id, "p", texts, before_call=fail_at_second)
    again = embedding.embed_queries(workspace.id, "p", texts)
    assert again.n_cached == 3
    assert embedder.calls == [["a", "bb", "ccc"], ["dddd"]]


def test_use_is_noted_at_most_once_a_day(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, CountingEmbedder())
    embedding.embed_queries(workspace.id, "p", ["a"])
    hour_ago, last_week = timezone.now() - timedelta(hours=1), timezone.now() - timedelta(days=7)
    for before, moved in ((hour_ago, False), (last_week, True)):
        CachedEmbedding.objects.update(used_at=before)
        embedding.embed_queries(workspace.id, "p", ["a"])
        assert (CachedEmbedding.objects.get().used_at > before) is moved


def test_a_packed_vector_comes_back() -> None:
    vector = (0.5, -1.25, 3.0)
    assert embedding.unpack(embedding.pack(vector)) == vector


def test_the_bundled_model_answers_and_its_prefixes_are_those_of_the_index(workspace: Workspace) -> None:
    plain = embedding.embed_queries(workspace.id, "local", ["annual leave"])
    prefixed = embedding.embed_queries(workspace.id, "local", ["annual leave"], query_prefix="query: ")
    assert len(plain.vectors[0]) == 384
    assert plain.vectors != prefixed.vectors
    assert embedding.embed_queries(workspace.id, "local", ["annual leave"]).n_cached == 1


def test_passages_are_scored_once_and_then_cached(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = use_reranker(monkeypatch, CountingReranker(max_documents=2))
    first = rerank.score_pool(workspace.id, "http:r", "q", entries("a", "bb", "a", "ccc"))
    assert reranker.calls == [["a", "bb"], ["ccc"]]
    assert first.scores == (1.0, 2.0, 1.0, 3.0)
    assert (first.n_cached, first.n_calls, first.units) == (0, 2, {"search_units": 2.0})
    # Another pool with one new passage costs one.
    second = rerank.score_pool(workspace.id, "http:r", "q", entries("dddd", "bb"))
    assert reranker.calls[2:] == [["dddd"]]
    assert second.scores == (4.0, 2.0)
    rerank.score_pool(workspace.id, "http:r", "another question", entries("bb"))
    assert reranker.calls[3:] == [["bb"]]
    rerank.score_pool(workspace.id, "http:r", "q", entries("bb"), use_cache=False)
    assert reranker.calls[4:] == [["bb"]]
    assert rerank.score_pool(workspace.id, "http:r", "q", []).scores == ()


def test_scores_that_depend_on_the_pool_are_cached_by_the_whole_pool(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = use_reranker(monkeypatch, CountingReranker(pool_dependent=True))
    for pool in (["a", "bb"], ["a", "bb"], ["bb", "a"], ["a", "bb", "ccc"]):
        rerank.score_pool(workspace.id, "http:r", "q", entries(*pool))
    assert reranker.calls == [["a", "bb"], ["bb", "a"], ["a", "bb", "ccc"]]


@pytest.mark.parametrize("answer", [(1.0,), (1.0, math.nan), (1.0, math.inf)])
def test_scores_of_the_wrong_number_or_kind_are_errors(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    use_reranker(monkeypatch, CountingReranker()).answer = answer
    with pytest.raises(ProviderError) as caught:
        rerank.score_pool(workspace.id, "http:r", "q", entries("a", "bb"))
    assert caught.value.fault is ProviderFault.SHAPE
    assert not CachedScore.objects.exists()


def test_a_passage_without_a_score_is_asked_for_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = use_reranker(monkeypatch, CountingReranker())
    reranker.answer = (None, 2.0)
    assert rerank.score_pool(workspace.id, "http:r", "q", entries("a", "bb")).scores == (None, 2.0)
    reranker.answer = None
    assert rerank.score_pool(workspace.id, "http:r", "q", entries("a", "bb")).scores == (1.0, 2.0)
    assert reranker.calls[1:] == [["a"]]


def texts(ranking: Sequence[Entry]) -> list[str]:
    return [entry.passage.text for entry in ranking]


def test_the_pool_is_reordered_and_the_rest_follows() -> None:
    pool = entries("a", "b", "c", "d", "e")
    reordered = rerank.apply(pool, [0.1, 0.9, None], depth=3)
    assert texts(reordered) == ["b", "a", "c", "d", "e"]
    assert reordered[0].stages["reranker"] == StageRank(rank=1, score=0.9)
    assert reordered[0].stages["meaning"].rank == 2
    assert "reranker" not in reordered[2].stages
    assert "reranker" not in reordered[3].stages
    assert "reranker" not in pool[0].stages


def test_equal_scores_keep_the_order_before() -> None:
    assert rerank.order([0.5, None, 0.7, 0.5, None, -1.0]) == [2, 0, 3, 5, 1, 4]
    assert rerank.order([]) == []


def test_min_score_keeps_only_what_the_reranker_gave_as_much() -> None:
    pool = entries("a", "b", "c", "d")
    assert texts(rerank.apply(pool, [0.1, 0.9, None], depth=3, min_score=0.5)) == ["b"]
    with pytest.raises(ValueError, match="as many scores"):
        rerank.apply(pool, [0.1], depth=3)
