"""Who is handed out next: workspaces in turn, evaluations in turn, and nobody more than they may have begun."""

import itertools
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backend.core.states import EvaluationState, Lane, SliceKind, SliceState
from backend.models import Evaluation, Ingestion, Slice, Workspace
from backend.services import limits, pump
from tests.integration.search_rows import make_base

pytestmark = pytest.mark.django_db
AT_WORK: dict[str, Any] = {"state": SliceState.LEASED, "token": uuid4(), "lease_until": timezone.now()}


def evaluation(workspace: Workspace, *, n_slices: int, n_items: int = 1, **fields: Any) -> Evaluation:
    """One that is running, its questions waiting in slices of `n_items`."""
    made = Evaluation.objects.create(
        workspace=workspace,
        set_name="s",
        n_questions=n_slices * n_items,
        scope={},
        plan={},
        state=EvaluationState.RUNNING,
        deadline_at=timezone.now(),
    )
    Slice.objects.bulk_create(
        [
            Slice(
                **{
                    "workspace": workspace,
                    "evaluation": made,
                    "kind": SliceKind.SEARCH,
                    "lane": Lane.SEARCH,
                    "root": True,
                    "items": list(range(number * n_items, (number + 1) * n_items)),
                    "first": number * n_items,
                    "last": (number + 1) * n_items - 1,
                    **fields,
                }
            )
            for number in range(n_slices)
        ]
    )
    return made


def handed_out() -> Counter[UUID]:
    rows = Slice.objects.filter(state=SliceState.QUEUED).values_list("evaluation_id", flat=True)
    return Counter(row for row in rows if row is not None)


def finish_one(owner: Evaluation) -> None:
    done = Slice.objects.filter(evaluation=owner, state=SliceState.QUEUED).order_by("id").first()
    assert done is not None
    Slice.objects.filter(id=done.id).update(state=SliceState.DONE)


@pytest.fixture
def places(settings: Settings) -> int:
    """How many slices the search lane may have out at once."""
    settings.SEARCH_SLOTS = 12
    return 18


@pytest.fixture(autouse=True)
def first_hand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth goes by another order: here the first is the first."""
    monkeypatch.setattr(pump, "_hand_outs", {lane: itertools.count(1) for lane in Lane})


@pytest.fixture
def ours(db: None) -> Workspace:
    return Workspace.objects.create(name="ours")


@pytest.fixture
def theirs(db: None) -> Workspace:
    return Workspace.objects.create(name="theirs")


def test_a_workspace_of_many_evaluations_gets_no_more_than_one_of_a_single_one(
    ours: Workspace, theirs: Workspace, places: int
) -> None:
    many = [evaluation(theirs, n_slices=5) for _ in range(30)]
    single = evaluation(ours, n_slices=50)
    pump.run_lane(Lane.SEARCH)
    out = handed_out()
    assert sum(out.values()) == places
    assert out[single.id] == places / 2
    assert {n for key, n in out.items() if key != single.id} == {1}, "each of theirs in turn"
    assert len(many) == 30


def test_a_small_evaluation_behind_a_giant_gets_the_next_places(ours: Workspace, places: int) -> None:
    giant = evaluation(ours, n_slices=200)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {giant.id: places}
    small = evaluation(ours, n_slices=4)
    for n in range(1, 5):
        finish_one(giant)
        pump.run_lane(Lane.SEARCH)
        assert handed_out()[small.id] == n


def test_a_workspace_has_only_so_many_questions_begun(ours: Workspace, theirs: Workspace, places: int) -> None:
    limits.change(ours, {"questions_in_flight": 25})
    several = [evaluation(ours, n_slices=20, n_items=5) for _ in range(3)]
    other = evaluation(theirs, n_slices=20, n_items=5)
    pump.run_lane(Lane.SEARCH)
    out = handed_out()
    assert sum(out[one.id] for one in several) == 5
    assert out[other.id] == places - 5, "what one may not have, the others get"
    finish_one(several[0])
    finish_one(other)
    pump.run_lane(Lane.SEARCH)
    again = handed_out()
    assert sum(again[one.id] for one in several) == 5


def test_what_waits_between_two_steps_counts_as_begun_and_may_always_go_on(ours: Workspace, places: int) -> None:
    limits.change(ours, {"questions_in_flight": 5})
    begun = evaluation(ours, n_slices=7, root=False, kind=SliceKind.RERANK, lane=Lane.PROVIDER)
    blocked = evaluation(ours, n_slices=3)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {blocked.id: 1}, "one goes ahead, so that it cannot wait for others' providers for ever"
    pump.run_lane(Lane.PROVIDER)
    assert handed_out() == {blocked.id: 1, begun.id: 7}


def test_the_evaluations_own_window_holds_within_the_workspaces(
    ours: Workspace, places: int, settings: Settings
) -> None:
    settings.EVALUATION_WINDOW = 3
    one = evaluation(ours, n_slices=10)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {one.id: 3}


def test_handing_out_stays_cheap_behind_many_waiting_evaluations(
    ours: Workspace, theirs: Workspace, places: int
) -> None:
    """Each slice that ends asks for the next: milliseconds of PostgreSQL, not tens of them."""
    for _ in range(20):
        evaluation(ours, n_slices=40)
    evaluation(theirs, n_slices=1_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE backend_slice, backend_evaluation")
        parameters: dict[str, str | int] = {
            "lane": "search",
            "cap": places,
            "window": 400,
            "workspace_window": 1600,
            "by_finish": True,
        }
        # The statement's own account: the time of a busy machine is no measure, the rows it reads are.
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {pump._TAKE}", parameters)
        plan = cursor.fetchone()[0]
    assert _rows_read(plan) < 6_000


def _rows_read(node: Any) -> float:
    if isinstance(node, list):
        return sum(_rows_read(one) for one in node)
    total = 0.0
    if str(node.get("Node Type", "")).endswith("Scan") and node.get("Relation Name") == "backend_slice":
        total += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return total + sum(_rows_read(one) for one in (*node.get("Plans", ()), *([node["Plan"]] if "Plan" in node else [])))


def test_places_are_shared_by_questions_and_not_by_slices(ours: Workspace, places: int) -> None:
    giant = evaluation(ours, n_slices=40, n_items=10)
    pump.run_lane(Lane.SEARCH)
    small = evaluation(ours, n_slices=10, n_items=2)
    for _ in range(10):
        finish_one(giant)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {giant.id: places - 10, small.id: 10}, "its 20 questions are fewer than the giant's 100"


def test_all_of_a_small_evaluation_passes_the_next_slice_of_a_large_one(ours: Workspace, settings: Settings) -> None:
    settings.SEARCH_SLOTS = 2
    giant = evaluation(ours, n_slices=40, n_items=50)
    small = evaluation(ours, n_slices=4, n_items=5)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {small.id: 3}
    finish_one(small)
    finish_one(small)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {small.id: 2, giant.id: 1}


def test_a_small_evaluation_passes_more_large_ones_than_there_are_places(ours: Workspace, settings: Settings) -> None:
    settings.SEARCH_SLOTS = 2
    for _ in range(6):
        evaluation(ours, n_slices=40, n_items=50)
    small = evaluation(ours, n_slices=4, n_items=5)
    pump.run_lane(Lane.SEARCH)
    assert handed_out() == {small.id: 3}


@pytest.mark.parametrize("lanes", [(Lane.SEARCH,), (Lane.SEARCH, Lane.PROVIDER)], ids=["alone", "in turn"])
def test_a_stream_of_small_evaluations_does_not_stop_a_large_one(
    ours: Workspace, settings: Settings, lanes: tuple[Lane, ...]
) -> None:
    """Nor where the hand-outs of another lane come in between."""
    settings.SEARCH_SLOTS = 2
    giant = evaluation(ours, n_slices=40, n_items=50)
    for _ in range(16):
        evaluation(ours, n_slices=3, n_items=5)
        for lane in lanes:
            pump.run_lane(lane)
        Slice.objects.filter(state=SliceState.QUEUED).update(state=SliceState.DONE)
    assert giant.slices.filter(state=SliceState.DONE).count() == 2, "each eighth time it has its turn"


@pytest.mark.parametrize("same", [True, False], ids=["one workspace", "two"])
@pytest.mark.parametrize("n_items", [1, 5, 50])
def test_an_ingestion_keeps_no_evaluation_waiting(
    ours: Workspace, theirs: Workspace, settings: Settings, n_items: int, same: bool
) -> None:
    """Its slice is as long as the longest of an evaluation, though no questions are in it."""
    settings.SEARCH_SLOTS = 2
    base = make_base(workspace=theirs)
    ingestion = Ingestion.objects.create(
        workspace=theirs, knowledge_base=base.knowledge_base, index=base.index, state="running"
    )
    Slice.objects.bulk_create(
        Slice(workspace=theirs, ingestion=ingestion, kind=SliceKind.INGEST, lane=Lane.SEARCH, payload={"documents": []})
        for _ in range(100)
    )
    asked = evaluation(theirs if same else ours, n_slices=4, n_items=n_items)
    order: list[Slice] = []
    for _ in range(16):
        pump.run_lane(Lane.SEARCH)
        order += [one for one in Slice.objects.filter(state=SliceState.QUEUED).order_by("id") if one not in order]
        done = next(one for one in order if Slice.objects.filter(id=one.id, state=SliceState.QUEUED).exists())
        Slice.objects.filter(id=done.id).update(state=SliceState.DONE)
    assert asked.slices.filter(state=SliceState.DONE).count() == 4


def test_what_is_in_quarantine_goes_one_at_a_time(ours: Workspace, places: int) -> None:
    evaluation(ours, n_slices=5, quarantined=True, root=False)
    for _ in range(2):
        pump.run_lane(Lane.SEARCH)
        assert Slice.objects.filter(state=SliceState.QUEUED).count() == 1


@pytest.mark.parametrize(
    ("small", "kept"),
    [
        (None, False),
        ([{}], True),
        ([{"not_before": timezone.now() + timedelta(hours=1)}], False),
        ([{"lane": Lane.PROVIDER}], False),
        ([{"state": SliceState.QUEUED}], True),
        ([AT_WORK], False),
        # One question waits, one is worked on: fewer than the ten of the rest.
        ([{}, AT_WORK], True),
        ([{"items": list(range(20))}, AT_WORK], False),
        # Perhaps its window keeps them waiting.
        ([{"items": list(range(20))}, {**AT_WORK, "lane": Lane.PROVIDER}], False),
        ([{"items": list(range(20)), "root": False}, {**AT_WORK, "lane": Lane.PROVIDER}], True),
        # Its window is full of pools that wait for a provider: it would be handed out nothing.
        ([{}, {"lane": Lane.PROVIDER, "root": False, "not_before": timezone.now() + timedelta(hours=1)}], False),
        ([{"quarantined": True, "root": False}], False),
    ],
    ids=range(12),
)
def test_a_place_is_given_back_to_who_has_none_or_little_left(
    ours: Workspace, small: list[dict[str, Any]] | None, kept: bool
) -> None:
    giant = evaluation(ours, n_slices=5, n_items=10, state=SliceState.QUEUED)
    if small is not None:
        other = evaluation(ours, n_slices=0)
        for number, fields in enumerate(small):
            given = {"kind": SliceKind.SEARCH, "lane": Lane.SEARCH, "root": True, "items": [number], **fields}
            Slice.objects.create(workspace=ours, evaluation=other, first=number, last=number, **given)
    assert pump.keeps_others_waiting(Lane.SEARCH, evaluation_id=giant.id, n_left=10) is kept
