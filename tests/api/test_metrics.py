"""`/metrics` tells the state of the rows, and nothing of anybody's content."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from backend.core.states import Lane, SliceKind
from backend.models import Evaluation, Slice, Tally, Workspace
from backend.services import tallies
from backend.services.tallies import Event

pytestmark = pytest.mark.django_db


def told(client: Client, **headers: str) -> dict[str, dict[tuple[str, ...], float]]:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        one.name: {tuple(sorted(sample.labels.values())): sample.value for sample in one.samples} for one in families
    }


def test_open_slices_are_told_by_state_kind_and_lane(client: Client, django_assert_max_num_queries: Any) -> None:
    workspace = Workspace.objects.create(name="secret name")
    evaluation = Evaluation.objects.create(
        workspace=workspace, set_name="secret set", n_questions=1, scope={}, plan={}, deadline_at=timezone.now()
    )
    for state in ("pending", "pending", "done"):
        Slice.objects.create(
            workspace=workspace,
            evaluation=evaluation,
            kind=SliceKind.SEARCH,
            lane=Lane.SEARCH,
            state=state,
            first=Slice.objects.count(),
        )
    with django_assert_max_num_queries(21):
        found = told(client)
    assert found["touchstone_slices"] == {("pending", "search", "search"): 2.0}
    assert found["touchstone_evaluations"] == {("queued",): 1.0}
    assert found["touchstone_leases_overdue"] == {(): 0.0}
    assert "secret" not in client.get("/metrics").content.decode()


def test_what_happened_is_counted_and_names_that_never_happened_are_nought(client: Client) -> None:
    # What other tests of this process counted.
    tallies.flush(at_once=True)
    Tally.objects.all().delete()
    tallies.add(Event.RESULTS, 3, label="ok")
    tallies.add(Event.RESULTS, 2, label="ok")
    tallies.add(Event.DOORBELLS_DROPPED)
    tallies.flush(at_once=True)
    tallies.add(Event.RESULTS, 4, label="ok")
    tallies.flush(at_once=True)
    found = told(client)
    assert found["touchstone_results"] == {("ok",): 9.0}
    assert found["touchstone_doorbells_dropped"] == {(): 1.0}
    assert found["touchstone_leases_expired"] == {(): 0.0}


def test_a_burst_of_events_is_a_few_writes_and_none_of_them_is_lost(django_assert_num_queries: Any) -> None:
    tallies.flush(at_once=True)
    Tally.objects.all().delete()
    tallies.add(Event.DOORBELLS_DROPPED)
    tallies.flush(at_once=True)
    with django_assert_num_queries(0):
        for _ in range(1_000):
            tallies.add(Event.DOORBELLS_DROPPED)
            tallies.flush()
    tallies.flush(at_once=True)
    assert Tally.objects.get(name="doorbells_dropped").n == 1_001


def test_the_broker_is_told_of_and_its_absence_is_no_failure(client: Client, settings: Any) -> None:
    found = told(client)
    assert found["touchstone_broker_up"] == {(): 1.0}
    assert set(found["touchstone_broker_messages"]) == {("control",), ("provider",), ("search",)}
    assert found["touchstone_broker_memory_bytes"][()] > 0
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    away = told(client)
    assert away["touchstone_broker_up"] == {(): 0.0}
    assert "touchstone_broker_messages" not in away
    assert "touchstone_slices" in away


def test_every_figure_is_described_in_the_operations_page(client: Client) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    names = {name for name in told(client) if name.startswith("touchstone_")}
    told_of = set(re.findall(r"`([a-z_]+)[`{]", page))
    assert {name for name in names if name.removeprefix("touchstone_") not in told_of} == set()


def test_with_a_token_set_nobody_else_reads_it(client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "the token"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 401
    assert "touchstone_slices" in told(client, Authorization="Bearer the token")
