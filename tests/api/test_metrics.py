"""`/metrics` tells the state of the rows, and nothing of anybody's content."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from backend.core.states import Lane, SliceKind
from backend.models import Evaluation, Slice, Workspace

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
    with django_assert_max_num_queries(14):
        found = told(client)
    assert found["touchstone_slices"] == {("pending", "search", "search"): 2.0}
    assert found["touchstone_evaluations"] == {("queued",): 1.0}
    assert found["touchstone_leases_overdue"] == {(): 0.0}
    assert "secret" not in client.get("/metrics").content.decode()


def test_with_a_token_set_nobody_else_reads_it(client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "the token"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 401
    assert "touchstone_slices" in told(client, Authorization="Bearer the token")
