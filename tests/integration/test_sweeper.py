"""What the sweeper must leave alone: what waits its turn, leases just renewed, a bad question's neighbours."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from backend.core.states import EvaluationState, SliceKind, SliceState
from backend.models import Evaluation, Pulse, Result, Slice
from backend.services import slices, sweeper
from backend.services.handlers import search
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.integration.test_engine import WORDS, expire, handed_out, submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shelves() -> Base:
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in WORDS), embedder="none"
    )


@pytest.fixture
def waiting(shelves: Base) -> list[Slice]:
    """Search slices that are handed out, the first two of them in a worker of two slots."""
    evaluation = submit(shelves, n=200)
    handed_out(evaluation, SliceKind.SEARCH)
    found = list(Slice.objects.filter(evaluation=evaluation, state=SliceState.QUEUED).order_by("id"))
    assert len(found) >= 3
    Pulse.objects.create(name="worker:search@here", at=timezone.now(), lane="search", slots=2)
    for piece in found[:2]:
        assert slices.claim(piece.id, delivery=piece.delivery) is not None
    # Rung long ago, all of them.
    Slice.objects.filter(evaluation=evaluation, queued_at__isnull=False).update(
        queued_at=timezone.now() - timedelta(seconds=settings.DOORBELL_LOST_SECONDS * 3)
    )
    return found


def states(pieces: list[Slice]) -> list[str]:
    found = dict(Slice.objects.filter(id__in=[piece.id for piece in pieces]).values_list("id", "state"))
    return [found[piece.id] for piece in pieces]


def test_a_doorbell_that_waits_behind_a_busy_lane_is_not_rung_again(waiting: list[Slice]) -> None:
    assert sweeper.ring_again() == 0
    assert states(waiting[2:]) == ["queued"] * len(waiting[2:])


def test_a_doorbell_is_lost_where_a_slot_is_free(waiting: list[Slice]) -> None:
    Slice.objects.filter(id=waiting[0].id).update(state=SliceState.DONE, token=None, lease_until=None)
    assert sweeper.ring_again() == len(waiting) - 2
    assert set(states(waiting[2:])) == {"pending"}


def test_a_doorbell_is_lost_where_a_worker_holds_only_leases_that_ran_out(waiting: list[Slice]) -> None:
    expire(waiting[0])
    assert sweeper.ring_again() == len(waiting) - 2


def test_a_doorbell_that_a_much_later_one_has_overtaken_is_lost(waiting: list[Slice]) -> None:
    Slice.objects.filter(id=waiting[0].id).update(queued_at=timezone.now())
    assert sweeper.ring_again() == len(waiting) - 2


def test_a_lease_that_is_renewed_while_the_sweeper_looks_is_no_death(waiting: list[Slice]) -> None:
    piece = Slice.objects.get(id=waiting[0].id)
    assert sweeper._died(piece.id, piece.token, child_died=False) == "gone"
    piece.refresh_from_db()
    assert (piece.state, piece.deaths) == ("leased", 0)
    assert sweeper._died(piece.id, piece.token, child_died=True) == "waiting"


def test_of_two_ticks_in_a_row_one_sweeps() -> None:
    assert sweeper.tick() is not None
    assert sweeper.tick() is None
    with connection.cursor() as cursor:
        cursor.execute("UPDATE backend_pulse SET at = at - make_interval(secs => %s)", [settings.TICK_SECONDS])
    assert sweeper.tick() is not None


def test_a_question_that_our_own_code_stumbles_over_costs_its_neighbours_nothing(
    shelves: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = search._ask

    def stumbling(lease: Any, question: Any, **named: Any) -> None:
        if question.text.endswith(" 17"):
            raise MemoryError
        inner(lease, question, **named)

    monkeypatch.setattr(search, "_ask", stumbling)
    evaluation: Evaluation = submit(shelves, n=60)
    for _ in range(4):
        drain()
        Slice.objects.update(not_before=None)
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.COMPLETED
    bad = Result.objects.exclude(outcome="ok").get()
    assert (bad.ordinal, bad.outcome, bad.code) == (17, "error", "INTERNAL")
    assert Slice.objects.filter(state=SliceState.SPLIT).exists()
