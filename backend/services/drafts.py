"""Drafts reviewed by a person, and what was accepted put into a question set, marked as generated for ever."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from backend.core.errors import ConflictError, ValidationError
from backend.core.generation import filters, parsing
from backend.core.generation.kinds import DraftState, QuestionKind
from backend.core.question_sets.hashing import text_key
from backend.models import Draft, Generation, QuestionSet, QuestionSetVersion, Workspace
from backend.queries import generation as queries
from backend.queries import questions as set_queries
from backend.services import question_sets

ACTIONS = ("accept", "reject", "reopen")
# What a person can decide about: a draft that has a question, whatever the filters said.
_DECIDABLE = frozenset({DraftState.PENDING, DraftState.DROPPED, DraftState.ACCEPTED, DraftState.REJECTED})


def review(
    workspace: Workspace,
    draft_id: object,
    *,
    action: str,
    question: str | None = None,
    answer: str | None = None,
    reviewer: str,
    now: datetime,
) -> Draft:
    """Accept (with another wording, if one is given), reject, or take the decision back. The first wording is kept.

    Raises ValidationError, NotFoundError, and ConflictError for a draft that has no question or is in a set already.
    """
    if action not in ACTIONS:
        raise ValidationError(f"action is one of {', '.join(ACTIONS)}, not {action!r}.", field="action")
    with transaction.atomic():
        rows = Draft.objects.select_for_update(of=("self",))
        draft = queries.get_draft(workspace, draft_id, rows=rows)
        if draft.state not in _DECIDABLE:
            raise ConflictError(f"This draft is {draft.state}: there is no question to decide about.")
        if draft.question_key:
            raise ConflictError("This draft is in a question set already: change the question there.")
        change: dict[str, Any] = {"reviewed_by": reviewer[:100], "reviewed_at": now}
        change["state"] = {
            "accept": DraftState.ACCEPTED,
            "reject": DraftState.REJECTED,
            "reopen": DraftState.DROPPED if draft.code else DraftState.PENDING,
        }[action]
        if action == "accept":
            change |= _edited(draft, question=question, answer=answer)
        elif question is not None or answer is not None:
            raise ValidationError("question and answer go with accept only.", field="question")
        for name, value in change.items():
            setattr(draft, name, value)
        draft.save(update_fields=list(change))
    return draft


def _edited(draft: Draft, *, question: str | None, answer: str | None) -> dict[str, Any]:
    change: dict[str, Any] = {}
    if answer is not None:
        if len(answer) > parsing.MOST_ANSWER:
            raise ValidationError(f"answer has at most {parsing.MOST_ANSWER:,} characters.", field="answer")
        change["answer"] = answer.strip()
    wording = draft.question if question is None else question.strip()
    if not wording or len(wording) > parsing.MOST_QUESTION:
        raise ValidationError(f"question is a text of 1 to {parsing.MOST_QUESTION:,} characters.", field="question")
    if wording != draft.question:
        passage = "\n\n".join(one["text"] for one in draft.passages)
        leak = filters.measure_leakage(wording, passage)
        change |= {
            "question": wording,
            "original": draft.original or draft.question,
            "leakage_run": leak.longest_run,
            "leakage_copied": leak.copied,
            "leakage_band": leak.band.value,
        }
    return change


def put_into_set(
    workspace: Workspace, generation_id: object, *, name: str = "", question_set: str = ""
) -> QuestionSetVersion:
    """The accepted drafts that are in no set yet, as a new set or as the next version of one. A question that the set
    has already is not added again, and its draft is told to be in it.

    Raises ConflictError where nothing was accepted, NotFoundError, and what `question_sets.create` raises.
    """
    if bool(name) == bool(question_set):
        raise ValidationError("Name a new set (name), or one there is (question_set).", field="name")
    with transaction.atomic():
        made = queries.get_generation(workspace, generation_id, rows=Generation.objects.select_for_update(of=("self",)))
        accepted = list(made.drafts.filter(state=DraftState.ACCEPTED, question_key="").order_by("ordinal"))
        if not accepted:
            raise ConflictError("No draft is accepted that is not in a question set already.")
        found: QuestionSet | None = set_queries.get_set(workspace, question_set) if question_set else None
        taken = set() if found is None else {one.key for one in set_queries.as_core(set_queries.get_version(found))}
        new: dict[str, Draft] = {}
        for draft in accepted:
            key = text_key(draft.question)
            if key not in taken and key not in new:
                new[key] = draft
        items = [as_case(draft, made) for draft in new.values()]
        if found is None:
            version = question_sets.create(workspace, name=name, items=items, filename="")
        elif items:
            version = question_sets.add_questions(found, items)
        else:
            version = set_queries.get_version(found)
        for draft in accepted:
            draft.question_key = text_key(draft.question)
        Draft.objects.bulk_update(accepted, ["question_key"], batch_size=500)
        Generation.objects.filter(id=made.id).update(question_set=version.question_set)
    return version


def as_case(draft: Draft, made: Generation) -> dict[str, Any]:
    """The draft in the full form. Its label is the document and a snippet of its text, never a passage's id; near-twins
    are alternatives. Kind and leakage band are tags, so that results can be told apart by them."""
    tags = ["generated", f"kind:{draft.kind}"]
    if draft.leakage_band:
        tags.append(f"leakage:{draft.leakage_band}")
    case: dict[str, Any] = {
        "question": draft.question,
        "tags": tags,
        "generated": f"{made.llm} {made.prompt_version}"[:200],
    }
    if draft.answer:
        case["reference_answer"] = draft.answer
    if draft.kind == QuestionKind.UNANSWERABLE:
        return {**case, "unanswerable": True}
    case["expect"] = [
        {"any_of": [_label(one), *(map(_label, draft.alternatives) if len(draft.passages) == 1 else ())]}
        for one in draft.passages
    ]
    first = draft.passages[0]
    for field in ("source", "collection"):
        if first.get(field):
            case[field] = first[field]
    return case


def _label(passage: Mapping[str, Any]) -> dict[str, str]:
    return {"path": passage["path"], "source": passage["source"], "text": passage["snippet"]}


def next_pending(made: Generation, *, after: int | None = None) -> Draft | None:
    """The next that waits for a decision: behind this ordinal, else from the beginning."""
    waiting = made.drafts.filter(state=DraftState.PENDING).order_by("ordinal")
    return (waiting.filter(ordinal__gt=after).first() if after is not None else None) or waiting.first()


def decided(states: Sequence[str]) -> int:
    """How many of these states are decisions of a person."""
    return sum(state in {DraftState.ACCEPTED, DraftState.REJECTED} for state in states)
