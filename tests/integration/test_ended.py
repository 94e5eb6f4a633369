"""Nothing is left over after an evaluation's end, and nothing is left that never ends."""

import time
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from backend.core.errors import ErrorCode
from backend.core.states import OPEN_SLICES, EvaluationState, Lane, SliceKind
from backend.core.types import Outcome
from backend.models import Evaluation, KnowledgeBase, QuestionSet, Result, Slice, Workspace
from backend.queries import evaluations as queries
from backend.services import (
    evaluations,
    giving_up,
    knowledge_bases,
    pump,
    question_sets,
    retention,
    slices,
    sweeper,
    work,
)
from backend.services.evaluation_requests import Request
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.integration.test_fairness import evaluation as waiting_evaluation
from tests.integration.test_reuse import asked, base, evaluated, standin, submitted  # noqa: F401  fixtures

pytestmark = pytest.mark.django_db(transaction=True)


def one_slice() -> None:
    pump.run()
    piece = Slice.objects.get(state="queued")
    work.run(piece.id, delivery=piece.delivery)


def left_open(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    found = Slice.objects.filter(evaluation=evaluation, state__in=OPEN_SLICES)
    return list(found.values_list("kind", "epoch", "state"))


def test_a_cancelled_one_ends_though_its_base_and_its_set_are_deleted(base: Base, asked: str) -> None:  # noqa: F811
    one = submitted(base, asked)
    one_slice()
    evaluations.cancel(base.workspace, one.id)
    knowledge_bases.delete(KnowledgeBase.objects.get(id=base.knowledge_base.id), force=True)
    sweeper.advance()
    question_sets.delete(QuestionSet.objects.get(id=asked), force=True)
    sweeper.advance()
    drain()
    one.refresh_from_db()
    assert one.state == EvaluationState.CANCELLED


def test_who_looked_before_the_end_leaves_nothing_behind_it(base: Base, asked: str) -> None:  # noqa: F811
    one = evaluated(base, asked, modes=["keyword"])
    assert evaluations.start_aggregating(one.id) is False
    assert left_open(one) == []


def test_a_retry_closes_what_an_earlier_try_left(base: Base, asked: str) -> None:  # noqa: F811
    one = evaluated(base, asked, modes=["keyword"])
    Slice.objects.create(workspace=base.workspace, evaluation=one, kind=SliceKind.SEARCH, lane=Lane.SEARCH, items=[0])
    Result.objects.filter(run__evaluation=one, ordinal=0).update(outcome=Outcome.ERROR, judged=None, ranking=[])
    evaluations.retry(base.workspace, one.id, now=timezone.now())
    assert {epoch for _, epoch, _ in left_open(one)} == {2}


def test_what_is_left_over_is_closed_by_the_sweeper(base: Base, asked: str) -> None:  # noqa: F811
    one = evaluated(base, asked, modes=["keyword"])
    Slice.objects.create(workspace=base.workspace, evaluation=one, kind=SliceKind.SEARCH, lane=Lane.SEARCH, items=[0])
    going = submitted(base, asked)
    other = waiting_evaluation(Workspace.objects.create(name="other"), n_slices=1, n_items=50)
    assert pump.keeps_others_waiting(Lane.SEARCH, evaluation_id=other.id, n_left=40) is True
    assert sweeper.sweep().n_left_over == 1
    assert left_open(one) == []
    assert len(left_open(going)) == 1
    assert pump.keeps_others_waiting(Lane.SEARCH, evaluation_id=other.id, n_left=40) is False


def test_no_search_is_born_of_a_given_up_embedding_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_base(Row(path="heron.txt", text="about the heron"), embedder="local")  # noqa: F811
    items = [{"question": "the heron", "expected": ["heron.txt"]}]
    asked = str(question_sets.create(base.workspace, name="s", items=items).question_set_id)  # noqa: F811
    given: dict[str, Any] = {"question_set": asked, "scope": {"knowledge_base": str(base.knowledge_base.id)}}
    one = evaluations.start(base.workspace, Request(**given, modes=["semantic"]), now=timezone.now())
    one_slice()
    embed = Slice.objects.get(evaluation=one, kind=SliceKind.EMBED)
    assert slices.claim(embed.id, delivery=embed.delivery) is not None
    insert = giving_up._search_without_vectors

    def and_lingers(*arguments: Any, **named: Any) -> None:
        insert(*arguments, **named)
        time.sleep(1)

    monkeypatch.setattr(giving_up, "_search_without_vectors", and_lingers)

    def give_up() -> None:
        try:
            giving_up.give_up(Slice.objects.get(id=embed.id), code=ErrorCode.INTERNAL, reason="it broke")
        finally:
            connection.close()

    other = Thread(target=give_up)
    other.start()
    time.sleep(0.4)
    Evaluation.objects.filter(id=one.id).update(deadline_at=timezone.now() - timedelta(seconds=1))
    sweeper.end_overdue()
    other.join()
    drain()
    one.refresh_from_db()
    assert one.state in {EvaluationState.FAILED, EvaluationState.COMPLETED}
    assert left_open(one) == []


def test_one_that_was_cancelled_before_it_began_has_no_changed_documents(base: Base, asked: str) -> None:  # noqa: F811
    one = submitted(base, asked)
    evaluations.cancel(base.workspace, one.id)
    drain()
    run = one.runs.get()
    assert (run.state, run.corpus_changed) == ("cancelled", False)


def test_a_retry_with_nothing_to_ask_is_short_and_has_no_changed_documents(base: Base, asked: str) -> None:  # noqa: F811
    one = evaluated(base, asked, modes=["keyword"])
    two_days_ago = timezone.now() - timedelta(days=2)
    Evaluation.objects.filter(id=one.id).update(started_at=two_days_ago, finished_at=two_days_ago)
    base.add(Row(path="badger.txt", text="about the badger", vector=None))
    evaluations.retry(base.workspace, one.id, now=timezone.now(), allow_changed_corpus=True)
    drain()
    told = queries.detail(queries.look(base.workspace, one.id), now=timezone.now())
    assert told.evaluation.elapsed_seconds < 600
    assert not one.runs.get().corpus_changed


def test_who_follows_sees_a_new_name_and_that_rankings_are_gone(
    settings: Any,
    base: Base,  # noqa: F811
    asked: str,  # noqa: F811
) -> None:
    one = evaluated(base, asked, modes=["keyword"])
    tags = [queries.look(base.workspace, one.id).tag]
    knowledge_bases.patch(KnowledgeBase.objects.get(id=base.knowledge_base.id), name="another name")
    tags.append(queries.look(base.workspace, one.id).tag)
    settings.KEEP_EVALUATIONS = 1
    evaluated(base, asked, modes=["keyword"], cache=False)
    assert retention.prune(now=timezone.now()) == 1
    tags.append(queries.look(base.workspace, one.id).tag)
    assert len(set(tags)) == 3


def test_what_is_taken_over_says_nothing_of_the_pace(base: Base) -> None:  # noqa: F811
    items = [{"question": f"the heron {number}", "expected": ["heron.txt"]} for number in range(200)]
    many = str(question_sets.create(base.workspace, name="many", items=items).question_set_id)
    first = evaluated(base, many, modes=["keyword"])
    Result.objects.filter(run__evaluation=first, ordinal__gte=100).update(
        outcome=Outcome.ERROR, judged=None, ranking=[]
    )
    second = submitted(base, many)
    one_slice()
    told = queries.detail(queries.look(base.workspace, second.id), now=timezone.now() + timedelta(seconds=2))
    assert told.progress.n_done == 100
    assert (told.evaluation.state, told.eta_seconds, told.questions_per_second) == ("running", None, None)
