"""When a slice of the provider lane ends: what was handed out ahead is let go down by half before there is more."""

from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import Settings

from backend.core.states import Lane, SliceKind, SliceState
from backend.models import Evaluation, Slice, Workspace
from backend.services import pump
from tests.integration.test_fairness import evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def reranking(settings: Settings) -> Evaluation:
    """30 pools wait for 8 slots: 12 may be out at once, 4 of them ahead."""
    settings.PROVIDER_SLOTS = 8
    ours = Workspace.objects.create(name="ours")
    made = evaluation(ours, n_slices=30, kind=SliceKind.RERANK, lane=Lane.PROVIDER, root=False, reranker="cohere:x")
    pump.run()
    work_on(made, 8)
    return made


def work_on(owner: Evaluation, n: int) -> None:
    """So many of those that are handed out are taken by a worker."""
    taken = Slice.objects.filter(evaluation=owner, state=SliceState.QUEUED).order_by("id").values("id")[:n]
    Slice.objects.filter(id__in=list(taken.values_list("id", flat=True))).update(
        state=SliceState.LEASED, token=uuid4(), lease_until=timezone.now()
    )


def end(owner: Evaluation, n: int) -> int:
    """So many end, each followed by the next that is handed out; how many more were handed out."""
    handed = 0
    for _ in range(n):
        done = Slice.objects.filter(evaluation=owner, state=SliceState.LEASED).order_by("id").first()
        assert done is not None
        Slice.objects.filter(id=done.id).update(state=SliceState.DONE, token=None, lease_until=None)
        work_on(owner, 1)
        handed += pump.run_after(Lane.PROVIDER, evaluation_id=owner.id)
    return handed


def test_several_are_handed_out_at_once_when_half_of_those_ahead_are_taken(reranking: Evaluation) -> None:
    assert end(reranking, 1) == 0
    assert end(reranking, 1) == 2
    assert Slice.objects.filter(state__in=[SliceState.QUEUED, SliceState.LEASED]).count() == 12


def test_all_are_handed_out_in_the_end(reranking: Evaluation) -> None:
    end(reranking, 30)
    assert not Slice.objects.exclude(state=SliceState.DONE).exists()


@pytest.mark.parametrize(("lane", "slots", "n_lost"), [(Lane.SEARCH, 2, 1), (Lane.PROVIDER, 32, 9)])
def test_lost_messages_leave_no_slot_idle(settings: Settings, lane: Lane, slots: int, n_lost: int) -> None:
    """They count as handed out until the sweeper rings again, a minute later."""
    settings.SEARCH_SLOTS = settings.PROVIDER_SLOTS = slots
    made = evaluation(Workspace.objects.create(name="w"), n_slices=300, lane=lane, root=False)
    pump.run_lane(lane)
    lost = list(Slice.objects.filter(state=SliceState.QUEUED).order_by("id").values_list("id", flat=True)[:n_lost])
    n_done = 0
    while (came := Slice.objects.filter(state=SliceState.QUEUED).exclude(id__in=lost).first()) is not None:
        Slice.objects.filter(id=came.id).update(state=SliceState.DONE)
        n_done += 1
        pump.run_after(lane, evaluation_id=made.id)
    assert n_done == 300 - n_lost


def test_a_search_that_waits_is_handed_out_when_its_lane_has_a_place(reranking: Evaluation, settings: Settings) -> None:
    settings.SEARCH_SLOTS = 1
    Slice.objects.bulk_create(
        Slice(
            workspace_id=reranking.workspace_id,
            evaluation=reranking,
            kind=SliceKind.SEARCH,
            lane=Lane.SEARCH,
            items=[number],
            first=number,
            last=number,
            root=True,
        )
        for number in range(100, 105)
    )
    assert pump.run_after(Lane.PROVIDER, evaluation_id=reranking.id) == 2
    assert pump.run_after(Lane.PROVIDER, evaluation_id=reranking.id) == 0
    finish_one_search(reranking)
    assert pump.run_after(Lane.PROVIDER, evaluation_id=reranking.id) == 1


def finish_one_search(owner: Evaluation) -> None:
    done = Slice.objects.filter(evaluation=owner, lane=Lane.SEARCH, state=SliceState.QUEUED).first()
    assert done is not None
    Slice.objects.filter(id=done.id).update(state=SliceState.DONE)
