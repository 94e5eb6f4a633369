"""A schedule's evaluations checked as they end: gates, alerts with their cause, and messages that arrive."""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from pytest_django import Settings as DjangoSettings

from backend.core.alerts import AlertKind, AlertState, DeliveryState, TargetKind
from backend.core.errors import ConflictError, ValidationError
from backend.core.gates import Outcome
from backend.core.states import JobKind
from backend.models import (
    Alert,
    AlertTarget,
    Baseline,
    Chunk,
    Delivery,
    Evaluation,
    Firing,
    Gate,
    GateCheck,
    IndexedDocument,
    Job,
    ProviderState,
    Result,
    Run,
    Schedule,
)
from backend.services import (
    alert_targets,
    alerts,
    baselines,
    closings,
    evaluations,
    gates,
    question_sets,
    retention,
    runs,
    schedules,
    webhooks,
)
from backend.services.schedules import Settings
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = ["heron", "otter", "badger", "lynx", "marten", "stoat"]
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES: list[dict[str, Any]] = [{"rule": "floor", "metric": "hit@10", "least": 0.9}, {"rule": "drop", "most": 0.05}]


@pytest.fixture
def base() -> Base:
    made = make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in WORDS), embedder="none"
    )
    for document in made.documents.values():
        indexed(made, document.path)
    return made


def indexed(base: Base, path: str) -> None:
    IndexedDocument.objects.create(
        index=base.index,
        document=base.documents[path],
        bytes_hash=hashlib.sha256(path.encode()).hexdigest(),
        generation=1,
        n_chunks=1,
    )


@pytest.fixture
def receiver(settings: DjangoSettings) -> Iterator[Receiver]:
    settings.URL_ALLOW = ["127.0.0.1"]
    settings.ALERT_RETRY_SECONDS = 0.1
    with Receiver() as running:
        yield running


@pytest.fixture
def nightly(base: Base) -> Schedule:
    items = [{"id": word, "question": f"the {word}", "expected": [f"{word}.txt"]} for word in WORDS]
    made = question_sets.create(base.workspace, name="golden", items=items)
    request = {
        "question_set": str(made.question_set_id),
        "scope": {"knowledge_base": str(base.knowledge_base.id)},
        "modes": ["keyword"],
    }
    return schedules.create(base.workspace, Settings(name="nightly", request=request, cron="0 2 * * *"), now=MADE)


@pytest.fixture
def gate(nightly: Schedule) -> Gate:
    return gates.create(nightly.workspace, name="merge", rules=RULES, schedule=nightly)


@pytest.fixture
def target(base: Base, receiver: Receiver) -> AlertTarget:
    return alert_targets.create(base.workspace, name="hook", kind=TargetKind.WEBHOOK, address=receiver.url)


@pytest.fixture
def night(nightly: Schedule) -> Callable[[], Evaluation]:
    """Runs the schedule, and all that follows."""

    def run() -> Evaluation:
        firing = schedules.run_now(nightly, now=timezone.now())
        drain()
        assert firing.evaluation is not None
        firing.evaluation.refresh_from_db()
        return firing.evaluation

    return run


def lose(base: Base, *words: str) -> None:
    for word in words:
        Chunk.objects.filter(index=base.index, path=f"{word}.txt").delete()
        IndexedDocument.objects.filter(index=base.index, document__path=f"{word}.txt").delete()
    base.add()


def restore(base: Base, *words: str) -> None:
    for word in words:
        indexed(base, f"{word}.txt")
    base.add(*(Row(path=f"{word}.txt", text=f"about the {word}", vector=None) for word in words))


def approve(evaluation: Evaluation) -> Baseline:
    return baselines.approve(evaluation.workspace, evaluation.runs.get().id, approved_by="a person", now=timezone.now())


def drain_for(seconds: float, until: Callable[[], bool]) -> None:
    """Messages wait between attempts."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        drain()
        time.sleep(0.05)
    assert until()


def test_lost_answers_alert_with_their_cause_once_and_tell_when_they_are_back(
    base: Base, night: Callable[[], Evaluation], gate: Gate, target: AlertTarget, receiver: Receiver
) -> None:
    well = night()
    approve(well)
    assert GateCheck.objects.get().outcome == Outcome.UNCHECKED, "no baseline had been approved"
    assert [event for event, _ in receiver.events] == ["opened"]
    night()
    assert GateCheck.objects.order_by("-id")[0].outcome == Outcome.PASSED
    assert [event for event, _ in receiver.events] == ["opened", "resolved"]
    lose(base, "heron", "lynx")
    base.add(Row(path="new.txt", text="nothing of it", vector=None))
    indexed(base, "new.txt")
    broken = night()
    assert GateCheck.objects.order_by("-id")[0].outcome == Outcome.BROKEN
    floor = next(one.json for one in receiver.received[2:] if "hit@10" in one.json["title"])
    assert (floor["kind"], floor["evaluation"], floor["schedule"]) == ("gate", str(broken.id), "nightly")
    assert floor["because"] == ["corpus +1, -2 documents", "labels same", "configuration same"]
    assert floor["lost"] == [{"id": "heron"}, {"id": "lynx"}]
    assert "the heron" not in receiver.received[-1].body.decode()
    assert len(receiver.events) == 4
    night()
    assert len(receiver.events) == 4, "a rule that stays broken is told once"
    restore(base, "heron", "lynx")
    night()
    assert sorted(event for event, _ in receiver.events[4:]) == ["resolved", "resolved"]
    assert not Alert.objects.filter(state=AlertState.OPEN).exists()


def test_a_closing_is_checked_once_however_often_it_is_asked_for(
    night: Callable[[], Evaluation], gate: Gate, target: AlertTarget, receiver: Receiver
) -> None:
    evaluation = night()
    n = len(receiver.received)
    closings.announce(evaluation.id)
    closings.announce(evaluation.id)
    drain()
    assert GateCheck.objects.count() == 1
    assert len(receiver.received) == n


def test_a_closing_that_nobody_checked_is_found_by_the_tick(
    night: Callable[[], Evaluation], gate: Gate, base: Base
) -> None:
    evaluation = night()
    GateCheck.objects.all().delete()
    Firing.objects.update(checked_revision=-1)
    Job.objects.all().delete()
    assert closings.repair() == 0, "it may still be on its way"
    Evaluation.objects.update(finished_at=timezone.now() - timedelta(minutes=5))
    assert closings.repair() == 1
    assert closings.repair() == 0
    drain()
    assert GateCheck.objects.get().evaluation_id == evaluation.id


def test_a_message_is_signed_and_keeps_its_id_until_it_arrives(
    night: Callable[[], Evaluation], gate: Gate, target: AlertTarget, receiver: Receiver
) -> None:
    receiver.status = 503
    night()
    drain_for(20, lambda: len(receiver.received) >= 2)
    receiver.stop()
    Delivery.objects.get(state=DeliveryState.PENDING)
    time.sleep(0.3)
    drain()
    receiver.status = 200
    receiver.start()
    drain_for(30, lambda: Delivery.objects.get().state == DeliveryState.DELIVERED)
    assert len({one.headers["Touchstone-Delivery"] for one in receiver.received}) == 1
    assert len({one.body for one in receiver.received}) == 1
    last = receiver.received[-1]
    signed = f"{last.headers['Touchstone-Timestamp']}.".encode() + last.body
    expected = hmac.new(webhooks.secret_of(target).encode(), signed, hashlib.sha256).hexdigest()
    assert last.headers["Touchstone-Signature"] == f"v1={expected}"
    n = len(receiver.received)
    drain()
    assert len(receiver.received) == n


def test_recovered_does_not_overtake_broke_while_the_receiver_is_away(
    night: Callable[[], Evaluation], gate: Gate, target: AlertTarget, receiver: Receiver
) -> None:
    receiver.stop()
    well = night()
    approve(well)
    night()
    assert Alert.objects.get().state == AlertState.RESOLVED
    receiver.start()
    drain_for(40, lambda: Delivery.objects.filter(state=DeliveryState.DELIVERED).count() == 2)
    assert [event for event, _ in receiver.events] == ["opened", "resolved"]


def test_an_address_of_the_inside_is_not_called(base: Base, settings: DjangoSettings) -> None:
    settings.URL_ALLOW = []
    for address in ("http://127.0.0.1:9/hook", "https://localhost/x", "https://[::1]/", "file:///etc/passwd", "x"):
        with pytest.raises(ValidationError):
            alert_targets.create(base.workspace, name="inside", kind=TargetKind.WEBHOOK, address=address)


def test_an_email_tells_the_same_in_words_with_texts_where_the_owner_allows_them(
    base: Base, night: Callable[[], Evaluation], gate: Gate, settings: DjangoSettings
) -> None:
    with pytest.raises(ValidationError, match="mail server"):
        alert_targets.create(base.workspace, name="me", kind=TargetKind.EMAIL, address="me@example.org")
    settings.EMAIL_HOST = "mail.example.org"
    with pytest.raises(ValidationError, match="e-mail address"):
        alert_targets.create(base.workspace, name="me", kind=TargetKind.EMAIL, address="nobody")
    alert_targets.create(base.workspace, name="me", kind=TargetKind.EMAIL, address="me@example.org", with_texts=True)
    approve(night())
    lose(base, "heron")
    night()
    told = next(one for one in mail.outbox if "hit@10 floor broke" in one.subject)
    assert told.to == ["me@example.org"]
    assert "corpus -1 documents" in told.body
    assert "heron: the heron" in told.body
    assert told.extra_headers["Message-ID"].endswith("@touchstone>")


def test_changed_labels_fail_the_gate_until_a_person_approves_again(
    base: Base, nightly: Schedule, night: Callable[[], Evaluation], gate: Gate
) -> None:
    first = approve(night())
    items = [{"id": word, "question": f"the {word}", "expected": [f"{word}.txt"]} for word in WORDS[:-1]]
    assert nightly.question_set is not None
    question_sets.add_version(nightly.question_set, items=items)
    changed = night()
    check = GateCheck.objects.order_by("-id")[0]
    assert check.outcome == Outcome.BROKEN
    assert any("the labels have changed" in one["sentence"] for one in check.report["results"])
    assert Baseline.objects.get(retired_at=None).id == first.id, "nothing replaces a baseline by itself"
    alert = Alert.objects.get(state=AlertState.OPEN, title__contains="drop broke")
    assert alert.detail["because"][1] == "labels -1 questions"
    approve(changed)
    first.refresh_from_db()
    assert first.retired_at is not None
    assert Alert.objects.filter(state=AlertState.OPEN).count() == 1, "it stands for the one that could not be checked"
    night()
    assert GateCheck.objects.order_by("-id")[0].outcome == Outcome.PASSED
    assert not Alert.objects.filter(state=AlertState.OPEN).exists()


def test_a_baseline_is_whole_and_its_run_is_neither_tried_again_nor_deleted(
    base: Base, night: Callable[[], Evaluation]
) -> None:
    evaluation = night()
    run = evaluation.runs.get()
    for changes in (
        {"corpus_changed": True},
        {"metric_definitions": "0"},
        {"counts": {**run.counts, "n_error": 1}},
        {"state": "unavailable"},
    ):
        Run.objects.filter(id=run.id).update(**changes)
        with pytest.raises(ConflictError):
            approve(evaluation)
        Run.objects.filter(id=run.id).update(**{name: getattr(run, name) for name in changes})
    made = approve(evaluation)
    assert approve(evaluation).id == made.id
    assert (made.set_hash, made.metric_definitions, made.approved_by) == (
        run.set_hash,
        run.metric_definitions,
        "a person",
    )
    with pytest.raises(ConflictError, match="baseline"):
        evaluations.retry(base.workspace, evaluation.id, now=timezone.now())
    for force in (False, True):
        with pytest.raises(ConflictError, match="baseline"):
            runs.delete(base.workspace, run.id, force=force)
    baselines.retire(base.workspace, made.id, now=timezone.now())
    runs.delete(base.workspace, run.id)


def test_a_provider_that_died_is_told_and_told_well_again(base: Base, target: AlertTarget) -> None:
    now = timezone.now()
    dead = ProviderState.objects.create(
        workspace=base.workspace, provider="http:near", stalled_at=now - timedelta(hours=1), reason="no answer"
    )
    assert alerts.watch_providers(now=now) == 1
    assert alerts.watch_providers(now=now) == 0
    assert Alert.objects.get().kind == AlertKind.PROVIDER
    ProviderState.objects.filter(id=dead.id).update(stalled_at=None)
    assert alerts.watch_providers(now=now) == 1
    assert Alert.objects.get().state == AlertState.RESOLVED
    assert [one.event for one in Delivery.objects.order_by("id")] == ["opened", "resolved"]


def test_old_evaluations_lose_their_rankings_and_keep_their_figures(
    base: Base, night: Callable[[], Evaluation], settings: DjangoSettings
) -> None:
    settings.KEEP_EVALUATIONS = 1
    approved, pinned, old, new = night(), night(), night(), night()
    approve(approved)
    runs.update(base.workspace, pinned.runs.get().id, pinned=True)
    metrics = old.runs.get().metrics
    assert retention.prune(now=timezone.now()) == 1
    assert retention.prune(now=timezone.now()) == 0
    whole = {one.id: Result.objects.filter(run=one).exclude(ranking=[]).exists() for one in Run.objects.all()}
    assert [whole[one.runs.get().id] for one in (approved, pinned, old, new)] == [True, True, False, True]
    pruned = old.runs.get()
    assert pruned.pruned_at is not None
    assert pruned.metrics == metrics
    with pytest.raises(ConflictError, match="rankings"):
        evaluations.retry(base.workspace, old.id, now=timezone.now())
    told = gates.check(
        base.workspace, gates.find(base.workspace, run=str(pruned.id)), gates.parse(RULES), baseline=str(new.id)
    )
    assert told.report.outcome == Outcome.PASSED, "it can still be compared"


def test_a_deleted_gate_closes_its_alerts(night: Callable[[], Evaluation], gate: Gate) -> None:
    night()
    assert Alert.objects.filter(state=AlertState.OPEN).count() == 1
    gates.delete(gate, now=timezone.now())
    assert not Alert.objects.filter(state=AlertState.OPEN).exists()
    assert Job.objects.filter(kind=JobKind.GATE).exists()
