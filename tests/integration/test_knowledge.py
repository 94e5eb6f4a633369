"""Knowledge bases: settings, changes, deletion, and what is shown of them."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from backend.core.errors import ConflictError, NotFoundError, ValidationError
from backend.core.states import EvaluationState, IndexState
from backend.models import Blob, Chunk, Document, Evaluation, Index, Ingestion, KnowledgeBase, Run, Slice, Workspace
from backend.queries import knowledge
from backend.services import base_settings, knowledge_bases
from tests.integration.ingest_work import WORDS_ONLY, claim_next, ingest, new_base, states, upload, work

pytestmark = pytest.mark.django_db(transaction=True)


def an_open_evaluation(base: KnowledgeBase, **fields: object) -> Evaluation:
    values: dict[str, object] = {
        "workspace": base.workspace,
        "set_name": "s",
        "n_questions": 1,
        "scope": {"knowledge_base": str(base.id)},
        "plan": {},
        "deadline_at": datetime.now(UTC) + timedelta(hours=1),
    }
    return Evaluation.objects.create(**{**values, **fields})


def test_a_base_stores_all_its_settings_so_that_a_changed_default_changes_nothing(settings: object) -> None:
    base = new_base({})

    assert base.settings == {
        "chunking": {"mode": "structure", "size": 1200, "overlap": 150},
        "embedding": {"embedder": "local"},
        "keyword": {"language": "simple"},
    }


def test_every_fault_of_the_settings_is_told_with_its_field() -> None:
    workspace = Workspace.objects.create(name="w")
    with pytest.raises(ValidationError) as refused:
        knowledge_bases.create(
            workspace,
            name="",
            settings={
                "chunking": {"mode": "pages", "size": 5, "colour": 1},
                "embedding": {"embedder": "nobody:model"},
                "keyword": {"language": "klingon"},
                "fusion": {"formula": "sum", "constant": -1},
                "reranker": "nobody",
                "depth": 3,
            },
        )
    assert {fault.field for fault in refused.value.faults} == {
        "name",
        "settings.depth",
        "settings.chunking.colour",
        "settings.chunking.mode",
        "settings.chunking.size",
        "settings.embedding.embedder",
        "settings.keyword.language",
        "settings.fusion.formula",
        "settings.fusion.constant",
        "settings.reranker",
    }


def test_the_languages_are_those_of_the_database() -> None:
    there = base_settings.languages()

    assert {"simple", "english", "turkish", "german"} <= set(there)
    assert new_base({"keyword": {"language": "turkish"}, **WORDS_ONLY}).settings["keyword"] == {"language": "turkish"}


def test_two_bases_of_one_name_are_a_conflict_but_not_across_workspaces() -> None:
    new_base(name="a")
    with pytest.raises(ConflictError):
        new_base(name="a")
    knowledge_bases.create(Workspace.objects.create(name="other"), name="a", settings=WORDS_ONLY)


def test_a_change_of_fusion_or_reranker_needs_no_new_index() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"})
    changed = knowledge_bases.patch(
        base, settings={"fusion": {"formula": "convex", "weights": [0.7, 0.3]}, "reranker": "local"}
    )

    assert changed.ingestion is None
    assert changed.knowledge_base.settings["fusion"]["formula"] == "convex"
    assert Index.objects.count() == 1
    assert "reranker" not in knowledge_bases.patch(base, settings={"reranker": None}).knowledge_base.settings


def test_a_change_of_chunking_builds_a_new_index_beside_the_live_one_and_switches_when_it_is_ready() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one " * 300, "b.txt": "two"})
    old = base.live_index
    changed = knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    assert changed.ingestion is not None
    assert changed.knowledge_base.live_index == old
    assert knowledge.base_row(changed.knowledge_base).state == "ready"
    assert knowledge.base_row(changed.knowledge_base).is_rebuilding

    work()
    base.refresh_from_db()
    assert base.live_index_id == changed.ingestion.index_id
    assert base.live_index is not None
    assert old is not None
    assert base.live_index.state == IndexState.READY
    assert base.live_index.n_chunks > old.n_chunks
    assert Index.objects.get(id=old.id).state == IndexState.RETIRED
    assert Chunk.objects.filter(index=old).exists()  # whoever reads it by name still can
    assert states(base) == {"a.txt": ("indexed", ""), "b.txt": ("indexed", "")}


def test_a_second_change_replaces_the_index_that_was_being_built() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"})
    first = knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}}).ingestion
    second = knowledge_bases.patch(base, settings={"chunking": {"size": 400, "overlap": 0}}).ingestion
    assert first is not None
    assert second is not None
    work()
    base.refresh_from_db()

    assert base.live_index_id == second.index_id
    assert Ingestion.objects.get(id=first.id).state == "cancelled"
    assert Index.objects.get(id=first.index_id).state == IndexState.RETIRED


def test_going_back_to_the_live_settings_stops_the_build() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"})
    live = base.live_index_id
    started = knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}}).ingestion
    assert knowledge_bases.patch(base, settings={"chunking": None}).ingestion is None
    work()
    base.refresh_from_db()

    assert started is not None
    assert base.live_index_id == live
    assert Ingestion.objects.get(id=started.id).state == "cancelled"


def test_documents_that_come_while_an_index_is_built_are_in_both() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"})
    knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}})
    upload(base, {"b.txt": "two"})
    work()
    base.refresh_from_db()

    assert base.live_index is not None
    assert base.live_index.n_documents == 2
    assert states(base) == {"a.txt": ("indexed", ""), "b.txt": ("indexed", "")}


def test_a_patch_before_the_first_document_only_changes_the_settings() -> None:
    base = new_base()
    assert knowledge_bases.patch(base, settings={"chunking": {"size": 300, "overlap": 0}}).ingestion is None
    ingest(base, {"a.txt": "one"})
    assert base.live_index is not None
    assert base.live_index.settings["chunking"]["size"] == 300


def test_an_open_evaluation_keeps_a_base_unless_forced() -> None:
    base = new_base()
    ingest(base, {"a.txt": "one"})
    evaluation = an_open_evaluation(base)
    with pytest.raises(ConflictError):
        knowledge_bases.delete(base)
    knowledge_bases.delete(base, force=True)

    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLING
    assert not Document.objects.exists()


def test_an_evaluation_of_the_whole_workspace_counts_by_its_plan() -> None:
    base = new_base()
    an_open_evaluation(base, scope={"workspace": True}, plan={"indexes": [{"knowledge_base_id": str(base.id)}]})
    with pytest.raises(ConflictError):
        knowledge_bases.delete(base)


def test_a_deleted_base_leaves_its_runs_and_nothing_else() -> None:
    base, other = new_base(), new_base(name="other")
    ingest(base, {"a.txt": "one", "shared.txt": "the same"})
    ingest(other, {"shared.txt": "the same"})
    upload(base, {"b.txt": "still waiting"})
    evaluation = an_open_evaluation(base, state=EvaluationState.COMPLETED)
    run = a_run(base, evaluation)
    knowledge_bases.delete(base)
    run.refresh_from_db()

    assert run.knowledge_base_id is None
    assert not Slice.objects.exclude(ingestion__knowledge_base=other).exists()
    assert not Index.objects.exclude(knowledge_base=other).exists()
    assert [bytes(blob.data) for blob in Blob.objects.all()] == [b"the same"]
    assert claim_next() is None


def a_run(base: KnowledgeBase, evaluation: Evaluation, **fields: object) -> Run:
    values: dict[str, object] = {
        "workspace": base.workspace,
        "evaluation": evaluation,
        "knowledge_base": base,
        "ordinal": 0,
        "name": "hybrid",
        "mode": "hybrid",
        "config": {},
        "config_fingerprint": "c",
        "set_hash": "s",
        "code_version": "1",
        "metric_definitions": "1",
        "level": "document",
        "top_k": 10,
        "primary_metric": "mrr@10",
    }
    return Run.objects.create(**{**values, **fields})


def test_a_base_is_empty_then_indexing_then_ready() -> None:
    base = new_base()
    assert knowledge.base_row(base).state == "empty"
    upload(base, {"a.txt": "one", "b.txt": "two"})
    base.refresh_from_db()
    row = knowledge.base_row(base)
    assert (row.state, row.n_documents, row.n_pending) == ("indexing", 2, 2)
    work()
    base.refresh_from_db()
    row = knowledge.base_row(base)
    assert (row.state, row.n_indexed, row.n_chunks, row.quality) == ("ready", 2, 2, None)


def test_a_base_whose_documents_all_failed_has_failed_and_says_why() -> None:
    base = new_base()
    ingest(base, {"a.txt": "", "b.txt": " \n"})
    row = knowledge.base_row(base)
    assert (row.state, row.code, row.n_failed) == ("failed", "DOCUMENT_NO_TEXT", 2)

    ingest(base, {"c.txt": "words"})
    assert knowledge.base_row(base).state == "ready"


def test_the_quality_figure_is_that_of_the_latest_scored_run() -> None:
    base = new_base()
    evaluation = an_open_evaluation(base, state=EvaluationState.COMPLETED)
    now = datetime.now(UTC)
    a_run(base, evaluation, name="old", state="scored", metrics={"mrr@10": {"mean": 0.4}}, finished_at=now)
    latest = a_run(
        base,
        evaluation,
        name="new",
        state="scored",
        metrics={"mrr@10": {"mean": 0.8}},
        finished_at=now + timedelta(minutes=1),
    )
    a_run(base, evaluation, name="broken", state="unavailable", finished_at=now + timedelta(minutes=2))
    quality = knowledge.base_row(base).quality

    assert quality is not None
    assert (quality.run_id, quality.value, quality.metric) == (latest.id, 0.8, "mrr@10")
    assert quality.set_name == evaluation.set_name


def test_other_workspaces_ids_and_malformed_ids_are_not_found_alike() -> None:
    base = new_base()
    stranger = Workspace.objects.create(name="stranger")
    for key in (base.id, uuid4(), "not-an-id", "", "{" + str(base.id) + "}", base.id.hex):
        with pytest.raises(NotFoundError):
            knowledge.get_base(stranger, key)
    assert knowledge.get_base(base.workspace, str(base.id)) == base


def test_documents_are_listed_by_path_and_filtered() -> None:
    base = new_base()
    ingest(base, {"b.txt": "two", "a/z.txt": "one"}, collection="x")
    ingest(base, {"c.txt": ""}, collection="y")
    source = knowledge.sources_of(base).get()

    def paths(**filters: object) -> list[str]:
        return [one.path for one in knowledge.documents_of(base, **filters)]  # type: ignore[arg-type]

    assert paths() == ["a/z.txt", "b.txt", "c.txt"]
    assert paths(state="failed") == ["c.txt"]
    assert paths(collection="x") == ["a/z.txt", "b.txt"]
    assert paths(source=source.id, path="b") == ["b.txt"]
    assert (source.n_documents, source.n_indexed, source.n_failed) == (3, 2, 1)  # type: ignore[attr-defined]
    with pytest.raises(NotFoundError):
        paths(source="elsewhere")


def test_the_rows_of_many_bases_cost_the_same_queries_as_one(django_assert_max_num_queries: object) -> None:
    for name in "abcde":
        ingest(new_base(name=name), {"a.txt": "one"})
    bases = list(knowledge.bases_of(Workspace.objects.get()))
    with django_assert_max_num_queries(5):  # type: ignore[operator]
        assert len(knowledge.base_rows(bases)) == 5
