"""What grows without end is cut, and nothing that is in use."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from backend.core.states import EvaluationState, IndexState
from backend.models import CachedScore, Evaluation, Index, Workspace
from backend.services import housekeeping
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_least_recently_used_rows_beyond_a_workspaces_share_go(settings: Any) -> None:
    settings.CACHE_ROWS = 3
    now = timezone.now()
    full, small = Workspace.objects.create(name="full"), Workspace.objects.create(name="small")
    for workspace, n in ((full, 5), (small, 2)):
        for age in range(n):
            row = CachedScore.objects.create(workspace=workspace, key=bytes([age]) * 32, score=float(age))
            CachedScore.objects.filter(id=row.id).update(used_at=now - timedelta(days=age))
    assert housekeeping.clean(now=now).n_scores == 2
    kept = CachedScore.objects.filter(workspace=full).order_by("score").values_list("score", flat=True)
    assert list(kept) == [0.0, 1.0, 2.0]
    assert CachedScore.objects.filter(workspace=small).count() == 2


@pytest.fixture
def replaced() -> Base:
    """A base whose Index was replaced a month ago."""
    base = make_base(Row(path="a.txt", text="heron"))
    base.knowledge_base.live_index = None
    base.knowledge_base.save(update_fields=["live_index"])
    Index.objects.filter(id=base.index.id).update(
        state=IndexState.RETIRED, ready_at=timezone.now() - timedelta(days=30)
    )
    return base


def test_an_index_that_was_replaced_long_ago_goes_with_its_chunks(replaced: Base) -> None:
    assert housekeeping.clean(now=timezone.now()).n_indexes == 1
    assert not Index.objects.filter(id=replaced.index.id).exists()


def test_an_index_that_an_open_evaluation_reads_stays(replaced: Base) -> None:
    evaluation = Evaluation.objects.create(
        workspace=replaced.workspace,
        set_name="set",
        n_questions=1,
        scope={},
        plan={"scope": replaced.scope().to_json()},
        state=EvaluationState.RUNNING,
        deadline_at=timezone.now(),
    )
    assert housekeeping.clean(now=timezone.now()).n_indexes == 0
    Evaluation.objects.filter(id=evaluation.id).update(state=EvaluationState.COMPLETED)
    assert housekeeping.clean(now=timezone.now()).n_indexes == 1


def test_an_index_that_was_replaced_lately_stays_however_old_it_is(replaced: Base) -> None:
    successor = Index.objects.create(
        knowledge_base=replaced.knowledge_base,
        settings=replaced.index.settings,
        fingerprint="g",
        state=IndexState.READY,
        ready_at=timezone.now() - timedelta(days=1),
    )
    replaced.knowledge_base.live_index = successor
    replaced.knowledge_base.save(update_fields=["live_index"])
    assert housekeeping.clean(now=timezone.now()).n_indexes == 0
