"""The http rerankers against a server that speaks their formats and breaks in every way we know of."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from backend.providers.base import Candidate, ProviderError, ProviderFault
from backend.providers.http_rerank import HttpReranker
from backend.providers.settings import HttpRerankerSettings
from tests.standins import Fault, Script, Standin
from tests.standins.wire import overlap

TEXTS = [f"Paragraph {n} about leave, pay and rule {n % 7}" for n in range(50)]
CANDIDATES = [Candidate(text=text, score=1.0 / (n + 1)) for n, text in enumerate(TEXTS)]
QUERY = "what is rule 3 about leave"


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    with Standin() as server:
        yield server


def reranker(standin: Standin, *, shape: str = "tei", key: str = "", batch_size: int | None = None) -> HttpReranker:
    model = "" if shape in {"tei", "llamacpp"} else "standin"
    return HttpReranker(
        HttpRerankerSettings(name="x", url=standin.url, shape=shape, model=model, key=key, batch_size=batch_size)
    )


def failure(standin: Standin, script: Script, *, shape: str = "tei", timeout: float = 5.0) -> ProviderError:
    standin.set_script(script)
    with pytest.raises(ProviderError) as caught:
        reranker(standin, shape=shape).rerank(QUERY, CANDIDATES[:5], timeout=timeout)
    return caught.value


@pytest.mark.parametrize("shape", ["tei", "jina", "vllm", "llamacpp", "cohere"])
def test_scores_come_back_in_the_candidates_order(standin: Standin, shape: str) -> None:
    standin.set_script(Script())

    result = reranker(standin, shape=shape).rerank(QUERY, CANDIDATES, timeout=5)

    assert result.scores == pytest.approx([overlap(QUERY, text) for text in TEXTS])


def test_tei_gets_batches_within_its_limit_and_of_even_size(standin: Standin) -> None:
    standin.set_script(Script(max_batch=32))

    reranker(standin).rerank(QUERY, CANDIDATES, timeout=5)

    assert [len(call.body["texts"]) for call in standin.calls] == [25, 25]
    assert [text for call in standin.calls for text in call.body["texts"]] == TEXTS


def test_a_batch_above_the_servers_limit_is_a_bad_request(standin: Standin) -> None:
    standin.set_script(Script(max_batch=8))

    with pytest.raises(ProviderError) as caught:
        reranker(standin).rerank(QUERY, CANDIDATES, timeout=5)
    result = reranker(standin, batch_size=8).rerank(QUERY, CANDIDATES, timeout=5)

    assert caught.value.fault is ProviderFault.BAD_REQUEST
    assert "maximum allowed batch size 8" in caught.value.message
    assert len(result.scores) == 50


def test_a_server_that_reverses_the_list_reverses_ours_across_batches(standin: Standin) -> None:
    standin.set_script(Script(order="reverse"))

    scores = reranker(standin).rerank(QUERY, CANDIDATES, timeout=5).scores

    assert list(scores) == sorted(score for score in scores if score is not None)


def test_no_candidates_make_no_call(standin: Standin) -> None:
    standin.set_script(Script())

    assert reranker(standin).rerank(QUERY, [], timeout=5).scores == ()
    assert standin.calls == []


def test_billed_units_are_kept_by_their_own_names_and_added_up(standin: Standin) -> None:
    standin.set_script(Script())

    cohere = reranker(standin, shape="cohere", batch_size=25).rerank(QUERY, CANDIDATES, timeout=5)
    jina = reranker(standin, shape="jina").rerank(QUERY, CANDIDATES, timeout=5)

    assert cohere.units == {"search_units": 2.0}
    assert jina.units["total_tokens"] > 0


def test_the_key_is_sent_and_a_wrong_one_is_an_auth_fault(standin: Standin) -> None:
    standin.set_script(Script(key="right"))

    reranker(standin, key="right").rerank(QUERY, CANDIDATES[:3], timeout=5)
    with pytest.raises(ProviderError) as caught:
        reranker(standin, key="wrong").rerank(QUERY, CANDIDATES[:3], timeout=5)

    assert caught.value.fault is ProviderFault.AUTH
    assert caught.value.fatal
    assert "wrong" not in caught.value.message


@pytest.mark.parametrize(
    ("status", "fault", "retryable"),
    [
        (401, ProviderFault.AUTH, False),
        (402, ProviderFault.BILLING, False),
        (403, ProviderFault.AUTH, False),
        (404, ProviderFault.MODEL, False),
        (413, ProviderFault.BAD_REQUEST, False),
        (422, ProviderFault.BAD_REQUEST, False),
        (429, ProviderFault.RATE, True),
        (500, ProviderFault.SERVER, True),
        (503, ProviderFault.SERVER, True),
    ],
)
def test_a_refusal_is_told_by_its_status(standin: Standin, status: int, fault: ProviderFault, retryable: bool) -> None:
    error = failure(standin, Script(fault=Fault.STATUS, status=status))

    assert (error.fault, error.retryable, error.wait_seconds) == (fault, retryable, None)
    assert f"scripted {status}" in error.message or fault is ProviderFault.AUTH
    assert len(standin.calls) == 1, "a provider does not try again by itself"


def test_the_wait_asked_for_is_passed_on_in_seconds_and_as_a_date(standin: Standin) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)

    seconds = failure(standin, Script(fault=Fault.STATUS, status=429, retry_after="12"))
    date = failure(standin, Script(fault=Fault.STATUS, status=503, retry_after=moment))

    assert seconds.wait_seconds == 12.0
    assert date.wait_seconds == pytest.approx(40, abs=3)


@pytest.mark.parametrize(
    "fault",
    [
        Fault.NOT_THE_SHAPE,
        Fault.TOO_FEW,
        Fault.TOO_MANY,
        Fault.NAN,
        Fault.NOT_A_NUMBER,
        Fault.DOUBLED_INDEX,
        Fault.OUT_OF_RANGE,
    ],
)
@pytest.mark.parametrize("shape", ["tei", "jina"])
def test_a_200_with_the_wrong_content_is_a_shape_fault(standin: Standin, fault: Fault, shape: str) -> None:
    error = failure(standin, Script(fault=fault), shape=shape)

    assert (error.fault, error.retryable) == (ProviderFault.SHAPE, False)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.HTML, ProviderFault.SHAPE),
        (Fault.RESET, ProviderFault.SERVER),
        (Fault.TRUNCATED, ProviderFault.SERVER),
    ],
)
def test_a_broken_connection_or_a_gateways_page_may_be_tried_again(
    standin: Standin, fault: Fault, expected: ProviderFault
) -> None:
    error = failure(standin, Script(fault=fault))

    assert (error.fault, error.retryable) == (expected, True)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.DRIP, Fault.DRIP_HEADERS])
def test_the_deadline_ends_the_call_however_the_server_dawdles(standin: Standin, fault: Fault) -> None:
    begun = time.monotonic()
    error = failure(standin, Script(fault=fault), timeout=0.5)

    assert (error.fault, error.retryable) == (ProviderFault.TIMEOUT, True)
    assert time.monotonic() - begun < 1.0


def test_the_deadline_bounds_all_batches_together(standin: Standin) -> None:
    standin.set_script(Script(latency_seconds=0.3))
    begun = time.monotonic()

    with pytest.raises(ProviderError) as caught:
        reranker(standin, batch_size=5).rerank(QUERY, CANDIDATES, timeout=0.8)

    assert caught.value.fault is ProviderFault.TIMEOUT
    assert time.monotonic() - begun < 1.3


def test_a_redirect_is_not_followed(standin: Standin) -> None:
    error = failure(standin, Script(fault=Fault.REDIRECT))

    assert error.fault is ProviderFault.NOT_CONFIGURED
    assert [call.path for call in standin.calls] == ["/rerank"]


def test_an_answer_above_the_size_limit_is_cut_off(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.providers.transport.MAX_RESPONSE_BYTES", 50)

    assert failure(standin, Script()).fault is ProviderFault.SHAPE


def test_a_server_that_is_not_there_may_be_tried_again() -> None:
    with Standin() as gone:
        pass

    with pytest.raises(ProviderError) as caught:
        reranker(gone).rerank(QUERY, CANDIDATES[:3], timeout=5)

    assert (caught.value.fault, caught.value.retryable) == (ProviderFault.SERVER, True)
    assert caught.value.message.startswith("http:x: The provider cannot be reached")


def test_a_server_that_dies_after_some_calls_answered_those(standin: Standin) -> None:
    standin.set_script(Script(die_after=2))
    ours = reranker(standin)
    for _ in range(2):
        ours.rerank(QUERY, CANDIDATES[:3], timeout=5)

    with pytest.raises(ProviderError) as caught:
        ours.rerank(QUERY, CANDIDATES[:3], timeout=5)

    assert (caught.value.fault, caught.value.retryable) == (ProviderFault.SERVER, True)


def test_a_fault_that_ends_is_over(standin: Standin) -> None:
    failure(standin, Script(fault=Fault.STATUS, status=500, n_faults=1))

    assert len(reranker(standin).rerank(QUERY, CANDIDATES[:3], timeout=5).scores) == 3


def test_many_threads_share_the_client_and_wait_side_by_side(standin: Standin) -> None:
    standin.set_script(Script(latency_seconds=0.3))
    ours = reranker(standin)

    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(lambda _: ours.rerank(QUERY, CANDIDATES[:5], timeout=5), range(20)))

    assert len({result.scores for result in results}) == 1
    assert standin.max_in_flight >= 16
