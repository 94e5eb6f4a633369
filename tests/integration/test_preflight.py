"""Labels against a base that was really read and cut, and the report of it over HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from backend.core.resolving import FindingKind
from backend.models import Document, KnowledgeBase, LabelResolution, QuestionSetVersion
from backend.search.snapshot import open_snapshot
from backend.services import labels, preflight, question_sets, scopes
from backend.services.preflight import Report, Severity
from tests.api.conftest import API, World, make_world
from tests.integration.ingest_work import ingest, new_base

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = {"embedding": {"embedder": "none"}, "chunking": {"size": 60, "overlap": 0}}


def base_of(files: dict[str, str | bytes] | None = None, settings: dict[str, object] | None = None) -> KnowledgeBase:
    base = new_base(settings)
    ingest(base, files or {"policies/x.pdf.txt": "Everyone has 25 days.", "guides/Trips.md": "Ask your line manager."})
    return base


def version_of(base: KnowledgeBase, *items: dict[str, Any]) -> QuestionSetVersion:
    return question_sets.create(base.workspace, name="golden", items=list(items))


def check(base: KnowledgeBase, *items: dict[str, Any], **narrowed: str) -> Report:
    return preflight.run(base.workspace, version_of(base, *items), {"knowledge_base": str(base.id), **narrowed})


def case(question: str = "How many?", **expect: Any) -> dict[str, Any]:
    return {"question": question, "expect": expect}


def test_a_sound_set_has_nothing_to_tell() -> None:
    told = check(
        base_of(),
        case("a", path="policies/x.pdf.txt"),
        case("b", document="trips", content_contains=["LINE  manager"]),
        {"question": "c", "unanswerable": True},
    )
    assert (told.n_questions, told.n_expectations, told.n_resolved) == (3, 2, 2)
    assert (told.n_findings, told.findings, told.counts) == (0, (), {})


def test_a_path_of_another_machine_is_told_with_the_one_that_was_meant() -> None:
    told = check(base_of(), case(path="/srv/handbook/policies/x.pdf.txt"))
    (finding,) = told.findings
    assert (finding.kind, finding.severity, finding.nearest) == (
        FindingKind.NO_DOCUMENT,
        Severity.ERROR,
        ("policies/x.pdf.txt",),
    )
    assert "/srv/handbook/policies/x.pdf.txt. Did you mean policies/x.pdf.txt?" in finding.message


def test_a_text_that_a_chunk_border_cuts_is_named_as_such() -> None:
    base = base_of({"a.txt": " ".join(f"word{at}" for at in range(100))}, SMALL)
    assert base.live_index is not None
    first = base.live_index.chunks.get(ordinal=0)
    cut = Document.objects.get().text[first.end - 15 : first.end + 15]
    told = check(base, case("1", content_contains=cut), case("2", content_contains="nowhere"))
    assert [(one.ordinal, one.kind, one.documents) for one in told.findings] == [
        (0, FindingKind.CROSSES_BORDER, ("a.txt",)),
        (1, FindingKind.NO_TEXT, ()),
    ]


def test_a_text_that_another_document_holds_says_which() -> None:
    told = check(base_of(), case(document="trips", content_contains="25 days"), case("2", content_contains="25 days"))
    (finding,) = told.findings
    # The other label had all passages read.
    assert "policies/x.pdf.txt holds the text" in finding.message


def test_a_document_that_could_not_be_read_is_told_with_its_reason() -> None:
    base = base_of({"good.txt": "words", "empty.txt": ""})
    told = check(base, case("1", path="empty.txt"), case("2", document="empty", content_contains="words"))
    assert [one.kind for one in told.findings] == [FindingKind.NOT_INDEXED] * 2
    assert told.findings[0].documents == ("empty.txt",)
    assert "empty.txt is not indexed: " in told.findings[0].message


def test_what_the_filters_shut_out_is_outside_the_scope() -> None:
    base = base_of()
    ingest(base, {"codes.txt": "E42 is an open door."}, collection="product")
    told = check(base, case("1", path="codes.txt"), case("2", path="guides/Trips.md"), collection="product")
    assert [(one.ordinal, one.kind) for one in told.findings] == [(1, FindingKind.OUTSIDE_SCOPE)]


def test_passage_ids_that_are_dead_are_errors_and_live_ones_warnings() -> None:
    base = base_of()
    assert base.live_index is not None
    live = str(base.live_index.chunks.order_by("path").values_list("id", flat=True)[0])
    told = check(
        base,
        {"question": "1", "expected_chunk_id": live},
        {"question": "2", "expected_chunk_id": live.upper()},
        {"question": "3", "expected_chunk_id": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"},
        {"question": "4", "expected_chunk_id": "not an id"},
        {"question": "5", "expect": [{"passage": "gone", "text": "line manager"}]},
    )
    assert [(one.ordinal, one.kind) for one in told.findings if one.severity is Severity.ERROR] == [
        (2, FindingKind.NO_PASSAGE),
        (3, FindingKind.NO_PASSAGE),
    ]
    assert [one.ordinal for one in told.findings if one.kind is FindingKind.PASSAGE_ID] == [0, 1, 2, 3, 4]


def test_errors_come_first_and_all_findings_are_counted_though_few_are_shown() -> None:
    base = base_of()
    items = [{"id": f"r{at}", **case("The same?", path="guides/Trips.md")} for at in range(5)]
    items += [case(f"q{at}", path=f"missing/{at}") for at in range(5)]
    version = version_of(base, *items)
    told = preflight.run(base.workspace, version, {"knowledge_base": str(base.id)}, most=6)
    assert [one.kind for one in told.findings] == [FindingKind.NO_DOCUMENT] * 5 + [FindingKind.QUESTION_TWICE]
    assert (told.n_findings, told.n_errors, told.n_unresolved) == (9, 5, 5)
    assert told.counts == {FindingKind.NO_DOCUMENT: 5, FindingKind.QUESTION_TWICE: 4}


def test_judgements_are_no_expectations() -> None:
    told = check(
        base_of(), {"question": "q", "expect": [{"path": "guides/Trips.md", "grade": 2}, {"path": "no", "grade": 0}]}
    )
    assert (told.n_expectations, told.n_findings) == (1, 0)


def test_a_corpus_is_read_once_and_again_when_it_or_its_failures_change() -> None:
    base = base_of()
    version = version_of(base, case(path="late.txt"))
    scope = {"knowledge_base": str(base.id)}
    for _ in range(2):
        assert preflight.run(base.workspace, version, scope).counts == {FindingKind.NO_DOCUMENT: 1}
    assert LabelResolution.objects.count() == 1
    ingest(base, {"late.txt": ""})  # fails: no generation, but no longer unknown
    assert preflight.run(base.workspace, version, scope).counts == {FindingKind.NOT_INDEXED: 1}
    ingest(base, {"late.txt": "here"})
    assert preflight.run(base.workspace, version, scope).counts == {}


def test_what_was_resolved_long_ago_is_dropped() -> None:
    check(base_of(), case(path="nowhere"))
    assert labels.forget(now=timezone.now() + timedelta(days=labels.KEPT_DAYS - 1)) == 0
    assert labels.forget(now=timezone.now() + timedelta(days=labels.KEPT_DAYS + 1)) == 1
    assert LabelResolution.objects.count() == 0


def test_judging_knows_the_paths_that_preflight_folds_a_label_by() -> None:
    base = base_of()
    for n_documents in (2, 3):
        scope = scopes.resolve(base.workspace, {"knowledge_base": str(base.id)}).scope
        with open_snapshot(scope) as snapshot:
            known = labels.known_paths(scope, snapshot.generations)
        assert known.path("GUIDES/trips.md") == "guides/Trips.md"
        assert (known.path("NEW.txt") == "new.txt") is (n_documents == 3)
        ingest(base, {"new.txt": "a document more"})


@pytest.fixture
def world() -> World:
    return make_world("ours")


def test_the_report_is_told_over_http(world: World) -> None:
    answer = world.client.post(f"{API}/question-sets/{world.set_id}/preflight", {"scope": world.scope})
    assert answer.status_code == 200, answer.json()
    body = answer.json()
    assert (body["version"], body["n_questions"], body["n_expectations"], body["n_resolved"]) == (1, 4, 3, 3)
    made = world.client.post(
        f"{API}/question-sets", {"name": "other", "questions": [{"question": "?", "expected": ["leave.md"]}]}
    )
    body = world.client.post(f"{API}/question-sets/{made.json()['id']}/preflight", {"scope": world.scope}).json()
    assert body["findings"][0]["nearest"] == ["policies/leave.md"]
    assert body["counts"] == {"no_document": 1}


def test_faults_of_the_request_are_told(world: World) -> None:
    url = f"{API}/question-sets/{world.set_id}/preflight"
    assert world.client.post(url, {}).json()["field"] == "scope"
    assert world.client.post(url, {"scope": world.scope, "version": "1"}).json()["field"] == "version"
    assert world.client.post(url, {"scope": world.scope, "version": 9}).status_code == 404
    assert world.client.post(url, {"scope": world.scope, "scopes": 1}).status_code == 422
    assert world.client.post(url, {"scope": {"knowledge_base": "x"}}).status_code == 404


def test_another_workspace_sees_neither_set_nor_base(world: World) -> None:
    theirs = make_world("theirs")
    for set_id, scope in ((world.set_id, theirs.scope), (theirs.set_id, world.scope), ("x", theirs.scope)):
        answer = theirs.client.post(f"{API}/question-sets/{set_id}/preflight", {"scope": scope})
        assert answer.status_code == 404
