"""The same evaluation again: what nothing has changed for is taken over, and everything else is asked."""

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django import Settings

from backend.core.errors import ConflictError
from backend.core.states import EvaluationState, SliceKind
from backend.core.types import Outcome
from backend.models import Evaluation, Index, IndexedDocument, QuestionSet, Result, Run, Slice
from backend.queries import reused
from backend.search import providers
from backend.services import evaluation_requests, evaluations, gates, question_sets, retention, reuse
from backend.services.evaluation_requests import Request
from backend.services.handlers import prepare
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.standins import Script, Standin

pytestmark = pytest.mark.django_db(transaction=True)
N = 5


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with Standin(Script()) as server:
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", server.url)
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_SHAPE", "tei")
        providers.forget()
        yield server
    providers.forget()


@pytest.fixture
def base(standin: Standin) -> Base:
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in ("heron", "otter")),
        embedder="none",
    )


@pytest.fixture
def asked(base: Base) -> str:
    items = [{"question": f"the heron {number}", "expected": ["heron.txt"]} for number in range(N)]
    return str(question_sets.create(base.workspace, name="birds", items=items).question_set_id)


def evaluated(base: Base, asked: str, **fields: Any) -> Evaluation:
    """Submitted, and worked on to its end."""
    given: dict[str, Any] = {
        "question_set": asked,
        "scope": {"knowledge_base": str(base.knowledge_base.id)},
        "modes": ["keyword", "keyword_rerank"],
        "reranker": "http:near",
        **fields,
    }
    evaluation = evaluations.start(base.workspace, Request(**given), now=timezone.now())
    drain()
    # What waits before it is tried again waits no longer.
    while Slice.objects.filter(state="pending").update(not_before=None):
        drain()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
    return evaluation


def rows(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    found = Result.objects.filter(run__evaluation=evaluation).order_by("run__ordinal", "ordinal")
    return list(
        found.values_list(
            "run__name", "ordinal", "question_key", "outcome", "first_rank", "judged", "ranking", "cut", "depth"
        )
    )


def n_reused(evaluation: Evaluation) -> list[int]:
    return [reused.n_reused(run) for run in evaluation.runs.order_by("ordinal")]


def test_the_same_again_takes_everything_over_and_searches_nothing(standin: Standin, base: Base, asked: str) -> None:
    first = evaluated(base, asked)
    n_calls = len(standin.calls)
    second = evaluated(base, asked)
    assert rows(second) == rows(first)
    assert len(rows(first)) == 2 * N
    for earlier, run in zip(first.runs.order_by("ordinal"), second.runs.order_by("ordinal"), strict=True):
        assert run.metrics == earlier.metrics
        assert run.timings == earlier.timings, "latencies are those that were measured"
        assert run.cost == {"reused": float(N)}, "what was paid then was not paid again"
        assert run.origin["reused_from"] == str(earlier.id)
        assert "reused_from" not in earlier.origin
    assert len(standin.calls) == n_calls == N
    kinds = set(Slice.objects.filter(evaluation=second).values_list("kind", flat=True))
    assert kinds == {SliceKind.PREPARE, SliceKind.AGGREGATE}


def runs_of(evaluation: Evaluation) -> list[Run]:
    return list(evaluation.runs.order_by("ordinal"))


def test_a_third_takes_over_from_the_run_that_was_measured_while_that_is_there(base: Base, asked: str) -> None:
    first, second, third = (evaluated(base, asked) for _ in range(3))
    assert [run.origin["reused_from"] for run in runs_of(third)] == [str(run.id) for run in runs_of(first)]
    assert rows(third) == rows(second)
    # A copy of a copy, as an earlier release left it.
    copied = runs_of(third)[0]
    copied.origin["reused_from"] = str(runs_of(second)[0].id)
    copied.save(update_fields=["origin"])
    assert reused.measured_in(copied) == str(runs_of(first)[0].id)
    fourth = evaluated(base, asked)
    assert runs_of(fourth)[0].origin["reused_from"] == str(runs_of(first)[0].id)
    first_id = runs_of(first)[0].id
    first.delete()
    for _ in range(2):
        assert runs_of(evaluated(base, asked))[0].origin["reused_from"] == str(runs_of(fourth)[0].id)
    assert reused.measured_in(copied) == str(first_id)


def test_a_later_measurement_of_the_same_comes_before_the_first(base: Base, asked: str) -> None:
    evaluated(base, asked)
    anew = evaluated(base, asked, cache=False)
    assert runs_of(evaluated(base, asked))[0].origin["reused_from"] == str(runs_of(anew)[0].id)


def test_a_copy_that_had_to_ask_some_is_the_source_of_the_next(base: Base, asked: str) -> None:
    first = evaluated(base, asked)
    failed = Result.objects.filter(run__evaluation=first, ordinal=1, run__ordinal=1)
    failed.update(outcome=Outcome.ERROR, code="PROVIDER_UNAVAILABLE", judged=None, ranking=[])
    completed = evaluated(base, asked)
    third = evaluated(base, asked)
    assert n_reused(third) == [N, N]
    sources = [run.origin["reused_from"] for run in runs_of(third)]
    assert sources == [str(runs_of(first)[0].id), str(runs_of(completed)[1].id)]


def test_a_gate_says_that_a_latency_was_measured_earlier_and_that_nothing_was_paid(base: Base, asked: str) -> None:
    rules = gates.parse([{"rule": "latency", "most": 60_000}, {"rule": "spend", "most": 0}])
    for is_told in (False, True):
        evaluation = evaluated(base, asked, modes=["keyword"])
        latency, spend, _ = gates.check(base.workspace, runs_of(evaluation)[:1], rules).report.results
        assert ("measured then" in latency.sentence) == is_told
        assert (spend.status, spend.sentence) == ("kept", "keyword: it cost 0.0000, at most 0 is allowed")


def test_without_the_cache_everything_is_asked_again(base: Base, asked: str) -> None:
    first = evaluated(base, asked)
    second = evaluated(base, asked, cache=False)
    assert n_reused(second) == [0, 0]
    assert rows(second) == rows(first)


def test_what_was_not_answered_is_asked_and_the_rest_taken_over(base: Base, asked: str) -> None:
    first = evaluated(base, asked)
    failed = Result.objects.filter(run__evaluation=first, ordinal__in=[1, 3], run__ordinal=1)
    failed.update(outcome=Outcome.ERROR, code="PROVIDER_UNAVAILABLE", judged=None, ranking=[])
    second = evaluated(base, asked)
    assert n_reused(second) == [N, N - 2]
    assert [row[3] for row in rows(second)] == [Outcome.OK] * 2 * N


def test_a_mode_that_was_not_run_before_is_asked_alone(base: Base, asked: str) -> None:
    evaluated(base, asked, modes=["keyword"])
    assert n_reused(evaluated(base, asked)) == [N, 0]


def test_large_sets_are_taken_over_in_blocks(monkeypatch: pytest.MonkeyPatch, base: Base, asked: str) -> None:
    monkeypatch.setattr(reuse, "AT_ONCE", 2)
    first = evaluated(base, asked)
    second = evaluated(base, asked)
    assert n_reused(second) == [N, N]
    assert rows(second) == rows(first)


def _documents(base: Base, asked: str) -> dict[str, Any]:
    base.add(Row(path="badger.txt", text="about the heron and the badger", vector=None))
    return {}


def _index(base: Base, asked: str) -> dict[str, Any]:
    Index.objects.filter(id=base.index.id).update(generation=base.index.generation + 1)
    return {}


def _questions(base: Base, asked: str) -> dict[str, Any]:
    more = [{"question": "the otter", "expected": ["otter.txt"]}]
    question_sets.add_questions(QuestionSet.objects.get(id=asked), more)
    return {}


def _pruned(base: Base, asked: str) -> dict[str, Any]:
    Run.objects.update(pruned_at=timezone.now())
    return {}


def _mixed(base: Base, asked: str) -> dict[str, Any]:
    Run.objects.update(corpus_changed=True)
    return {}


def _code(base: Base, asked: str) -> dict[str, Any]:
    Run.objects.update(code_version="older")
    return {}


def _definitions(base: Base, asked: str) -> dict[str, Any]:
    Run.objects.update(metric_definitions="0")
    return {}


def _top_k(base: Base, asked: str) -> dict[str, Any]:
    return {"top_k": 7}


def _depth(base: Base, asked: str) -> dict[str, Any]:
    return {
        "modes": [],
        "configurations": [
            {"mode": "keyword", "depth": 77},
            {"mode": "keyword_rerank", "reranker": "http:near", "rerank_depth": 7},
        ],
    }


def _scope(base: Base, asked: str) -> dict[str, Any]:
    return {"scope": {"knowledge_base": str(base.knowledge_base.id), "source": "files"}}


CHANGES: list[Callable[[Base, str], dict[str, Any]]] = [
    _documents,
    _index,
    _questions,
    _pruned,
    _mixed,
    _code,
    _definitions,
    _top_k,
    _depth,
    _scope,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_whatever_a_result_depends_on_makes_it_asked_again(
    base: Base, asked: str, change: Callable[[Base, str], dict[str, Any]]
) -> None:
    evaluated(base, asked)
    assert n_reused(evaluated(base, asked, **change(base, asked))) == [0, 0]


def test_another_server_behind_a_reranker_is_asked_and_the_other_mode_taken_over(
    monkeypatch: pytest.MonkeyPatch, base: Base, asked: str
) -> None:
    evaluated(base, asked)
    with Standin(Script()) as other:
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", other.url)
        providers.forget()
        assert n_reused(evaluated(base, asked)) == [N, 0]
        assert len(other.calls) == N


def test_a_reranker_that_is_not_set_up_any_more_costs_its_own_mode_alone(
    monkeypatch: pytest.MonkeyPatch, base: Base, asked: str
) -> None:
    evaluated(base, asked)
    resolve = evaluation_requests.resolve

    def and_then_it_goes(*given: Any) -> Any:
        found = resolve(*given)
        monkeypatch.delenv("TOUCHSTONE_RERANK_NEAR_URL")
        providers.forget()
        return found

    monkeypatch.setattr("backend.services.evaluations.resolve", and_then_it_goes)
    second = evaluated(base, asked)
    assert n_reused(second) == [N, 0]
    assert [run.state for run in second.runs.order_by("ordinal")] == ["scored", "unavailable"]


def test_results_of_two_servers_are_a_source_for_nobody(
    monkeypatch: pytest.MonkeyPatch, standin: Standin, base: Base, asked: str
) -> None:
    first = evaluated(base, asked, modes=["keyword_rerank"])
    Result.objects.filter(run__evaluation=first, ordinal__lt=3).update(outcome=Outcome.ERROR, judged=None, ranking=[])
    with Standin(Script()) as other:
        monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", other.url)
        providers.forget()
        evaluations.retry(base.workspace, first.id, now=timezone.now())
        drain()
        assert len(other.calls) == 3
    monkeypatch.setenv("TOUCHSTONE_RERANK_NEAR_URL", standin.url)
    providers.forget()
    assert n_reused(evaluated(base, asked, modes=["keyword_rerank"])) == [0]


def submitted(base: Base, asked: str) -> Evaluation:
    given: dict[str, Any] = {"question_set": asked, "scope": {"knowledge_base": str(base.knowledge_base.id)}}
    return evaluations.start(base.workspace, Request(**given, modes=["keyword"]), now=timezone.now())


def test_what_was_taken_over_before_a_death_is_dropped_when_documents_change(
    monkeypatch: pytest.MonkeyPatch, base: Base, asked: str
) -> None:
    evaluated(base, asked, modes=["keyword"])
    second = submitted(base, asked)
    with monkeypatch.context() as broken:
        broken.setattr(prepare, "insert_roots", lambda *_, **__: 1 / 0)
        drain()
    assert Result.objects.filter(run__evaluation=second).count() == N
    base.add(Row(path="badger.txt", text="the heron the heron the heron 0 1 2 3 4", vector=None))
    Slice.objects.filter(state="pending").update(not_before=None)
    drain()
    truth = evaluated(base, asked, modes=["keyword"], cache=False)
    assert (rows(second), n_reused(second)) == (rows(truth), [0])
    run, true = second.runs.get(), truth.runs.get()
    assert (run.metrics, run.generations, run.corpus_changed) == (true.metrics, true.generations, False)
    assert "reused_from" not in run.origin


def test_a_second_attempt_names_a_source_that_there_was_not_before(
    monkeypatch: pytest.MonkeyPatch, base: Base, asked: str
) -> None:
    evaluated(base, asked, modes=["keyword"])
    given: dict[str, Any] = {"question_set": asked, "scope": {"knowledge_base": str(base.knowledge_base.id)}}
    request = Request(**given, modes=["keyword", "keyword_rerank"], reranker="http:near")
    second = evaluations.start(base.workspace, request, now=timezone.now())
    with monkeypatch.context() as broken:
        broken.setattr(prepare, "insert_roots", lambda *_, **__: 1 / 0)
        drain()
    Slice.objects.filter(evaluation=second).update(not_before=timezone.now() + timedelta(hours=1))
    other = evaluations.start(
        base.workspace, Request(**given, modes=["keyword_rerank"], reranker="http:near"), now=timezone.now()
    )
    drain()
    Slice.objects.filter(state="pending").update(not_before=None)
    drain()
    assert n_reused(second) == [N, N]
    assert second.runs.get(ordinal=1).origin["reused_from"] == str(other.runs.get().id)


def test_a_retry_after_a_cancelled_take_over_asks_no_other_documents(
    monkeypatch: pytest.MonkeyPatch, base: Base, asked: str
) -> None:
    first = evaluated(base, asked, modes=["keyword"])
    Result.objects.filter(run__evaluation=first, ordinal=4).update(outcome=Outcome.ERROR, judged=None, ranking=[])
    second = submitted(base, asked)
    take = reuse.take

    def and_cancelled(*given: Any, **named: Any) -> int:
        evaluations.cancel(base.workspace, second.id)
        return take(*given, **named)

    monkeypatch.setattr(reuse, "take", and_cancelled)
    drain()
    second.refresh_from_db()
    assert (second.state, n_reused(second)) == ("cancelled", [N - 1])
    base.add(Row(path="badger.txt", text="the heron the heron the heron 0 1 2 3 4", vector=None))
    IndexedDocument.objects.create(
        index=base.index, document=base.documents["badger.txt"], bytes_hash="1" * 64, generation=2, n_chunks=1
    )
    with pytest.raises(ConflictError, match="The documents have changed"):
        evaluations.retry(base.workspace, second.id, now=timezone.now())
    evaluations.retry(base.workspace, second.id, now=timezone.now(), allow_changed_corpus=True)
    drain()
    assert second.runs.get().corpus_changed


def test_a_run_that_is_being_pruned_is_no_source_and_is_pruned_to_its_end(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, base: Base, asked: str
) -> None:
    settings.KEEP_EVALUATIONS = 1
    first = evaluated(base, asked, modes=["keyword"])
    evaluated(base, asked, modes=["keyword"], top_k=3)
    kept = Result.objects.filter(run__evaluation=first).exclude(ranking=[])
    with monkeypatch.context() as broken:
        broken.setattr(retention, "_BATCH", 2)
        n_batches = itertools.count()
        update = QuerySet.update

        def dies(rows: Any, **changes: Any) -> int:
            if "cut" in changes and next(n_batches):
                raise ConnectionError("the process was killed")
            return update(rows, **changes)

        broken.setattr(QuerySet, "update", dies)
        with pytest.raises(ConnectionError):
            retention.prune(now=timezone.now())
    assert kept.count() == N - 2
    assert n_reused(evaluated(base, asked, modes=["keyword"])) == [0]
    with pytest.raises(ConflictError, match="rankings of this run were removed"):
        evaluations.retry(base.workspace, first.id, now=timezone.now())
    retention.prune(now=timezone.now())
    assert kept.count() == 0


def test_what_is_tried_again_just_now_is_not_pruned(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, base: Base, asked: str
) -> None:
    settings.KEEP_EVALUATIONS = 1
    first = evaluated(base, asked, modes=["keyword"])
    evaluated(base, asked, modes=["keyword"], top_k=3)
    mark = retention._mark

    def after_a_retry(run_id: Any, evaluation_id: Any, **named: Any) -> bool:
        if evaluation_id == first.id:
            evaluations.retry(base.workspace, first.id, now=timezone.now())
        return mark(run_id, evaluation_id, **named)

    monkeypatch.setattr(retention, "_mark", after_a_retry)
    assert retention.prune(now=timezone.now()) == 0
    drain()
    run = first.runs.get()
    assert (run.state, run.pruned_at) == ("scored", None)
