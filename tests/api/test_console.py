"""The console's pages of documents, questions, search and history, as a member of the workspace sees them."""

import json
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from backend.core import configs
from backend.core.states import EvaluationState, RunState
from backend.core.types import Outcome
from backend.models import (
    Chunk,
    Document,
    Evaluation,
    KnowledgeBase,
    Membership,
    QuestionSet,
    Role,
    Run,
    Source,
    SourceSetFile,
    Workspace,
)
from backend.queries import questions as queries
from backend.services import base_settings, long_jobs, set_files
from tests import engine
from tests.api.conftest import World

pytestmark = pytest.mark.django_db
# What is really searched needs a transaction of its own: the legs read one snapshot.
searching = pytest.mark.django_db(transaction=True)
FIGURES = {"mean": 0.75, "low": 0.5, "high": 0.875, "n": 3, "n_total": 4}


def client_as(role: Role, workspace: Workspace) -> Client:
    user = User.objects.create(username=f"{role.value}@{workspace.name}")
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def editor(world: World) -> Client:
    return client_as(Role.EDITOR, world.workspace)


@pytest.fixture
def base(world: World) -> KnowledgeBase:
    return world.base.knowledge_base


@pytest.fixture
def found_set(world: World) -> QuestionSet:
    return QuestionSet.objects.get(id=world.set_id)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def read(client: Client, address: str, **given: Any) -> str:
    answer = client.get(address, given)
    assert answer.status_code == 200, (address, answer.status_code, text(answer)[:2000])
    return text(answer)


def scored(evaluation: Evaluation) -> None:
    Evaluation.objects.filter(id=evaluation.id).update(state=EvaluationState.COMPLETED)
    Run.objects.filter(evaluation=evaluation).update(state=RunState.SCORED, metrics={"mrr@10": FIGURES})


def pages(world: World) -> Iterator[str]:
    base_id, set_id = world.base.knowledge_base.id, world.set_id
    yield from (reverse(name) for name in ("home", "bases", "base-new", "sets", "set-new", "search", "history", "jobs"))
    for name in ("base", "base-sources", "base-indexes", "base-settings", "base-delete"):
        yield reverse(name, args=[base_id])
    for name in ("set", "set-versions", "set-version-new", "set-check", "set-delete", "set-question-new"):
        yield reverse(name, args=[set_id])
    yield reverse("set-question-change", args=[set_id, "q1"])
    yield reverse("set-question-delete", args=[set_id, "q1"])


def test_every_page_opens_with_nothing_inline_and_a_token_in_each_form(world: World, editor: Client) -> None:
    for address in pages(world):
        html = read(editor, address)
        assert not re.search(r"<style|<script(?! src)| style=| on\w+=", html), address
        posts = re.findall(r'<form method="post".*?</form>', html, flags=re.DOTALL)
        assert all("csrfmiddlewaretoken" in form for form in posts), address
        assert len(re.findall(r"<h1", html)) == 1, address


def test_a_viewer_is_offered_nothing_that_changes_anything(world: World) -> None:
    viewer = client_as(Role.VIEWER, world.workspace)
    base_id = world.base.knowledge_base.id
    for address in (
        *(reverse(name) for name in ("home", "bases", "sets", "history")),
        *(reverse(name, args=[base_id]) for name in ("base", "base-sources", "base-settings")),
        *(reverse(name, args=[world.set_id]) for name in ("set", "set-versions", "set-check")),
    ):
        forms = re.findall(r'<form method="post"[^>]*action="([^"]*)"|<form method="post"()', read(viewer, address))
        # A check changes nothing: it looks labels up.
        assert {form[0] for form in forms} <= {"/logout", reverse("set-check", args=[world.set_id])}, address
    assert viewer.get(reverse("base-new")).status_code == 403


# ---- the first visit
def test_the_first_evaluation_is_three_presses_away() -> None:
    workspace = Workspace.objects.create(name="fresh")
    editor = client_as(Role.EDITOR, workspace)
    html = read(editor, "/")
    assert "Load the sample handbook" in html
    loaded = editor.post(reverse("base-sample"))
    base = KnowledgeBase.objects.get(workspace=workspace)
    assert (loaded.status_code, loaded["Location"]) == (302, reverse("base", args=[base.id]))
    html = read(editor, loaded["Location"])
    assert "policies/parental-leave.md" in html
    assert ".touchstone/handbook.jsonl" in html
    file = SourceSetFile.objects.get(source__knowledge_base=base, path=".touchstone/handbook.jsonl")
    chosen = editor.post(reverse("set-from-file"), {"file": file.id, "then": "evaluate"})
    made = QuestionSet.objects.get(workspace=workspace)
    assert chosen["Location"].startswith(reverse("evaluation-new"))
    assert f"set={made.id}" in chosen["Location"]
    form = read(editor, chosen["Location"])
    assert re.search(r'name="wait_for_index"[^>]* checked', form), "the handbook is still being read"


def test_a_second_load_of_the_sample_finds_the_first(world: World, editor: Client) -> None:
    first = editor.post(reverse("base-sample"))["Location"]
    assert editor.post(reverse("base-sample"))["Location"] == first


# ---- documents
def test_uploaded_files_are_taken_in_and_what_was_not_is_told(editor: Client, base: KnowledgeBase) -> None:
    upload = reverse("base-upload", args=[base.id])
    files = [_file("a.md", b"# A"), _file("b.md", b"# B")]
    answer = editor.post(upload, {"file": files, "path": ["docs/a.md", "docs/.git/b.md"], "collection": "new"})
    assert answer.status_code == 302
    html = read(editor, reverse("base", args=[base.id]))
    assert "1 document taken in" in html
    assert "docs/.git/b.md was not taken" in html
    made = Document.objects.get(path="docs/a.md")
    assert (made.collection, made.source.name) == ("new", "uploads")


def test_a_batch_of_the_script_is_answered_with_what_came_of_it(editor: Client, base: KnowledgeBase) -> None:
    upload = reverse("base-upload", args=[base.id])
    taken = editor.post(upload, {"file": [_file("a.md", b"# A")], "path": ["a.md"]}, headers={"X-Upload": "batch"})
    assert taken.json() == {"n": 1}
    none = editor.post(upload, {}, headers={"X-Upload": "batch"})
    assert (none.status_code, none.json()["error"]) == (422, "Choose at least one file.")


def test_failed_documents_say_why_and_are_a_link_away(editor: Client, base: KnowledgeBase) -> None:
    Document.objects.filter(path="finance/travel.md").update(
        state="failed", code="DOCUMENT_NO_TEXT", reason="There is no <text> in it."
    )
    assert "?state=failed" in read(editor, reverse("bases"))
    html = read(editor, reverse("base", args=[base.id]), state="failed")
    assert "There is no &lt;text&gt; in it. (DOCUMENT_NO_TEXT)" in html
    assert 'data-copy="finance/travel.md"' in html
    assert "policies/leave.md" not in html
    assert editor.get(reverse("base", args=[base.id]), {"state": "lost"}).status_code == 422


def test_removing_asks_first(editor: Client, base: KnowledgeBase) -> None:
    document = Document.objects.get(path="finance/travel.md")
    address = reverse("base-document-delete", args=[base.id, document.id])
    assert "Remove finance/travel.md?" in read(editor, address)
    assert Document.objects.filter(id=document.id).exists()
    editor.post(address)
    assert not Document.objects.filter(id=document.id).exists()


def test_a_source_that_cannot_be_is_told_at_its_field(editor: Client, base: KnowledgeBase) -> None:
    answer = editor.post(
        reverse("base-sources", args=[base.id]), {"name": "docs", "kind": "folder", "folder": "/no/such/folder"}
    )
    assert answer.status_code == 422
    html = text(answer)
    assert 'id="folder-fault">There is no folder /no/such/folder' in html
    assert 'value="/no/such/folder"' in html
    assert not Source.objects.filter(name="docs").exists()


# ---- settings
def _settings(base: KnowledgeBase, **changed: str) -> dict[str, str]:
    return {
        "name": base.name,
        "settings.chunking.mode": "structure",
        "settings.chunking.size": "1200",
        "settings.chunking.overlap": "150",
        "settings.embedding.embedder": "none",
        "settings.keyword.language": "simple",
        "settings.reranker": "",
        **changed,
    }


def test_a_change_of_settings_says_what_it_rebuilds_before_it_does(editor: Client, base: KnowledgeBase) -> None:
    address = reverse("base-settings", args=[base.id])
    wanted = _settings(base, **{"settings.chunking.size": "400"})
    asked = text(editor.post(address, wanted))
    assert "This builds a new Index" in asked
    assert "All 3 documents" in asked
    assert "chunking.size" in asked
    assert KnowledgeBase.objects.get(id=base.id).settings == base.settings
    done = editor.post(address, {**wanted, "agreed": "yes"})
    assert done.status_code == 302
    assert KnowledgeBase.objects.get(id=base.id).settings["chunking"]["size"] == 400
    assert base.indexes.count() == 2


def test_what_rebuilds_nothing_is_saved_at_once(editor: Client, base: KnowledgeBase) -> None:
    there = base_settings.complete({"embedding": {"embedder": "none"}}, workspace_id=base.workspace_id)
    fingerprint = configs.fingerprint(base_settings.of_index(there))
    KnowledgeBase.objects.filter(id=base.id).update(settings=there)
    base.indexes.update(settings=base_settings.of_index(there), fingerprint=fingerprint)
    wanted = _settings(base, **{"settings.fusion.formula": "convex", "settings.fusion.weights": "1, 2"})
    assert editor.post(reverse("base-settings", args=[base.id]), wanted).status_code == 302
    saved = KnowledgeBase.objects.get(id=base.id).settings
    assert saved["fusion"] == {"formula": "convex", "weights": [1.0, 2.0]}
    assert base.indexes.count() == 1


def test_a_setting_that_cannot_be_is_told_at_its_field_and_what_was_typed_stays(
    editor: Client, base: KnowledgeBase
) -> None:
    wanted = _settings(base, **{"settings.chunking.size": "many", "settings.keyword.language": "klingon"})
    answer = editor.post(reverse("base-settings", args=[base.id]), wanted)
    assert answer.status_code == 422
    html = text(answer)
    assert 'id="settings.chunking.size-fault"' in html
    assert 'id="settings.keyword.language-fault"' in html
    assert 'value="many"' in html


# ---- question sets
def test_every_fault_of_a_broken_set_is_shown_at_its_line(editor: Client, world: World) -> None:
    lines = [
        '{"question": "How long is the leave?", "expected": ["policies/leave.md"]}',
        '{"question": "", "expected": ["a.md"]}',
        "{broken <b>",
    ]
    answer = editor.post(reverse("set-new"), {"name": "mine", "file": _file("mine.jsonl", "\n".join(lines).encode())})
    assert answer.status_code == 422
    html = text(answer)
    assert re.search(r'<li value="2">.*?<li value="3">', html, flags=re.DOTALL)
    assert "{broken &lt;b&gt;" in html
    assert 'value="mine"' in html
    assert not QuestionSet.objects.filter(name="mine").exists()
    assert re.search(r"<b>Line 2</b>", html)


def test_a_set_can_be_written_down_and_the_same_again_makes_no_version(editor: Client, world: World) -> None:
    item = '{"question": "Who?", "expected": ["a.md"]}'
    made = editor.post(reverse("set-new"), {"name": "small", "text": item})
    found = QuestionSet.objects.get(name="small")
    assert made["Location"] == reverse("set", args=[found.id])
    editor.post(reverse("set-version-new", args=[found.id]), {"text": item})
    assert found.versions.count() == 1
    assert "no new version was made" in read(editor, reverse("set", args=[found.id]))


def test_the_difference_of_two_versions_names_what_was_added_changed_and_taken_out(
    editor: Client, found_set: QuestionSet
) -> None:
    changed = [
        {"id": "q1", "question": "How long is the leave?", "expected": ["policies/leave.md"], "tags": ["leave", "new"]},
        {"id": "q2", "question": "Who approves a trip?", "expected": ["finance/travel.md"], "tags": ["money"]},
        {"id": "q4", "question": "Where is the moon base?", "unanswerable": True},
        {"id": "q9", "question": "What is new?", "expected": ["product/codes.md"]},
    ]
    editor.post(reverse("set-version-new", args=[found_set.id]), {"text": "\n".join(map(json.dumps, changed))})
    html = read(editor, reverse("set-versions", args=[found_set.id]), **{"from": 1, "to": 2})
    assert "1 added, 1 taken out, 1 changed, 2 the same" in html
    assert html.index(">changed<") < html.index(">added<") < html.index(">taken out<")
    same = read(editor, reverse("set-versions", args=[found_set.id]), **{"from": 1, "to": 1})
    assert "0 added, 0 taken out, 0 changed, 4 the same" in same


def test_a_question_is_added_changed_and_taken_out(editor: Client, found_set: QuestionSet) -> None:
    key = "a/b c?%"
    add = reverse("set-question-new", args=[found_set.id])
    expected = 'policies/leave.md\n{"document": "travel", "content_contains": ["line manager"]}'
    form = {"id": key, "question": "Who?", "expect": expected, "tags": "one, two", "must_pass": "yes"}
    assert editor.post(add, form).status_code == 302
    made = queries.get_question(queries.get_version(found_set), key)
    assert (made.tags, made.must_pass, len(made.expect)) == (["one", "two"], True, 2)
    change = reverse("set-question-change", args=[found_set.id, key])
    html = read(editor, change)
    assert "policies/leave.md\n{&quot;document&quot;: &quot;travel&quot;, &quot;content_contains&quot;" in html
    assert editor.post(change, {**form, "question": "Who else?"}).status_code == 302
    latest = queries.get_version(found_set)
    assert (latest.number, queries.get_question(latest, key).ordinal) == (3, made.ordinal)
    assert editor.post(reverse("set-question-delete", args=[found_set.id, key])).status_code == 302
    assert not queries.questions_of(queries.get_version(found_set)).filter(key=key).exists()


def test_a_question_that_cannot_be_is_shown_again_with_its_faults(editor: Client, found_set: QuestionSet) -> None:
    add = reverse("set-question-new", args=[found_set.id])
    for form, field in (
        ({"question": "", "expect": "a.md"}, "question"),
        ({"question": "Why?", "expect": "{oops"}, "expect"),
        ({"question": "Why?", "expect": "a.md", "id": "q1"}, "id"),
    ):
        answer = editor.post(add, form)
        assert answer.status_code == 422, form
        assert f'id="{field}-fault"' in text(answer), (form, text(answer))
    assert found_set.versions.count() == 1


def test_questions_show_the_rank_of_the_latest_run_in_each_mode(
    editor: Client, found_set: QuestionSet, evaluation: Evaluation, write: Callable[..., Any]
) -> None:
    keyword, reranked = evaluation.runs.order_by("ordinal")
    write(keyword, 0, ["finance/travel.md", "policies/leave.md"])
    write(keyword, 1, ["policies/leave.md"])
    write(reranked, 0, outcome=Outcome.ERROR, code="PROVIDER_TIMEOUT")
    scored(evaluation)
    editor.post(
        reverse("set-question-new", args=[found_set.id]), {"question": "And this?", "expect": "product/codes.md"}
    )
    html = read(editor, reverse("set", args=[found_set.id]))
    rows = dict(re.findall(r'<tr>\s*<th scope="row">.*?<small class="wrap">([^<]*)</small>(.*?)</tr>', html, re.DOTALL))
    shown = {
        key: re.findall(r'<td class="figure">(?:<a[^>]*>)?(?:<span[^>]*>)?([^<]*)', row) for key, row in rows.items()
    }
    assert shown["q1"] == ["2", "error"]
    assert shown["q2"] == ["miss", "–"]
    assert [ranks for key, ranks in shown.items() if key not in {"q1", "q2"}] == [["–", "–"]] * 3
    assert reverse("question", args=[keyword.id, 0]) in html


def test_labels_are_checked_against_a_base(editor: Client, found_set: QuestionSet, base: KnowledgeBase) -> None:
    editor.post(reverse("set-question-new", args=[found_set.id]), {"question": "What?", "expect": "policies/leaves.md"})
    checked = editor.post(reverse("set-check", args=[found_set.id]), {"base": base.id})
    html = read(editor, checked["Location"])
    assert "3 of 4" in html
    assert "policies/leaves.md" in html


def test_the_list_of_questions_says_what_a_check_found_and_what_is_odd(
    editor: Client, found_set: QuestionSet, base: KnowledgeBase
) -> None:
    add = reverse("set-question-new", args=[found_set.id])
    editor.post(add, {"question": "What is so?", "expect": "policies/leaves.md"})
    editor.post(add, {"question": "What is the plan of the fathers?", "expect": "the-plan-of-the-fathers.md"})
    address = reverse("set", args=[found_set.id])
    html = read(editor, address)
    assert "words alone find it" in html
    assert "found nothing" not in html, "nothing was looked up yet"
    read(editor, editor.post(reverse("set-check", args=[found_set.id]), {"base": base.id})["Location"])
    html = read(editor, address)
    assert f"2 of 5 labels found nothing in {base.name} when they were looked up last" in html
    assert html.count("no document") == 2
    assert "Did you mean policies/leave.md?" in html


def test_labels_of_a_large_set_are_checked_by_a_job(
    editor: Client, found_set: QuestionSet, base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_jobs, "MOST_AT_ONCE", 3)
    begun = editor.post(reverse("set-check", args=[found_set.id]), {"base": base.id})["Location"]
    assert "in the background" in read(editor, begun)
    engine.drain()
    assert "3 of 3" in read(editor, begun)


def test_sets_found_in_sources_are_listed_with_their_count_or_fault(
    editor: Client, base: KnowledgeBase, world: World
) -> None:
    source = Source.objects.filter(knowledge_base=base)[0]
    set_files.record(source, ".touchstone/good.jsonl", b'{"question": "Who?", "expected": ["policies/leave.md"]}')
    set_files.record(source, ".touchstone/bad.jsonl", b"{")
    for address in (reverse("sets"), reverse("base", args=[base.id]), reverse("base-sources", args=[base.id])):
        html = read(editor, address)
        assert re.search(r"good.jsonl</code>\s*<span[^>]*>1 question<", html), address
        assert re.search(r"bad.jsonl</code>\s*<span class=\"bad-text", html), address


# ---- search
@searching
def test_a_search_shows_the_rank_in_each_mode_and_why(editor: Client, base: KnowledgeBase) -> None:
    Chunk.objects.filter(path="finance/travel.md").update(text="The line manager <script>approves</script> a trip.")
    html = read(editor, reverse("search"), q="Who approves a trip?", base=base.id, mode="keyword")
    assert "finance/travel.md" in html
    assert "Shares words with the question (rank 1)" in html
    assert "<script>approves" not in html
    assert "<mark>" in html
    assert re.search(r"\d ms", html)


@searching
def test_a_mode_that_failed_is_not_available_and_the_others_answer(editor: Client, base: KnowledgeBase) -> None:
    html = read(editor, reverse("search"), q="leave", base=base.id)
    assert "was answered by keywords alone" in html
    assert "policies/leave.md" in html


def test_a_search_is_saved_as_a_question(editor: Client, base: KnowledgeBase, found_set: QuestionSet) -> None:
    given = {"question": "Who pays?", "expected": ["finance/travel.md", "a:b.md"], "set": str(found_set.id)}
    begun = editor.get(reverse("set-question-begin"), given)
    html = read(editor, begun["Location"])
    assert ">Who pays?</textarea>" in html
    assert "finance/travel.md\n{&quot;path&quot;: &quot;a:b.md&quot;, &quot;source&quot;: null}" in html
    assert editor.get(reverse("set-question-begin"), {"question": "Who?"}).status_code == 422


# ---- history and overview
def test_history_lists_runs_with_what_changed_between_them(
    editor: Client, world: World, evaluation: Evaluation
) -> None:
    scored(evaluation)
    Run.objects.filter(evaluation=evaluation, name="keyword").update(corpus_fingerprint="older")
    later = Evaluation.objects.get(id=world.evaluate(label="second").json()["id"])
    scored(later)
    html = read(editor, reverse("history"))
    assert html.count("0.750") == 3
    assert html.count('<span class="tag">documents</span>') == 1
    narrowed = read(
        editor,
        reverse("history"),
        question_set=world.set_id,
        knowledge_base=world.base.knowledge_base.id,
        name="keyword",
    )
    assert narrowed.count("0.500–0.875") == 2
    assert reverse("history-plot", args=["trend", "svg"]).replace("trend.svg", "trend") in narrowed
    assert "No run is like that" in read(editor, reverse("history"), mode="semantic")


def test_the_overview_shows_each_set_on_each_base_with_its_change(
    editor: Client, world: World, evaluation: Evaluation
) -> None:
    scored(evaluation)
    Run.objects.filter(evaluation=evaluation).update(metrics={"mrr@10": {**FIGURES, "mean": 0.5}})
    scored(Evaluation.objects.get(id=world.evaluate().json()["id"]))
    html = read(editor, "/")
    assert "+0.250" in html
    assert "against the run before" in html
    assert "3 of 4 questions" in html
    assert "(not all)" in html
    assert 'class="spark"' in html
    assert "2 evaluations" in html


def test_what_was_submitted_and_has_no_figure_yet_is_on_the_overview(editor: Client, evaluation: Evaluation) -> None:
    html = read(editor, "/")
    assert "not yet" in html
    assert "Load the sample handbook" not in html


# ---- workspaces
def test_one_goes_to_another_of_ones_workspaces_and_to_no_other(world: World, editor: Client) -> None:
    second, foreign = Workspace.objects.create(name="second"), Workspace.objects.create(name="foreign")
    Membership.objects.create(workspace=second, user=User.objects.get(), role=Role.EDITOR)
    assert "Handbook" in read(editor, reverse("bases"))
    assert editor.post(reverse("workspace"), {"workspace": second.id}).status_code == 302
    assert "Handbook" not in read(editor, reverse("bases"))
    assert editor.get("/api/v1/knowledge-bases").json()["results"] == [], "what pages link to is of that workspace"
    assert editor.get(reverse("base", args=[world.base.knowledge_base.id])).status_code == 404
    assert editor.post(reverse("workspace"), {"workspace": foreign.id}).status_code == 404
    Membership.objects.filter(workspace=second).delete()
    assert "Handbook" in read(editor, reverse("bases"))


def test_a_fragment_of_somebody_who_was_logged_out_sends_the_window_to_the_login(base: KnowledgeBase) -> None:
    answer = Client().get(reverse("base-progress", args=[base.id]), headers={"HX-Request": "true"})
    assert answer["HX-Redirect"].startswith("/login?next=")


# ---- what a page costs
def n_queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as found:
        read(client, address)
    return len(found)


def test_pages_ask_the_database_as_often_for_many_rows_as_for_few(
    editor: Client, world: World, base: KnowledgeBase, found_set: QuestionSet, evaluation: Evaluation
) -> None:
    scored(evaluation)
    addresses = [
        "/",
        reverse("bases"),
        reverse("base", args=[base.id]),
        reverse("base-sources", args=[base.id]),
        reverse("sets"),
        reverse("set", args=[found_set.id]),
        reverse("set-versions", args=[found_set.id]),
        reverse("history"),
    ]
    few = {address: n_queries(editor, address) for address in addresses}
    _multiply(world, base, found_set)
    many = {address: n_queries(editor, address) for address in addresses}
    assert many == few
    assert max(few.values()) <= 22, few


def _multiply(world: World, base: KnowledgeBase, found_set: QuestionSet) -> None:
    first = Document.objects.filter(knowledge_base=base)[0]
    for name in ("more", "still more"):
        source = Source.objects.create(knowledge_base=base, name=name)
        Document.objects.bulk_create(
            Document(source=source, knowledge_base=base, path=f"{name}/{n}.md", blob=first.blob, bytes_hash="x", size=1)
            for n in range(60)
        )
        KnowledgeBase.objects.create(workspace=world.workspace, name=name)
        QuestionSet.objects.create(workspace=world.workspace, name=name).versions.create(
            number=1, content_hash=name, format="jsonl", level="document", n_questions=1
        )
    items = [{"question": f"Number {n}?", "expected": ["policies/leave.md"]} for n in range(70)]
    world.client.post(f"/api/v1/question-sets/{found_set.id}/questions", {"questions": items})
    for _ in range(3):
        scored(Evaluation.objects.get(id=world.evaluate(modes=["keyword", "keyword_rerank"]).json()["id"]))


def _file(name: str, data: bytes) -> BytesIO:
    file = BytesIO(data)
    file.name = name
    return file
