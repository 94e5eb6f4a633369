"""What a provider asked for, and a refused key, in embedding and ingestion: nobody calls in vain."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from backend.core.states import SliceState
from backend.models import Evaluation, KnowledgeBase, ProviderState, Slice
from backend.search import providers
from backend.services import evaluations, pump, question_sets, work
from backend.services.evaluation_requests import Request
from tests.engine import drain
from tests.integration.ingest_work import ingest, new_base, states, upload
from tests.standins import Fault, Script, Standin

pytestmark = pytest.mark.django_db(transaction=True)

SPEC = "openai:standin"
HOSTED = {"embedding": {"embedder": SPEC}}


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with Standin() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        providers.forget()
        yield server
    providers.forget()


def hold(base: KnowledgeBase, *, seconds: float) -> None:
    ProviderState.objects.update_or_create(
        workspace=base.workspace,
        provider=SPEC,
        defaults={"hold_until": timezone.now() + timedelta(seconds=seconds)},
    )


def submit(base: KnowledgeBase, *, n: int, **fields: Any) -> Evaluation:
    items = [{"question": f"the heron {number}", "expected": ["heron.txt"]} for number in range(n)]
    made = question_sets.create(base.workspace, name=f"set of {n}", items=items)
    request = Request(
        question_set=str(made.question_set_id),
        scope={"knowledge_base": str(base.id)},
        **{"modes": ["semantic", "keyword"], **fields},
    )
    return evaluations.start(base.workspace, request, now=timezone.now())


def waiting(kind: str) -> list[Slice]:
    return list(Slice.objects.filter(kind=kind, state=SliceState.PENDING, not_before__gt=timezone.now()))


def test_an_ingestion_waits_for_a_hold_and_uses_no_try(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    hold(base, seconds=60)
    upload(base, {"heron.txt": "The heron lives in the reeds."})
    drain()
    assert standin.calls == []
    (piece,) = waiting("ingest")
    assert piece.tries == 0
    assert states(base) == {"heron.txt": ("pending", "")}
    hold(base, seconds=-1)
    pump.wake(piece.id)
    drain()
    assert states(base) == {"heron.txt": ("indexed", "")}


def test_questions_wait_for_a_hold_before_they_are_embedded(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    ingest(base, {"heron.txt": "The heron lives in the reeds."})
    evaluation = submit(base, n=3)
    hold(base, seconds=60)
    standin.set_script(Script())
    drain()
    assert standin.calls == []
    held = waiting("embed")
    assert held
    assert {piece.tries for piece in held} == {0}
    hold(base, seconds=-1)
    for piece in held:
        pump.wake(piece.id)
    drain()
    assert evaluation.runs.get(name="semantic").counts["n_scored"] == 3


def test_a_429_in_an_ingestion_holds_everybody(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    standin.set_script(Script(fault=Fault.STATUS, status=429, retry_after="30"))
    upload(base, {f"{number}.txt": f"Document {number}." for number in range(40)})
    drain()
    assert len(standin.calls) == 1, "the other slices have seen the hold"
    assert {piece.tries for piece in waiting("ingest")} == {0}
    until = ProviderState.objects.get(provider=SPEC).hold_until
    assert until is not None
    assert until > timezone.now() + timedelta(seconds=20)


def test_a_refused_key_is_asked_once_and_the_runs_that_need_it_stop(standin: Standin) -> None:
    base = new_base(dict(HOSTED))
    ingest(base, {"heron.txt": "The heron lives in the reeds."})
    standin.set_script(Script(key="another"))
    evaluation = submit(base, n=40)
    drain()
    assert len(standin.calls) == 1, "one slice was at work at a time"
    semantic, keyword = evaluation.runs.order_by("ordinal")
    assert (semantic.state, semantic.stop_code, semantic.counts["n_not_run"]) == ("unavailable", "PROVIDER_AUTH", 40)
    assert keyword.counts["n_scored"] == 40
    standin.set_script(Script())
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    drain()
    semantic.refresh_from_db()
    assert (semantic.state, semantic.stop_code, semantic.counts["n_scored"]) == ("scored", "", 40)


def test_a_pool_that_was_waiting_while_the_mode_stopped_makes_no_call(
    standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", standin.url)
    providers.forget()
    base = new_base()
    ingest(base, {"heron.txt": "The heron lives in the reeds."})
    evaluation = submit(base, n=4, modes=["keyword_rerank"], reranker="http:near")
    for _ in range(20):
        pump.run()
        queued = Slice.objects.filter(state=SliceState.QUEUED).exclude(kind="rerank").order_by("id")
        if not queued:
            break
        for piece in queued:
            work.run(piece.id, delivery=piece.delivery)
    evaluation.runs.update(stop_code="PROVIDER_AUTH", stop_reason="The key was refused.")
    drain()
    assert standin.calls == []
    run = evaluation.runs.get()
    assert (run.state, run.counts["n_not_run"], run.stop_reason) == ("unavailable", 4, "The key was refused.")
