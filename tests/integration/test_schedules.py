"""Schedules on real tables: each slot is dealt with once, whatever clock looks at it and whenever."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from backend.core.alerts import AlertKind, AlertState
from backend.core.errors import ConflictError, ErrorCode, NotFoundError, ValidationError
from backend.core.states import EvaluationState, FiringState
from backend.models import Alert, Evaluation, Firing, Schedule, Workspace
from backend.services import knowledge_bases, question_sets, schedules
from backend.services.schedules import Settings
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = ["heron", "otter", "badger"]
# 02:00 in UTC, every night.
MADE, SLOT = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 2, 2, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def base() -> Base:
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in WORDS), embedder="none"
    )


def settings_for(base: Base, **changes: Any) -> Settings:
    items = [{"id": word, "question": f"the {word}", "expected": [f"{word}.txt"]} for word in WORDS]
    made = question_sets.create(base.workspace, name=f"golden {Schedule.objects.count()}", items=items)
    request = {
        "question_set": str(made.question_set_id),
        "scope": {"knowledge_base": str(base.knowledge_base.id)},
        "modes": ["keyword"],
    }
    return Settings(**{"name": "nightly", "request": request, "cron": "0 2 * * *", **changes})


@pytest.fixture
def nightly(base: Base) -> Schedule:
    return schedules.create(base.workspace, settings_for(base), now=MADE)


def told(schedule: Schedule) -> list[tuple[str, int, bool]]:
    return [
        (one.state, one.n_slots, one.caught_up) for one in Firing.objects.filter(schedule=schedule).order_by("slot_at")
    ]


def test_a_slot_starts_one_evaluation_and_the_next_one_waits_for_its_time(nightly: Schedule) -> None:
    assert nightly.next_run_at == SLOT
    assert schedules.fire_due(now=SLOT - timedelta(seconds=1)) == 0
    assert schedules.fire_due(now=SLOT + timedelta(seconds=3)) == 1
    assert schedules.fire_due(now=SLOT + timedelta(seconds=8)) == 0
    nightly.refresh_from_db()
    assert nightly.next_run_at == SLOT + DAY
    firing = Firing.objects.get(schedule=nightly)
    assert (firing.slot_at, firing.state, firing.caught_up) == (SLOT, FiringState.STARTED, False)
    assert firing.evaluation is not None
    assert firing.evaluation.label == "nightly"
    drain()
    firing.evaluation.refresh_from_db()
    assert firing.evaluation.state == EvaluationState.COMPLETED


@pytest.mark.parametrize("n_clocks", [2, 3])
def test_several_clocks_at_once_start_one_evaluation(nightly: Schedule, n_clocks: int) -> None:
    for night in range(4):
        gate = threading.Barrier(n_clocks)
        started: list[int] = []

        def tick(now: datetime = SLOT + night * DAY, gate: threading.Barrier = gate) -> None:
            try:
                gate.wait(timeout=20)
                started.append(schedules.fire_due(now=now))  # noqa: B023  joined within the loop
            finally:
                connection.close()

        clocks = [threading.Thread(target=tick) for _ in range(n_clocks)]
        for clock in clocks:
            clock.start()
        for clock in clocks:
            clock.join(timeout=30)
        assert sum(started) == 1
        drain()
    assert Evaluation.objects.count() == 4
    assert told(nightly) == [("started", 1, False)] * 4


@pytest.mark.parametrize(
    ("away", "expected", "n_alerts"),
    [
        (timedelta(minutes=10), [("started", 1, True)], 0),
        (timedelta(hours=5), [("started", 1, True)], 0),
        # Seven nights: the last one four hours ago.
        (timedelta(days=6, hours=4), [("missed", 6, False), ("started", 1, True)], 1),
        # The last one seven hours ago, past its grace.
        (timedelta(days=7, hours=7), [("missed", 8, False)], 1),
    ],
)
def test_what_a_dead_clock_slept_through_is_caught_up_once_or_reported(
    nightly: Schedule, away: timedelta, expected: list[tuple[str, int, bool]], n_alerts: int
) -> None:
    for _ in range(2):
        schedules.fire_due(now=SLOT + away)
    assert told(nightly) == expected
    alerts = list(Alert.objects.filter(kind=AlertKind.MISSED))
    assert [one.state for one in alerts] == [AlertState.OPEN] * n_alerts
    nightly.refresh_from_db()
    assert nightly.next_run_at is not None
    assert nightly.next_run_at > SLOT + away
    drain()
    schedules.fire_due(now=nightly.next_run_at)
    assert not Alert.objects.filter(kind=AlertKind.MISSED, state=AlertState.OPEN).exists()


def test_slots_within_the_grace_are_covered_by_the_latest(base: Base) -> None:
    hourly = schedules.create(base.workspace, settings_for(base, cron="0 * * * *"), now=MADE)
    assert schedules.fire_due(now=MADE + timedelta(hours=5, minutes=1)) == 1
    assert told(hourly) == [("covered", 4, False), ("started", 1, True)]
    assert not Alert.objects.exists()


def test_a_slot_is_skipped_while_the_one_before_still_runs_and_says_so(nightly: Schedule) -> None:
    schedules.fire_due(now=SLOT)
    assert schedules.fire_due(now=SLOT + DAY) == 0
    skipped = Firing.objects.get(state=FiringState.SKIPPED)
    assert str(Evaluation.objects.get().id) in skipped.reason
    with pytest.raises(ConflictError, match="wait for it"):
        schedules.run_now(nightly, now=SLOT + DAY)
    drain()
    assert schedules.fire_due(now=SLOT + 2 * DAY) == 1


def test_an_edit_changes_the_next_slot_and_rewrites_no_history(nightly: Schedule) -> None:
    schedules.fire_due(now=SLOT)
    drain()
    request = {**nightly.request, "modes": ["keyword", "keyword_rerank"]}
    changed = schedules.update(
        nightly, changes={"request": request, "cron": "30 4 * * *", "time_zone": "Europe/Berlin"}, now=SLOT
    )
    assert changed.next_run_at == datetime(2026, 3, 2, 3, 30, tzinfo=UTC)
    schedules.fire_due(now=changed.next_run_at)
    before, after = Firing.objects.order_by("slot_at")
    assert (before.revision, before.request["modes"]) == (1, ["keyword"])
    assert (after.revision, after.request["modes"]) == (2, ["keyword", "keyword_rerank"])
    assert before.evaluation is not None
    assert before.evaluation.runs.count() == 1


def test_another_name_leaves_a_slot_that_is_due(nightly: Schedule) -> None:
    schedules.update(nightly, changes={"name": "every night"}, now=SLOT + timedelta(minutes=1))
    assert schedules.fire_due(now=SLOT + timedelta(minutes=2)) == 1


def test_switched_off_it_sleeps_and_switched_on_it_catches_up_nothing(nightly: Schedule) -> None:
    schedules.update(nightly, changes={"enabled": False}, now=MADE)
    assert schedules.fire_due(now=SLOT) == 0
    again = schedules.update(nightly, changes={"enabled": True}, now=SLOT + 3 * DAY)
    assert again.next_run_at == SLOT + 4 * DAY
    assert told(nightly) == []


def test_run_now_leaves_the_slots_as_they_are(nightly: Schedule) -> None:
    firing = schedules.run_now(nightly, now=MADE)
    assert (firing.manual, firing.state) == (True, FiringState.STARTED)
    nightly.refresh_from_db()
    assert nightly.next_run_at == SLOT


def test_a_night_that_cannot_start_is_recorded_and_told_until_one_runs_again(nightly: Schedule, base: Base) -> None:
    index = base.knowledge_base.live_index
    base.knowledge_base.live_index = None
    base.knowledge_base.save(update_fields=["live_index"])
    assert schedules.fire_due(now=SLOT) == 0
    assert Firing.objects.get().code == ErrorCode.KB_NOT_READY
    assert Alert.objects.get().kind == AlertKind.NOT_RUN
    schedules.fire_due(now=SLOT + DAY)
    assert Alert.objects.count() == 1, "the same state is not told twice"
    base.knowledge_base.live_index = index
    base.knowledge_base.save(update_fields=["live_index"])
    assert schedules.fire_due(now=SLOT + 2 * DAY) == 1
    drain()
    assert Alert.objects.get().state == AlertState.RESOLVED


def test_faults_of_a_schedule_are_told_together(base: Base) -> None:
    given = settings_for(base, cron="0 25 * * *", time_zone="Nowhere", grace_seconds=1)
    given = Settings(name="", request={"topk": 3}, cron=given.cron, time_zone="Nowhere", grace_seconds=1)
    with pytest.raises(ValidationError) as caught:
        schedules.create(base.workspace, given, now=MADE)
    fields = [fault.field for fault in caught.value.faults]
    assert fields == [
        "name",
        "grace_seconds",
        "cron",
        "time_zone",
        "evaluation.topk",
        "evaluation.question_set",
        "evaluation.scope",
    ]


def test_a_schedule_names_only_what_is_its_workspaces(base: Base) -> None:
    given = settings_for(base)
    with pytest.raises(NotFoundError):
        schedules.create(Workspace.objects.create(name="theirs"), given, now=MADE)
    schedules.create(base.workspace, given, now=MADE)
    with pytest.raises(ConflictError):
        schedules.create(base.workspace, given, now=MADE)


def test_what_a_schedule_uses_is_deleted_by_force_only(nightly: Schedule, base: Base) -> None:
    question_set = nightly.question_set
    assert question_set is not None
    with pytest.raises(ConflictError, match="nightly"):
        question_sets.delete(question_set)
    with pytest.raises(ConflictError, match="nightly"):
        knowledge_bases.delete(base.knowledge_base)
    question_sets.delete(question_set, force=True)
    knowledge_bases.delete(base.knowledge_base, force=True)
    assert schedules.fire_due(now=SLOT) == 0
    assert Firing.objects.get().state == FiringState.FAILED


def test_a_deleted_schedule_leaves_its_evaluations(nightly: Schedule) -> None:
    schedules.fire_due(now=SLOT)
    schedules.delete(nightly, now=SLOT)
    assert Evaluation.objects.count() == 1
    assert not Firing.objects.exists()
