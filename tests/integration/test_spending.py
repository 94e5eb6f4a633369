"""Money: every paid call is counted once, and a workspace's limit refuses before and stops during."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone
from pytest_django import Settings

from backend.core.errors import ConflictError, ErrorCode, ValidationError
from backend.core.states import EvaluationState
from backend.core.types import Outcome
from backend.models import Evaluation, ProviderState, Purpose, Result, Slice, SpendEntry, SpendMonth, Workspace
from backend.providers.base import ProviderError
from backend.search import embedding, ledger, providers
from backend.services import evaluations, housekeeping, limits, pump, question_sets, runs, slices, spending, work
from backend.services.evaluation_requests import Request
from backend.services.handlers import rerank as rerank_handler
from tests.engine import drain
from tests.integration.ingest_work import new_base, states, upload
from tests.integration.search_rows import Base, Row, make_base
from tests.standins import Script, Standin

pytestmark = pytest.mark.django_db(transaction=True)

RERANKER, EMBEDDER = "http:near", "openai:standin"
PRICES = {"currency": "EUR", RERANKER: {"rerank_calls": 1.25}, EMBEDDER: {"input_tokens": 0.001}}


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Standin]:
    settings.PRICES = PRICES
    settings.SEARCH_SLOTS = 1
    with Standin(Script()) as server:
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", server.url)
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_SHAPE", "tei")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        providers.forget()
        yield server
    providers.forget()


@pytest.fixture
def base() -> Base:
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in ("heron", "otter")),
        embedder="none",
    )


def request_for(base: Base, *, n: int, **fields: Any) -> Request:
    items = [{"question": f"the heron {number}", "expected": ["heron.txt"]} for number in range(n)]
    made = question_sets.create(base.workspace, name=f"set of {n}", items=items)
    return Request(
        question_set=str(made.question_set_id),
        scope={"knowledge_base": str(base.knowledge_base.id)},
        reranker=RERANKER,
        **{"modes": ["keyword", "keyword_rerank"], **fields},
    )


def submit(base: Base, *, n: int, **fields: Any) -> Evaluation:
    return evaluations.start(base.workspace, request_for(base, n=n, **fields), now=timezone.now())


def limit(base: Base, amount: str | None) -> None:
    limits.change(base.workspace, {"spend_per_month": amount})


def spent(workspace: Workspace) -> Decimal:
    """The month's sum, which is that of its rows."""
    total = SpendMonth.objects.filter(workspace=workspace).aggregate(total=Sum("amount"))["total"] or Decimal(0)
    rows = SpendEntry.objects.filter(workspace=workspace).aggregate(total=Sum("amount"))["total"] or Decimal(0)
    assert total == rows
    return total


def ended(evaluation: Evaluation, name: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in Result.objects.filter(run__evaluation=evaluation, run__name=name):
        found[row.outcome, row.code] = found.get((row.outcome, row.code), 0) + 1
    return found


def test_each_paid_call_of_a_run_is_one_row_that_outlives_the_run(standin: Standin, base: Base) -> None:
    evaluation = submit(base, n=4)
    drain()
    assert len(standin.calls) == 4
    entries = SpendEntry.objects.filter(owner=evaluation.id)
    assert [(one.provider, one.purpose, one.amount, one.is_estimated) for one in entries] == [
        (RERANKER, Purpose.EVALUATION, Decimal("1.25"), False)
    ] * 4
    assert spent(base.workspace) == 5
    for run in evaluation.runs.all():
        runs.delete(base.workspace, run.id)
    assert spent(base.workspace) == 5


def test_what_is_answered_from_the_cache_is_not_paid_and_what_is_called_again_is(standin: Standin, base: Base) -> None:
    request = request_for(base, n=2)
    for _ in range(2):
        evaluations.start(base.workspace, request, now=timezone.now())
        drain()
    assert (len(standin.calls), spent(base.workspace)) == (2, Decimal("2.5"))
    evaluations.start(base.workspace, request_for(base, n=3, cache=False), now=timezone.now())
    drain()
    assert (len(standin.calls), spent(base.workspace)) == (5, Decimal("6.25"))


def test_work_that_is_repeated_after_its_worker_died_is_paid_as_often_as_it_was_called(
    standin: Standin, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = submit(base, n=1, cache=False)
    for _ in range(3):
        pump.run()
        for piece in Slice.objects.filter(evaluation=evaluation, state="queued").exclude(kind="rerank"):
            work.run(piece.id, delivery=piece.delivery)
    piece = Slice.objects.get(evaluation=evaluation, kind="rerank")
    lease = slices.claim(piece.id, delivery=piece.delivery)
    assert lease is not None
    with monkeypatch.context() as patched:
        # As a kill between the answer and the commit: the call was made, nothing came of it.
        patched.setattr(slices, "commit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rerank_handler.run(lease)
    slices.release(lease)
    drain()
    assert ended(evaluation, "keyword_rerank") == {(Outcome.OK, ""): 1}
    assert (len(standin.calls), spent(base.workspace)) == (2, Decimal("2.5"))


def test_a_limit_that_is_reached_stops_what_is_untried_and_keeps_what_is_scored(standin: Standin, base: Base) -> None:
    evaluation = submit(base, n=6)
    limit(base, "3")
    drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
    assert ended(evaluation, "keyword") == {(Outcome.OK, ""): 6}
    assert ended(evaluation, "keyword_rerank") == {(Outcome.OK, ""): 3, (Outcome.NOT_RUN, "SPEND_LIMIT"): 3}
    run = evaluation.runs.get(name="keyword_rerank")
    assert (run.state, run.stop_code, run.counts["n_scored"], run.counts["n_not_run"]) == (
        "scored",
        "SPEND_LIMIT",
        3,
        3,
    )
    assert "3.75 of 3.00 EUR are spent" in run.stop_reason
    assert (len(standin.calls), spent(base.workspace)) == (3, Decimal("3.75"))
    assert not ProviderState.objects.filter(provider=RERANKER).exists(), "nothing is said against the provider"
    with pytest.raises(ConflictError, match=r"3\.75 of 3\.00 EUR") as refused:
        evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    assert refused.value.code is ErrorCode.SPEND_LIMIT
    limit(base, None)
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    drain()
    assert ended(evaluation, "keyword_rerank") == {(Outcome.OK, ""): 6}
    assert (len(standin.calls), spent(base.workspace)) == (6, Decimal("7.5"))


def test_calls_under_way_when_the_limit_is_reached_are_kept(standin: Standin, base: Base) -> None:
    """They are paid for: closing their slices would throw away what was bought."""
    evaluation = submit(base, n=4, cache=False)
    for _ in range(3):
        pump.run()
        for piece in Slice.objects.filter(evaluation=evaluation, state="queued").exclude(kind="rerank"):
            work.run(piece.id, delivery=piece.delivery)
    pump.run()
    leases = [
        slices.claim(piece.id, delivery=piece.delivery)
        for piece in Slice.objects.filter(evaluation=evaluation, kind="rerank", state="queued").order_by("first")
    ]
    assert len(leases) == 4
    under_way, *_ = leases
    assert under_way is not None
    limit(base, "0")
    other = leases[1]
    assert other is not None
    rerank_handler.run(other)
    assert Slice.objects.get(id=other.slice_id).state == "given_up"
    assert Slice.objects.get(id=under_way.slice_id).state == "leased"


def test_a_submission_beyond_the_limit_is_refused_with_the_figures(standin: Standin, base: Base) -> None:
    limit(base, "4.99")
    with pytest.raises(ConflictError, match=r"up to 5\.00 EUR; of the workspace's 4\.99 .* 0\.00 are spent") as refused:
        submit(base, n=4)
    assert refused.value.code is ErrorCode.SPEND_LIMIT
    assert not Evaluation.objects.exists()
    submit(base, n=3)
    # Modes without a provider that has a price are nobody's money.
    limit(base, "0")
    submit(base, n=5, modes=["keyword"])
    with pytest.raises(ConflictError, match="limit is reached"):
        submit(base, n=1)


def test_an_ingestion_stops_at_the_limit_and_can_be_tried_again(standin: Standin) -> None:
    base = new_base({"embedding": {"embedder": EMBEDDER}})
    limits.change(base.workspace, {"spend_per_month": "0"})
    upload(base, {"heron.txt": "The heron lives in the reeds."})
    drain()
    assert states(base) == {"heron.txt": ("failed", "SPEND_LIMIT")}
    assert standin.calls == []
    limits.change(base.workspace, {"spend_per_month": None})
    upload(base, {"otter.txt": "The otter swims."})
    drain()
    assert states(base)["otter.txt"] == ("indexed", "")
    entry = SpendEntry.objects.get()
    assert (entry.purpose, entry.units["embed_calls"]) == (Purpose.INGESTION, 1.0)
    assert entry.amount == Decimal(str(entry.units["input_tokens"])) * Decimal("0.001")


def test_tokens_that_were_not_told_are_estimated_and_marked_so(standin: Standin, base: Base) -> None:
    spending.record(base.workspace.id, EMBEDDER, units={"embed_calls": 1}, estimates={"input_tokens": 40})
    spending.record(base.workspace.id, EMBEDDER, units={"embed_calls": 1, "input_tokens": 40})
    spending.record(base.workspace.id, "http:own", units={"rerank_calls": 1}, estimates={"search_units": 1})
    found = list(SpendEntry.objects.order_by("id").values_list("amount", "is_estimated", "currency"))
    assert found == [(Decimal("0.04"), True, "EUR"), (Decimal("0.04"), False, "EUR"), (None, False, "")]
    assert spent(base.workspace) == Decimal("0.08")


def test_sums_stay_exact_when_many_pay_at_once(standin: Standin, base: Base) -> None:
    def pay(_: int) -> None:
        try:
            for _ in range(10):
                spending.record(base.workspace.id, RERANKER, units={"rerank_calls": 0.1})
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(pay, range(8)))
    assert spent(base.workspace) == 10


def test_a_search_is_paid_and_stopped_as_well(standin: Standin, base: Base) -> None:
    embedding.embed_queries(base.workspace.id, EMBEDDER, ["where is the heron?"])
    assert SpendEntry.objects.get().purpose == Purpose.SEARCH
    limit(base, "0")
    with pytest.raises(ProviderError) as stopped:
        embedding.embed_queries(base.workspace.id, EMBEDDER, ["where is the otter?"])
    assert stopped.value.code is ErrorCode.SPEND_LIMIT
    assert embedding.embed_queries(base.workspace.id, EMBEDDER, ["where is the heron?"]).n_cached == 1


def test_the_limit_of_the_installation_holds_where_a_workspace_has_none(
    standin: Standin, base: Base, settings: Settings
) -> None:
    settings.SPEND_PER_MONTH = Decimal(1)
    request = request_for(base, n=1)
    with pytest.raises(ConflictError, match="up to"):
        evaluations.start(base.workspace, request, now=timezone.now())
    limit(base, "2")
    evaluations.start(base.workspace, request, now=timezone.now())


def test_another_workspace_pays_for_itself(standin: Standin, base: Base) -> None:
    spending.record(base.workspace.id, RERANKER, units={"rerank_calls": 100})
    other = Workspace.objects.create(name="other")
    limits.change(other, {"spend_per_month": 1})
    spending.check(other.id, RERANKER)
    assert ledger.month(other.id).spent == 0


def test_old_rows_are_folded_into_one_a_provider_and_the_sums_stay(standin: Standin, base: Base) -> None:
    for _ in range(3):
        spending.record(base.workspace.id, RERANKER, units={"rerank_calls": 1})
    SpendEntry.objects.update(month="2020-01-01", at="2020-01-05T00:00:00Z")
    SpendMonth.objects.update(month="2020-01-01")
    spending.record(base.workspace.id, RERANKER, units={"rerank_calls": 1})
    assert housekeeping.clean(now=timezone.now()).n_spend_entries == 2
    folded = SpendEntry.objects.get(month="2020-01-01")
    assert (folded.n_calls, folded.units, folded.amount) == (3, {"rerank_calls": 3.0}, Decimal("3.75"))
    assert spent(base.workspace) == 5
    assert housekeeping.clean(now=timezone.now()).n_spend_entries == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"spend_per_month": "-1"},
        {"spend_per_month": "much"},
        {"spend_per_month": True},
        {"spend_per_month": "NaN"},
        {"open_evaluations": 0},
        {"questions_in_flight": 1.5},
        {"wishes": 3},
    ],
)
def test_a_limit_that_cannot_be_is_refused_and_nothing_changes(base: Base, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        limits.change(base.workspace, {"open_evaluations": 7, **changes})
    base.workspace.refresh_from_db()
    assert base.workspace.limits == {}
