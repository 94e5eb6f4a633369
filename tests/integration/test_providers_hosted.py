"""Cohere and OpenAI-compatible providers against a server that speaks their formats."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.providers import openai_embed, registry
from backend.providers.base import Candidate, Embedder, ProviderError, ProviderFault, Reranker
from backend.providers.settings import ProviderSettings
from tests.standins import Fault, Script, Standin
from tests.standins.wire import embedding, overlap

TEXTS = ["Leave is 25 days a year", "The printer shows E-1042", "Coffee is on the second floor"]
CANDIDATES = [Candidate(text=text, score=1.0) for text in TEXTS]

EMBED_FAULTS = (
    Fault.NOT_THE_SHAPE,
    Fault.TOO_FEW,
    Fault.TOO_MANY,
    Fault.NOT_A_NUMBER,
    Fault.NAN,
)


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    with Standin() as server:
        yield server


@pytest.fixture
def settings(standin: Standin, tmp_path: Path) -> ProviderSettings:
    standin.set_script(Script(key="sk-right"))
    return ProviderSettings(
        model_folder=tmp_path,
        cohere_key="sk-right",
        cohere_url=standin.url,
        openai_key="sk-right",
        openai_url=f"{standin.url}/v1",
    )


@pytest.fixture(params=["openai:standin", "cohere:embed-v4.0"])
def embedder(request: pytest.FixtureRequest, settings: ProviderSettings) -> Embedder:
    return registry.embedder(request.param, settings)


@pytest.fixture
def cohere_reranker(settings: ProviderSettings) -> Reranker:
    return registry.reranker("cohere:rerank-v3.5", settings)


def answering(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    def post_json(*args: object, **kwargs: object) -> object:
        return answer

    monkeypatch.setattr(openai_embed, "post_json", post_json)


def test_vectors_come_back_in_the_order_of_the_texts(embedder: Embedder) -> None:
    result = embedder.embed_documents(TEXTS, timeout=10)

    for text, vector in zip(TEXTS, result.vectors, strict=True):
        assert vector == pytest.approx(embedding(text, dimensions=64))
    assert (result.tokens or 0) > 0


def test_no_texts_make_no_call(embedder: Embedder, standin: Standin) -> None:
    assert embedder.embed_queries([], timeout=10).vectors == ()
    assert standin.calls == []


def test_cohere_is_told_queries_from_documents_and_never_cuts(settings: ProviderSettings, standin: Standin) -> None:
    ours = registry.embedder("cohere:embed-v4.0", settings)
    ours.embed_queries(TEXTS[:1], timeout=10)
    ours.embed_documents(TEXTS[:1], timeout=10)

    assert [call.body["input_type"] for call in standin.calls] == ["search_query", "search_document"]
    assert all(call.body["truncate"] == "NONE" for call in standin.calls)
    assert all(call.body["embedding_types"] == ["float"] for call in standin.calls)


def test_cohere_gets_at_most_96_texts_a_request(settings: ProviderSettings, standin: Standin) -> None:
    result = registry.embedder("cohere:embed-v4.0", settings).embed_documents(["text"] * 200, timeout=10)

    assert [len(call.body["texts"]) for call in standin.calls] == [96, 96, 8]
    assert len(result.vectors) == 200
    assert result.tokens == 200


def test_openai_is_asked_for_floats_within_its_limits(
    settings: ProviderSettings, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_embed, "_MAX_TEXTS", 3)
    monkeypatch.setattr(openai_embed, "_MAX_BYTES", 20)
    texts = ["aa"] * 4 + ["b" * 15, "cccccc", "d" * 50]

    result = registry.embedder("openai:standin", settings).embed_documents(texts, timeout=10)

    assert [len(call.body["input"]) for call in standin.calls] == [3, 2, 1, 1]
    assert [text for call in standin.calls for text in call.body["input"]] == texts
    assert {call.body["encoding_format"] for call in standin.calls} == {"float"}
    assert len(result.vectors) == 7


def test_a_compatible_server_gets_its_models_prefixes(settings: ProviderSettings, standin: Standin) -> None:
    ours = registry.embedder("openai:nomic-embed-text", settings)
    ours.embed_queries(["leave"], timeout=10)
    ours.embed_documents(["leave"], timeout=10)

    assert [call.body["input"] for call in standin.calls] == [["search_query: leave"], ["search_document: leave"]]


def test_a_compatible_server_needs_no_key(standin: Standin, tmp_path: Path) -> None:
    standin.set_script(Script())
    settings = ProviderSettings(model_folder=tmp_path, openai_url=f"{standin.url}/v1")

    registry.embedder("openai:standin", settings).embed_queries(["leave"], timeout=10)

    assert "authorization" not in standin.calls[0].headers


@pytest.mark.parametrize("fault", EMBED_FAULTS)
def test_wrong_vectors_are_a_shape_fault(embedder: Embedder, standin: Standin, fault: Fault) -> None:
    standin.set_script(Script(fault=fault))

    with pytest.raises(ProviderError) as caught:
        embedder.embed_documents(TEXTS, timeout=10)

    assert caught.value.fault is ProviderFault.SHAPE


@pytest.mark.parametrize("fault", [Fault.DOUBLED_INDEX, Fault.OUT_OF_RANGE])
def test_wrongly_numbered_embeddings_are_a_shape_fault(
    settings: ProviderSettings, standin: Standin, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    index = 0 if fault is Fault.DOUBLED_INDEX else 7
    answer = {"data": [{"index": index, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}
    answering(monkeypatch, answer)

    with pytest.raises(ProviderError) as caught:
        registry.embedder("openai:standin", settings).embed_documents(TEXTS[:2], timeout=10)

    assert caught.value.fault is ProviderFault.SHAPE


@pytest.mark.parametrize("vectors", [[[0.0, 0.0], [1.0, 0.0]], [[1.0], [1.0, 2.0]], [[], []], [[True], [1.0]]])
def test_a_vector_without_direction_or_of_another_size_is_a_shape_fault(
    settings: ProviderSettings, monkeypatch: pytest.MonkeyPatch, vectors: list[list[float]]
) -> None:
    answer = {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}
    answering(monkeypatch, answer)

    with pytest.raises(ProviderError) as caught:
        registry.embedder("openai:standin", settings).embed_documents(TEXTS[:2], timeout=10)

    assert caught.value.fault is ProviderFault.SHAPE


@pytest.mark.parametrize(
    ("script", "fault", "retryable", "wait"),
    [
        (Script(fault=Fault.STATUS, status=400), ProviderFault.BAD_REQUEST, False, None),
        (Script(fault=Fault.STATUS, status=401), ProviderFault.AUTH, False, None),
        (Script(fault=Fault.STATUS, status=402), ProviderFault.BILLING, False, None),
        (Script(fault=Fault.STATUS, status=403), ProviderFault.AUTH, False, None),
        (Script(fault=Fault.STATUS, status=404), ProviderFault.MODEL, False, None),
        (Script(fault=Fault.STATUS, status=422), ProviderFault.BAD_REQUEST, False, None),
        (Script(fault=Fault.STATUS, status=429, retry_after="9"), ProviderFault.RATE, True, 9.0),
        (
            Script(fault=Fault.STATUS, status=429, body='{"error":{"code":"insufficient_quota","message":"x"}}'),
            ProviderFault.QUOTA,
            False,
            None,
        ),
        (Script(fault=Fault.STATUS, status=500), ProviderFault.SERVER, True, None),
        (Script(fault=Fault.STATUS, status=503, retry_after="2"), ProviderFault.SERVER, True, 2.0),
        (Script(fault=Fault.RESET), ProviderFault.SERVER, True, None),
        (Script(fault=Fault.TRUNCATED), ProviderFault.SERVER, True, None),
        (Script(fault=Fault.HTML), ProviderFault.SHAPE, True, None),
        (Script(fault=Fault.REDIRECT), ProviderFault.NOT_CONFIGURED, False, None),
    ],
)
def test_each_fault_is_told_alike_by_every_hosted_provider(
    embedder: Embedder,
    cohere_reranker: Reranker,
    standin: Standin,
    script: Script,
    fault: ProviderFault,
    retryable: bool,
    wait: float | None,
) -> None:
    standin.set_script(script)
    with pytest.raises(ProviderError) as embedding_error:
        embedder.embed_documents(TEXTS, timeout=10)
    assert len(standin.calls) == 1, "the client does not try again by itself"
    standin.set_script(script)
    with pytest.raises(ProviderError) as rerank_error:
        cohere_reranker.rerank("leave", CANDIDATES, timeout=10)
    assert len(standin.calls) == 1

    for error in (embedding_error.value, rerank_error.value):
        assert (error.fault, error.retryable, error.wait_seconds) == (fault, retryable, wait)
        assert "sk-right" not in str(error)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.DRIP, Fault.DRIP_HEADERS])
def test_the_deadline_holds_through_the_sdk_too(
    embedder: Embedder, cohere_reranker: Reranker, standin: Standin, fault: Fault
) -> None:
    embedder.embed_documents(TEXTS, timeout=10)
    standin.set_script(Script(fault=fault))

    for call in (
        lambda: embedder.embed_documents(TEXTS, timeout=0.4),
        lambda: cohere_reranker.rerank("leave", CANDIDATES, timeout=0.4),
    ):
        begun = time.monotonic()
        with pytest.raises(ProviderError) as caught:
            call()
        assert (caught.value.fault, caught.value.retryable) == (ProviderFault.TIMEOUT, True)
        assert time.monotonic() - begun < 1.5


def test_cohere_scores_come_back_in_the_candidates_order_with_their_units(
    cohere_reranker: Reranker, standin: Standin
) -> None:
    result = cohere_reranker.rerank("coffee floor", CANDIDATES, timeout=10)

    assert result.scores == pytest.approx([overlap("coffee floor", text) for text in TEXTS])
    assert result.units == {"search_units": 1.0}
    assert result.scale == "probability"


@pytest.mark.parametrize(
    "fault",
    [Fault.NOT_THE_SHAPE, Fault.TOO_FEW, Fault.TOO_MANY, Fault.NAN, Fault.DOUBLED_INDEX, Fault.OUT_OF_RANGE],
)
def test_a_wrong_cohere_ranking_is_a_shape_fault(cohere_reranker: Reranker, standin: Standin, fault: Fault) -> None:
    standin.set_script(Script(fault=fault))

    with pytest.raises(ProviderError) as caught:
        cohere_reranker.rerank("coffee", CANDIDATES, timeout=10)

    assert (caught.value.fault, caught.value.retryable) == (ProviderFault.SHAPE, False)


def test_cohere_takes_an_empty_pool_and_refuses_one_too_large(cohere_reranker: Reranker, standin: Standin) -> None:
    assert cohere_reranker.rerank("coffee", [], timeout=10).scores == ()
    with pytest.raises(ProviderError) as caught:
        cohere_reranker.rerank("coffee", CANDIDATES * 400, timeout=10)

    assert caught.value.fault is ProviderFault.BAD_REQUEST
    assert standin.calls == []
