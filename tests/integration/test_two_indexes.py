"""A base whose settings change: evaluated on the old Index while the new is built, and both compared afterwards."""

from typing import Any

import pytest
from django.utils import timezone

from backend.core.errors import ConflictError
from backend.core.states import EvaluationState
from backend.models import Evaluation, KnowledgeBase, Result, Run
from backend.queries import comparisons
from backend.services import evaluations, knowledge_bases, question_sets, scopes
from backend.services.evaluation_requests import Request
from tests.engine import drain
from tests.integration.ingest_work import ingest, new_base, upload

pytestmark = pytest.mark.django_db(transaction=True)

_FILLER = "Every order is signed by the shift lead before the machine starts again. " * 12
TEXTS = {
    f"{word}.txt": f"{_FILLER}\n\nThe {word} lives in the {place}.\n\n{_FILLER}"
    for word, place in (("heron", "reeds"), ("otter", "river"), ("badger", "sett"), ("lynx", "forest"))
}
QUESTIONS = [{"question": f"Where does the {path[:-4]} live?", "expected": [path]} for path in TEXTS]


@pytest.fixture
def base() -> KnowledgeBase:
    made = new_base()
    ingest(made, TEXTS)
    return made


def submit(base: KnowledgeBase, **fields: Any) -> Evaluation:
    made = question_sets.create(base.workspace, name=f"set {Evaluation.objects.count()}", items=QUESTIONS)
    request = Request(
        question_set=str(made.question_set_id),
        scope={"knowledge_base": str(base.id)},
        **{"modes": ["keyword"], **fields},
    )
    return evaluations.start(base.workspace, request, now=timezone.now())


def indexes_read(run: Run) -> set[str]:
    return set(run.generations)


def test_while_a_new_index_is_built_the_old_one_is_evaluated(base: KnowledgeBase) -> None:
    old = base.live_index_id
    knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    evaluation = submit(base)
    # The evaluation's slices and those of the building share the workers; whichever is first changes nothing.
    drain()
    base.refresh_from_db()
    evaluation.refresh_from_db()
    assert base.live_index_id != old
    assert evaluation.state == EvaluationState.COMPLETED
    run = evaluation.runs.get()
    assert indexes_read(run) == {str(old)}
    assert run.counts["n_scored"] == len(QUESTIONS)
    assert not run.corpus_changed


def test_two_indexes_of_one_base_are_compared_in_one_evaluation(base: KnowledgeBase) -> None:
    old = str(base.live_index_id)
    knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    drain()
    base.refresh_from_db()
    configurations = [
        {"name": "large passages", "mode": "keyword", "index": old},
        {"name": "small passages", "mode": "keyword"},
    ]
    evaluation = submit(base, modes=None, configurations=configurations)
    drain()
    large, small = evaluation.runs.order_by("ordinal")
    assert (large.state, small.state) == ("scored", "scored")
    assert large.config["index"] == old
    assert large.config_fingerprint != small.config_fingerprint, "the Index's settings are part of it"

    def shown(run: Run) -> int:
        return len(Result.objects.filter(run=run).order_by("ordinal")[0].ranking)

    assert shown(small) > shown(large), "each run reads the passages of its own Index"
    told = comparisons.compare(base.workspace, baseline=large.id, candidates=[small.id])
    assert len(told.runs) == 2


def test_a_replaced_index_that_is_named_with_the_settings_of_the_live_one_has_its_fingerprint(
    base: KnowledgeBase,
) -> None:
    first = submit(base)
    drain()
    old = str(base.live_index_id)
    knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    drain()
    second = submit(base, modes=None, configurations=[{"name": "keyword", "mode": "keyword", "index": old}])
    drain()
    assert first.runs.get().config_fingerprint == second.runs.get().config_fingerprint


def test_a_replaced_index_keeps_the_documents_it_had_and_its_run_says_so(base: KnowledgeBase) -> None:
    old = str(base.live_index_id)
    knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    drain()
    upload(base, {"stoat.txt": "The stoat lives in the hedge."})
    drain()
    base.refresh_from_db()
    configurations = [{"name": "old", "mode": "keyword", "index": old}, {"name": "new", "mode": "keyword"}]
    evaluation = submit(base, modes=None, configurations=configurations)
    drain()
    old_run, new_run = evaluation.runs.order_by("ordinal")
    assert (old_run.state, new_run.state) == ("scored", "scored")
    there = {entry["p"] for row in Result.objects.filter(run=old_run) for entry in row.ranking}
    assert "stoat.txt" not in there
    assert indexes_read(old_run) == {old}
    assert old_run.corpus_fingerprint != new_run.corpus_fingerprint
    assert not old_run.corpus_changed
    assert not new_run.corpus_changed


def test_an_index_that_is_not_ready_cannot_be_named(base: KnowledgeBase) -> None:
    changed = knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    assert changed.ingestion is not None
    building = str(changed.ingestion.index_id)
    with pytest.raises(ConflictError, match="not ready"):
        scopes.resolve(base.workspace, {"knowledge_base": str(base.id)}, index_overrides=[building])
    waiting = submit(
        base,
        modes=None,
        configurations=[{"name": "new", "mode": "keyword", "index": building}],
        wait_for_index=True,
    )
    drain()
    waiting.refresh_from_db()
    if waiting.state == EvaluationState.QUEUED:
        # It came to the Index before that was ready, and waits for its time.
        waiting.slices.update(not_before=None)
        drain()
        waiting.refresh_from_db()
    assert waiting.state == EvaluationState.COMPLETED
    assert waiting.runs.get().counts["n_scored"] == len(QUESTIONS)
