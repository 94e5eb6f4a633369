"""Questions made from documents, end to end against a chat server whose replies are good, and bad in every way."""

from collections.abc import Iterator
from typing import Any

import pytest

from backend.core.errors import ConflictError, ErrorCode, TouchstoneError, ValidationError
from backend.core.generation.kinds import DraftState
from backend.core.states import JobState
from backend.models import Draft, Generation, Job, Question, SpendEntry, Workspace
from backend.providers import chat_openai
from backend.queries import generation as queries
from backend.search import providers
from backend.services import drafting, drafts, generation, jobs
from tests.engine import drain
from tests.integration.search_rows import Base, Row, make_base
from tests.standins import Standin
from tests.standins.script import Fault, Script

pytestmark = pytest.mark.django_db(transaction=True)

_TOPICS = ["holidays", "laptops", "travel", "parking", "badges", "meals", "training", "expenses", "visitors", "safety"]


def passage(topic: str, number: int) -> str:
    return (
        f"The rule number {number} about {topic} was agreed by the works council and is valid for every office. "
        f"Whoever asks for {topic} of class {number} has to write to the desk {number}{topic[:3]} within nine days. "
        f"The desk answers within two days, and its answer on {topic} is kept for {number + 3} years in the archive. "
        "Nobody may decide alone, and every decision is written down with the names of those who took it."
    )


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with Standin(Script(chat="works")) as running:
        monkeypatch.setenv("TOUCHSTONE_CHAT_SHELF_URL", f"{running.url}/v1")
        providers.forget()
        chat_openai.forget_manners()
        yield running
    providers.forget()


@pytest.fixture
def base() -> Base:
    return make_base(
        *(Row(path=f"{topic}.md", text=passage(topic, number)) for number, topic in enumerate(_TOPICS, start=11)),
        embedder="none",
        dimensions=None,
    )


def made(base: Base, **more: Any) -> Generation:
    request = generation.parse(
        {"knowledge_base": str(base.knowledge_base.id), "llm": "shelf:small", "kinds": ["fact"], **more}
    )
    return generation.start(base.workspace, request)


def run(base: Base, **more: Any) -> Generation:
    asked = made(base, **more)
    work()
    asked.refresh_from_db()
    return asked


def work() -> None:
    """Until nothing waits, not for its time either."""
    for _ in range(40):
        drain()
        from backend.models import Slice

        if not Slice.objects.filter(state="pending").update(not_before=None):
            return


def test_replies_of_every_kind_are_counted_and_nothing_is_dropped_silently(base: Base, standin: Standin) -> None:
    words = {
        "holidays": "fenced",
        "laptops": "cut",
        "travel": "refused",
        "parking": "empty",
        "badges": "doubled",
        "meals": "wrong_language",
        "training": "injected",
        "expenses": "garbage",
    }
    standin.set_script(Script(chat="works", chat_words={f"asks for {topic}": how for topic, how in words.items()}))
    row = queries.row(run(base, answerability=False))
    assert row.generation.job is not None
    assert row.generation.job.state == JobState.COMPLETED
    assert row.counts == {"open": 0, "pending": 4, "accepted": 0, "rejected": 0, "dropped": 2, "failed": 4}
    assert row.faults == {"cut": 1, "refused": 1, "empty": 1, "unreadable": 1, "form": 2}
    assert row.n_drawn == len(_TOPICS)
    by_path = {one.passages[0]["path"]: one for one in Draft.objects.all()}
    assert by_path["holidays.md"].how == "fenced"
    assert by_path["badges.md"].how == "doubled"
    assert "german" in by_path["meals.md"].reason
    assert "order" in by_path["training.md"].reason
    assert by_path["expenses.md"].reply.startswith("I would say")
    assert row.rungs == {"json_schema": 10}
    assert row.units["chat_calls"] == 10
    assert SpendEntry.objects.filter(purpose="generation").count() == 10


def test_a_question_that_comes_again_is_dropped_as_a_duplicate(base: Base, standin: Standin) -> None:
    standin.set_script(Script(chat="works", chat_words={"holidays": "same", "laptops": "same", "travel": "same"}))
    row = queries.row(run(base, answerability=False))
    assert row.faults == {"duplicates": 2}
    assert row.counts["pending"] == 8


def test_what_its_passage_does_not_answer_is_dropped_and_the_verdicts_say_what_was_checked(
    base: Base, standin: Standin
) -> None:
    standin.set_script(Script(chat="works", chat_words={"visitors of class": "same"}))
    row = queries.row(run(base))
    assert row.faults == {"answerability": 1}
    good = Draft.objects.filter(state=DraftState.PENDING)[0]
    assert [one["filter"] for one in good.verdicts] == [
        "form",
        "self_containment",
        "leakage",
        "duplicates",
        "source_quality",
        "near_duplicates",
        "answerability",
        "round_trip",
    ]
    assert good.verdicts[-1]["numbers"]["ranks"] == {"keyword": 1}
    assert good.passages[0]["snippet"] in good.passages[0]["text"]
    assert good.passages[0]["is_quoted"]


def test_the_sample_is_by_document_and_the_same_for_a_seed(standin: Standin) -> None:
    long = [Row(path="long.md", text=passage("lines", n), ordinal=n) for n in range(40)]
    base = make_base(
        *long, *(Row(path=f"{topic}.md", text=passage(topic, 3)) for topic in _TOPICS), embedder="none", dimensions=None
    )
    first = run(base, sample_size=11, seed=5, answerability=False)
    second = run(base, sample_size=11, seed=5, answerability=False)
    assert sorted(one.passages[0]["path"] for one in first.drafts.all()) == sorted(
        ["long.md", *(f"{topic}.md" for topic in _TOPICS)]
    )
    assert [one.passages[0]["chunk"] for one in first.drafts.order_by("ordinal")] == [
        one.passages[0]["chunk"] for one in second.drafts.order_by("ordinal")
    ]


def test_a_twin_of_the_passage_becomes_an_alternative_of_the_label(standin: Standin) -> None:
    text = passage("holidays", 12)
    base = make_base(
        Row(path="a.md", text=text),
        Row(path="b.md", text=f"{text} It was copied here."),
        embedder="none",
        dimensions=None,
    )
    asked = run(base, sample_size=1, answerability=False)
    draft = asked.drafts.get()
    assert [one["path"] for one in draft.alternatives] == [{"a.md": "b.md", "b.md": "a.md"}[draft.passages[0]["path"]]]
    case = drafts.as_case(draft, asked)
    assert {one["path"] for one in case["expect"][0]["any_of"]} == {"a.md", "b.md"}
    assert all(set(one) == {"path", "source", "text"} for one in case["expect"][0]["any_of"])


def test_several_passages_make_one_question_and_unanswerable_ones_expect_nothing(base: Base, standin: Standin) -> None:
    asked = run(base, kinds=["several", "unanswerable", "keyword", "paraphrase"], answerability=False)
    for draft in asked.drafts.filter(state=DraftState.PENDING):
        case = drafts.as_case(draft, asked)
        assert len(case.get("expect", [])) == {"several": 2, "unanswerable": 0}.get(draft.kind, 1)
    assert set(asked.drafts.values_list("kind", flat=True)) == {"several", "unanswerable", "keyword", "paraphrase"}


def test_a_server_that_fails_in_passing_costs_tries_and_no_draft(base: Base, standin: Standin) -> None:
    standin.set_script(Script(chat="works", fault=Fault.STATUS, status=503, fault_from=2, n_faults=3))
    row = queries.row(run(base, answerability=False))
    assert row.counts["pending"] == len(_TOPICS)
    assert row.generation.job is not None
    assert row.generation.job.state == JobState.COMPLETED


def test_a_refused_key_fails_the_job_and_a_retry_asks_only_for_what_is_open(base: Base, standin: Standin) -> None:
    standin.set_script(Script(chat="works", fault=Fault.STATUS, status=401, fault_from=3))
    asked = run(base, answerability=False)
    assert asked.job is not None
    assert (asked.job.state, asked.job.code) == (JobState.FAILED, ErrorCode.PROVIDER_AUTH)
    assert drafting.counts(asked)["pending"] == 3
    assert drafting.counts(asked)["open"] == 7
    standin.set_script(Script(chat="works"))
    generation.retry(base.workspace, asked.id)
    work()
    assert drafting.counts(asked) == {**{state.value: 0 for state in DraftState}, "pending": 10}
    assert len(standin.calls) == 7
    with pytest.raises(ConflictError, match="nothing to ask again"):
        generation.retry(base.workspace, asked.id)


def test_cancelling_keeps_what_was_made(base: Base, standin: Standin) -> None:
    asked = made(base)
    generation.cancel(base.workspace, asked.id)
    work()
    assert Job.objects.get().state == JobState.CANCELLED
    assert not standin.calls


def test_without_a_model_headings_and_sentences_become_queries_and_say_so(base: Base) -> None:
    request = generation.parse({"knowledge_base": str(base.knowledge_base.id), "sample_size": 10})
    asked = generation.start(base.workspace, request)
    work()
    row = queries.row(asked)
    assert asked.llm == "local"
    assert row.counts["pending"] + row.counts["dropped"] == 10
    assert row.counts["pending"] >= 8
    assert set(asked.drafts.values_list("model", flat=True)) == {"local/1"}
    with pytest.raises(ValidationError, match="can do nothing else"):
        generation.start(base.workspace, generation.parse({**_of(base), "llm": "local", "kinds": ["fact"]}))


def _of(base: Base) -> dict[str, Any]:
    return {"knowledge_base": str(base.knowledge_base.id)}


def test_a_model_that_is_not_configured_is_refused_at_once(base: Base) -> None:
    with pytest.raises(TouchstoneError) as caught:
        made(base, llm="nowhere:model")
    assert (caught.value.code, caught.value.field) == (ErrorCode.PROVIDER_NOT_CONFIGURED, "llm")


def test_every_fault_of_a_request_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        generation.parse({"sample_size": 0, "kinds": ["riddle"], "language": "klingon", "prompt": "x" * 5000})
    assert {fault.field for fault in caught.value.faults} == {
        "knowledge_base",
        "sample_size",
        "kinds",
        "language",
        "prompt",
    }


def test_accepted_drafts_become_questions_that_stay_marked_as_generated(base: Base, standin: Standin) -> None:
    from django.utils import timezone

    asked = run(base, answerability=False)
    first, second, third = asked.drafts.order_by("ordinal")[:3]
    workspace: Workspace = base.workspace
    now = timezone.now()
    drafts.review(workspace, first.id, action="accept", reviewer="me", now=now)
    drafts.review(
        workspace, second.id, action="accept", question="How long does the desk take?", reviewer="me", now=now
    )
    drafts.review(workspace, third.id, action="reject", reviewer="me", now=now)
    version = drafts.put_into_set(workspace, asked.id, name="made")
    rows = list(Question.objects.filter(version=version).order_by("ordinal"))
    assert [row.text for row in rows] == [first.question, "How long does the desk take?"]
    assert {row.generated for row in rows} == {f"shelf:small {asked.prompt_version}"}
    assert "generated" in rows[0].tags
    assert any(tag.startswith("leakage:") for tag in rows[0].tags)
    with pytest.raises(ConflictError, match="No draft"):
        drafts.put_into_set(workspace, asked.id, name="again")
    with pytest.raises(ConflictError, match="in a question set"):
        drafts.review(workspace, first.id, action="reject", reviewer="me", now=now)
    (told,) = queries.rates(workspace)
    assert (told.n_accepted, told.n_edited, told.n_rejected, told.acceptance) == (2, 1, 1, 2 / 3)
    # A version that a client writes without the mark has it all the same.
    from backend.services import question_sets

    again = question_sets.add_version(
        version.question_set,
        items=[{"id": rows[0].key, "question": "Another wording?", "expected": ["a.md"]}],
    )
    assert Question.objects.get(version=again).generated == rows[0].generated
    assert jobs.KEPT_DAYS
