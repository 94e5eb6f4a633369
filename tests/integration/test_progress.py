"""Progress is summed from what commits noted: at every moment that is what there is."""

from typing import Any

import pytest
from django.db.models import Count, Q, Sum
from django.utils import timezone

from backend.core.states import EvaluationState, SliceState
from backend.core.types import GOOD_OUTCOMES
from backend.models import Evaluation, ProgressEntry, Result, Run, Slice
from backend.queries.evaluations import look
from backend.services import evaluations, housekeeping, pump, sweeper, work
from backend.services.evaluation_requests import Request
from tests.engine import drain
from tests.integration.search_rows import Base
from tests.integration.test_reuse import N, asked, base, standin  # noqa: F401  fixtures

pytestmark = pytest.mark.django_db(transaction=True)


def started(base: Base, asked: str, **fields: Any) -> Evaluation:  # noqa: F811
    given: dict[str, Any] = {
        "question_set": asked,
        "scope": {"knowledge_base": str(base.knowledge_base.id)},
        "modes": ["keyword", "keyword_rerank"],
        "reranker": "http:near",
        **fields,
    }
    return evaluations.start(base.workspace, Request(**given), now=timezone.now())


def there_is(evaluation: Evaluation) -> dict[tuple[Any, str], int]:
    """Results by run and ending; what was noted of them must be the same."""
    epoch = Evaluation.objects.values_list("epoch", flat=True).get(id=evaluation.id)
    counts = Q(outcome__in=GOOD_OUTCOMES) | Q(epoch__gte=epoch)
    rows = Result.objects.filter(counts, run__evaluation=evaluation).values_list("run_id", "outcome")
    entries = ProgressEntry.objects.filter(counts, run__evaluation=evaluation).values_list("run_id", "outcome")
    counted = {(run, outcome): n for run, outcome, n in rows.annotate(there=Count("id"))}
    noted = {(run, outcome): n for run, outcome, n in entries.annotate(there=Sum("n"))}
    assert noted == counted
    return counted


def steps(evaluation: Evaluation, *, most: int = 100) -> list[int]:
    """To its end or over so many slices, one by one: how many results there were after each."""
    told: list[int] = []
    while len(told) < most:
        pump.run()
        piece = Slice.objects.filter(state=SliceState.QUEUED).order_by("id").first()
        if piece is None:
            if not sweeper.advance() and not Slice.objects.filter(state=SliceState.PENDING).update(not_before=None):
                return told
            continue
        work.run(piece.id, delivery=piece.delivery)
        told.append(sum(there_is(evaluation).values()))
        assert look(evaluation.workspace, evaluation.id).progress.n_results == told[-1]
    return told


def test_it_rises_with_every_commit_to_all_there_is(base: Base, asked: str) -> None:  # noqa: F811
    evaluation = started(base, asked)
    told = steps(evaluation)
    assert told == sorted(told)
    assert {N, 2 * N} <= set(told), "searched first, then reranked one by one"
    again = started(base, asked)
    assert steps(again) == [2 * N, 2 * N], "taken over by the first slice, summed up by the second"


def test_a_cancelled_one_goes_on_where_it_was(base: Base, asked: str) -> None:  # noqa: F811
    evaluation = started(base, asked)
    assert steps(evaluation, most=1) == [0]
    evaluations.cancel(base.workspace, evaluation.id)
    drain()
    assert {outcome for _, outcome in there_is(evaluation)} == {"cancelled"}
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    assert there_is(evaluation) == {}
    assert steps(evaluation)[-1] == 2 * N


def test_what_was_noted_of_the_ended_goes_and_a_retry_begins_with_what_there_is(
    base: Base,  # noqa: F811
    asked: str,  # noqa: F811
) -> None:
    evaluation = started(base, asked)
    drain()
    keyword, reranked = Run.objects.filter(evaluation=evaluation).order_by("ordinal")
    Result.objects.filter(run=reranked, ordinal__lt=2).update(outcome="error", judged=None)
    going = started(base, asked, cache=False)
    assert steps(going, most=2)[-1] > 0
    kept = there_is(going)
    assert housekeeping.clean(now=timezone.now()).n_progress_entries > 0
    assert not ProgressEntry.objects.filter(run__evaluation=evaluation).exists()
    assert there_is(going) == kept != {}
    told = look(base.workspace, evaluation.id).progress
    assert (told.n_done, told.n_results, told.by_outcome["error"]) == (N, 2 * N, 2)
    evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    told = look(base.workspace, evaluation.id).progress
    assert (told.n_done, told.n_results, told.by_outcome["error"]) == (N - 2, 2 * N - 2, 0)
    assert there_is(evaluation) == {(keyword.id, "ok"): N, (reranked.id, "ok"): N - 2}
    assert steps(evaluation)[-1] == 2 * N
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
