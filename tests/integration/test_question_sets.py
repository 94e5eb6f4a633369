"""Question sets in the database: versions, edits, files found in sources."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from backend.core import question_sets as core
from backend.core.errors import ConflictError, ErrorCode, NotFoundError, QuestionSetError, ValidationError
from backend.models import Evaluation, Question, QuestionSet, QuestionSetVersion, Workspace
from backend.queries import questions
from backend.services import question_sets, sources
from tests.integration.ingest_work import folder_source, new_base, upload

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = [
    {"id": "leave", "question": "How much leave?", "expected": ["leave.md"], "tags": ["people"]},
    {"id": "e-1", "question": "What is E-1?", "expect": [{"document": "errors", "content_contains": ["E-1", "E1"]}]},
]


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(name="w")


def lines(*values: object) -> bytes:
    return "\n".join(json.dumps(value) for value in values).encode()


def keys(version: QuestionSetVersion) -> list[str]:
    return [question.key for question in questions.questions_of(version)]


def test_a_set_comes_back_from_the_database_as_it_was_parsed(workspace: Workspace) -> None:
    items = [
        *ITEMS,
        {
            "question": 'İçerik nerede?\t\\N "quoted"',
            "expect": [{"any_of": [{"path": "a", "source": "s"}, {"passage": "p", "text": "snippet"}], "grade": 2}],
            "note": "n",
            "must_pass": True,
            "reference_answer": "r",
            "source": "s",
            "collection": "c",
        },
        {"question": "Nothing answers this", "unanswerable": True},
    ]
    version = question_sets.create(workspace, name="mixed", items=items)
    parsed = core.parse_items(items)

    assert tuple(questions.as_core(version)) == parsed.questions
    assert (version.number, version.n_questions, version.level, version.is_graded) == (1, 4, "passage", True)
    assert not question_sets.create(workspace, name="plain", items=ITEMS).is_graded
    assert version.content_hash == core.content_hash(parsed)


def test_the_same_questions_make_no_new_version_in_any_format(workspace: Workspace) -> None:
    first = question_sets.create(workspace, name="s", items=ITEMS)
    again = question_sets.add_version(first.question_set, data=lines(*ITEMS), filename="s.jsonl")
    assert again == first
    second = question_sets.add_version(first.question_set, items=ITEMS[:1])
    assert (second.number, second.n_questions) == (2, 1)
    assert keys(first) == ["leave", "e-1"]
    back = question_sets.add_version(first.question_set, items=ITEMS)
    assert (back.number, back.content_hash) == (3, first.content_hash)


def test_all_faults_of_a_file_are_told_and_nothing_is_stored(workspace: Workspace) -> None:
    data = b'{"question": ""}\n{broken\n{"question": "ok", "expected": []}\n'
    with pytest.raises(QuestionSetError) as refused:
        question_sets.create(workspace, name="s", data=data, filename="s.jsonl")
    assert {fault.line for fault in refused.value.faults} >= {1, 2}
    assert not QuestionSet.objects.exists()


def test_a_name_is_taken_once_and_must_be_one(workspace: Workspace) -> None:
    question_sets.create(workspace, name="s", items=ITEMS)
    with pytest.raises(ConflictError):
        question_sets.create(workspace, name=" s ", items=ITEMS)
    for name in ("", " ", "x" * 201, "a\x00b"):
        with pytest.raises(ValidationError):
            question_sets.create(workspace, name=name, items=ITEMS)
    with pytest.raises(ValidationError):
        question_sets.create(workspace, name="t")


def test_single_edits_make_new_versions_and_leave_the_old_ones_alone(workspace: Workspace) -> None:
    first = question_sets.create(workspace, name="s", items=ITEMS)
    made = first.question_set
    second = question_sets.add_questions(made, [{"id": "new", "question": "New?", "expected": ["n.md"]}])
    third = question_sets.delete_questions(made, ["e-1"])

    assert (keys(first), keys(second), keys(third)) == (["leave", "e-1"], ["leave", "e-1", "new"], ["leave", "new"])
    assert (first.level, second.level, third.level) == ("passage", "passage", "document")
    with pytest.raises(QuestionSetError, match="leave"):
        question_sets.add_questions(made, [{"id": "leave", "question": "Again?", "expected": ["n.md"]}])
    with pytest.raises(NotFoundError):
        question_sets.delete_questions(made, ["nobody"])
    with pytest.raises(QuestionSetError) as empty:
        question_sets.delete_questions(made, ["leave", "new"])
    assert empty.value.code == ErrorCode.EVAL_SET_EMPTY
    assert QuestionSetVersion.objects.count() == 3


def test_two_edits_at_once_get_two_numbers(workspace: Workspace) -> None:
    made = question_sets.create(workspace, name="s", items=ITEMS).question_set
    failures = []

    def add(n: int) -> None:
        try:
            question_sets.add_questions(made, [{"id": f"q{n}", "question": f"Number {n}?", "expected": ["a"]}])
        except Exception as error:  # noqa: BLE001  reported by the test
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    latest = questions.get_version(made)
    assert (latest.number, latest.n_questions) == (5, 6)


def test_a_hundred_thousand_questions_are_stored_within_seconds(workspace: Workspace) -> None:
    items = [{"id": str(n), "question": f"Question {n}?", "expected": [f"d{n}.md"]} for n in range(100_000)]
    parsed = core.parse_items(items)
    made = QuestionSet.objects.create(workspace=workspace, name="large")
    started = time.perf_counter()
    version = question_sets._next(made, parsed, filename="")
    seconds = time.perf_counter() - started

    assert Question.objects.filter(version=version).count() == 100_000
    assert seconds < 30  # about 6 on an idle core


def test_an_open_evaluation_keeps_a_set_unless_forced(workspace: Workspace) -> None:
    version = question_sets.create(workspace, name="s", items=ITEMS)
    evaluation = Evaluation.objects.create(
        workspace=workspace,
        question_set_version=version,
        set_name="s",
        n_questions=2,
        scope={},
        plan={},
        state="running",
        deadline_at=datetime.now(UTC) + timedelta(hours=1),
    )
    with pytest.raises(ConflictError):
        question_sets.delete(version.question_set)
    question_sets.delete(version.question_set, force=True)
    evaluation.refresh_from_db()

    assert evaluation.state == "cancelling"
    assert evaluation.question_set_version_id is None
    assert not Question.objects.exists()


def test_a_version_is_named_by_id_or_id_and_number(workspace: Workspace) -> None:
    first = question_sets.create(workspace, name="s", items=ITEMS)
    second = question_sets.add_version(first.question_set, items=ITEMS[:1])
    key = str(first.question_set.id)

    assert question_sets.resolve(workspace, key) == second
    assert question_sets.resolve(workspace, f"{key}@1") == first
    for unknown in (f"{key}@3", f"{key}@x", f"{key}@-1", "nonsense", f"{key}@99999999999999"):
        with pytest.raises(NotFoundError):
            question_sets.resolve(workspace, unknown)
    with pytest.raises(NotFoundError):
        question_sets.resolve(Workspace.objects.create(name="stranger"), key)
    with pytest.raises(ValidationError):
        question_sets.resolve(workspace)
    with pytest.raises(ValidationError):
        question_sets.resolve(workspace, key, file="a:b")


def test_a_file_found_in_a_source_becomes_a_set_with_a_version_for_each_content(tmp_path: Path) -> None:
    (tmp_path / ".touchstone").mkdir()
    file = tmp_path / ".touchstone" / "q.jsonl"
    file.write_bytes(lines(ITEMS[0]))
    base = new_base()
    source = folder_source(base, tmp_path, name="team:docs")
    sources.sync(source)

    first = question_sets.resolve(base.workspace, file="team:docs:.touchstone/q.jsonl", knowledge_base=base)
    assert first.question_set.name == "team:docs:.touchstone/q.jsonl"
    assert question_sets.resolve(base.workspace, file="team:docs:q.jsonl") == first

    file.write_bytes(lines(*ITEMS))
    sources.sync(source)
    second = question_sets.resolve(base.workspace, file="team:docs:q.jsonl", knowledge_base=base)
    assert (second.question_set, second.number) == (first.question_set, 2)

    file.write_bytes(lines(ITEMS[0]))
    sources.sync(source)
    assert question_sets.resolve(base.workspace, file="team:docs:q.jsonl", knowledge_base=base) == first


def test_an_unknown_source_names_those_there_are_and_an_unknown_file_the_files() -> None:
    base = new_base()
    upload(base, {".touchstone/q.jsonl": lines(ITEMS[0])})
    with pytest.raises(QuestionSetError) as source:
        question_sets.resolve(base.workspace, file="drive:q.jsonl", knowledge_base=base)
    assert source.value.code == ErrorCode.EVAL_FILE
    assert source.value.field == "file"
    assert "'drive' is not one of this knowledge base's sources" in source.value.message
    assert "uploads" in source.value.message
    with pytest.raises(QuestionSetError, match=r"uploads:\.touchstone/q\.jsonl"):
        question_sets.resolve(base.workspace, file="uploads:other.jsonl", knowledge_base=base)


def test_a_faulty_file_is_refused_with_its_lines() -> None:
    base = new_base()
    upload(base, {".touchstone/q.jsonl": b'{"question": "Where?", "expected": ["a"]}\n{"question": ""}\n{oops\n'})
    with pytest.raises(QuestionSetError) as refused:
        question_sets.resolve(base.workspace, file="uploads:q.jsonl", knowledge_base=base)
    assert {fault.line for fault in refused.value.faults} == {2, 3}
    assert not QuestionSet.objects.exists()


def test_a_sources_name_before_a_path_is_told_from_a_url(workspace: Workspace) -> None:
    base = new_base(name="b")
    sources.create(base, name="drive")
    version = question_sets.create(
        base.workspace, name="s", items=[{"question": "q", "expected": ["drive:a.md", "https://x/a.md"]}]
    )
    (question,) = questions.as_core(version)
    alternatives = [one.any_of[0] for one in question.expectations]
    assert [(one.source, one.path) for one in alternatives] == [("drive", "a.md"), (None, "https://x/a.md")]


def test_questions_are_filtered_and_found_by_key(workspace: Workspace) -> None:
    version = question_sets.create(workspace, name="s", items=ITEMS)
    assert [one.key for one in questions.questions_of(version, tag="people")] == ["leave"]
    assert questions.get_question(version, "e-1").text == "What is E-1?"
    for key in ("nobody", "a\x00b"):
        with pytest.raises(NotFoundError):
            questions.get_question(version, key)
    assert [(one.name, one.latest_number, one.n_questions) for one in questions.sets_of(workspace)] == [("s", 1, 2)]  # type: ignore[attr-defined]
