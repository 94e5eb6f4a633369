"""`generate`, the job: one open draft after another is asked for, read, filtered and written.

Each draft is written in a commit of its own, so a worker that takes over repeats at most one asking, whose reply is
found in the cache. A call that fails in passing gives the job back, to go on later; one that no asking can escape fails
the job, and what was not asked for stays open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db.models import Count

from backend import logs
from backend.core.errors import ErrorCode
from backend.core.generation import local, parsing, prompts
from backend.core.generation.kinds import DraftFault, DraftState, QuestionKind
from backend.core.generation.parsing import MadeQuestion
from backend.core.replies import UnreadableReplyError
from backend.models import Draft, Generation, Job, Purpose
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.chat import Ask, Ending, added, system_and_user
from backend.search import chatting
from backend.search.ledger import PaidFor
from backend.search.pacing import PacedError
from backend.services import draft_checks, generation, jobs, provider_states, slices
from backend.services.slices import Lease

# What one more asking may take: with less left of the slice's time, the job is given back first.
_RESERVE_SECONDS = 90.0
_MOST_TOKENS = 600
_log = logs.get("generation")


@dataclass(slots=True, kw_only=True)
class _Made:
    """What came of one draft, on its way to its row."""

    state: DraftState = DraftState.PENDING
    question: MadeQuestion | None = None
    code: str = ""
    reason: str = ""
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    units: list[Mapping[str, float]] = field(default_factory=list)


def run(lease: Lease, job: Job) -> dict[str, Any]:
    """The handler of JobKind.GENERATE."""
    made = Generation.objects.select_related("workspace", "knowledge_base").get(id=job.payload["generation"])
    if made.drawn_at is None:
        generation.draw(lease, made)
    n_total = made.drafts.count()
    waiting = list(made.drafts.filter(state=DraftState.OPEN).order_by("ordinal").values_list("id", flat=True))
    jobs.progress(lease, n_total - len(waiting), n_total)
    checker = draft_checks.Checker(made, lease) if waiting else None
    for place, draft_id in enumerate(waiting):
        if lease.seconds_left < min(_RESERVE_SECONDS, settings.SLICE_DEADLINE_SECONDS / 4):
            raise jobs.LaterError(wait_seconds=0.0, used_try=False)
        draft = Draft.objects.get(id=draft_id)
        if draft.state == DraftState.OPEN and checker is not None:
            _one(lease, made, draft, checker)
        jobs.progress(lease, n_total - len(waiting) + place + 1)
    return {"generation": str(made.id), "counts": counts(made)}


def counts(made: Generation) -> dict[str, int]:
    """Drafts by state: all of them, so the sum is what was drawn."""
    found = dict(made.drafts.values_list("state").annotate(n=Count("id")).values_list("state", "n"))
    return {state.value: found.get(state.value, 0) for state in DraftState}


def _one(lease: Lease, made: Generation, draft: Draft, checker: draft_checks.Checker) -> None:
    try:
        told = _local(made, draft, checker) if made.llm == local.SPEC else _asked(lease, made, draft)
        if told.question is not None:
            checker.check(draft, told.question, told)
    except PacedError as error:
        raise jobs.LaterError(wait_seconds=error.wait_seconds or 1.0, used_try=False) from error
    except ProviderError as error:
        told = _after_failure(lease, made, draft, error)
    _write(lease, draft, told)


def _after_failure(lease: Lease, made: Generation, draft: Draft, error: ProviderError) -> _Made:
    """Raises LaterError where trying again can help, the error itself where nothing can."""
    if error.fatal:
        raise error
    provider_states.failed(made.workspace_id, made.llm, error)
    used = error.fault is not ProviderFault.RATE
    if error.retryable and draft.tries + used < provider_states.MOST_TRIES:
        Draft.objects.filter(id=draft.id).update(tries=draft.tries + used)
        wait = provider_states.wait_before_next(replace_tries(lease, draft.tries), error)
        raise jobs.LaterError(wait_seconds=wait, used_try=False) from error
    return _Made(state=DraftState.FAILED, code=error.code.value, reason=error.message)


def replace_tries(lease: Lease, tries: int) -> Lease:
    """The lease as it would be of this draft alone: waits grow with a draft's own tries, not with the job's."""
    return replace(lease, tries=tries)


def _local(made: Generation, draft: Draft, checker: draft_checks.Checker) -> _Made:
    passage = draft.passages[0]
    found = local.make(
        passage["text"],
        heading=passage["heading"],
        seed=int(made.settings["seed"]),
        avoid=frozenset(checker.folded_questions()),
    )
    if found is None:
        return _Made(
            state=DraftState.FAILED,
            code=DraftFault.EMPTY.value,
            reason="The passage has no sentence to make a query of.",
        )
    return _Made(question=found, changes={"model": local.VERSION, "how": found.how})


def _asked(lease: Lease, made: Generation, draft: Draft) -> _Made:
    standing = provider_states.check(lease, made.llm)
    if standing.gave_up:
        reason = provider_states.gave_up_on(made.llm, standing)
        return _Made(state=DraftState.FAILED, code=ErrorCode.PROVIDER_UNAVAILABLE.value, reason=reason)
    texts = [passage["text"] for passage in draft.passages]
    prompt = prompts.question(
        QuestionKind(draft.kind), texts, language=made.settings["language"], template=made.settings["prompt"]
    )
    replied = chatting.ask(
        made.workspace_id,
        made.llm,
        Ask(
            name="question",
            messages=system_and_user(prompt.system, prompt.user),
            schema=prompts.QUESTION_SCHEMA,
            max_tokens=_MOST_TOKENS,
            seed=int(made.settings["seed"]),
        ),
        timeout=lease.call_seconds(local=False),
        paid_for=PaidFor(purpose=Purpose.GENERATION, owner=lease.job),
    )
    provider_states.succeeded(made.workspace_id, made.llm)
    reply = replied.reply
    told = _Made(
        changes={"model": reply.model[:200] or made.llm[:200], "rung": reply.rung.value, "reply": _kept(reply.text)},
        units=[reply.units],
    )
    if reply.ending is not Ending.COMPLETE:
        fault = {
            Ending.CUT: (DraftFault.CUT, "The reply was cut at its limit of tokens."),
            Ending.REFUSED: (DraftFault.REFUSED, "The model refused to answer."),
            Ending.EMPTY: (DraftFault.EMPTY, "The reply is empty."),
        }[reply.ending]
        told.state, told.code, told.reason = DraftState.FAILED, fault[0].value, fault[1]
        return told
    try:
        told.question = parsing.read_question(reply.text)
    except UnreadableReplyError as error:
        told.state, told.code, told.reason = DraftState.FAILED, DraftFault.UNREADABLE.value, str(error)
        return told
    told.changes["how"] = told.question.how
    chatting.keep(made.workspace_id, replied)
    return told


def _write(lease: Lease, draft: Draft, told: _Made) -> None:
    question = told.question
    change = {
        **told.changes,
        "state": told.state,
        "code": told.code,
        "reason": told.reason,
        "verdicts": [*draft.verdicts, *told.verdicts],
        "checks": told.checks,
        "units": added([draft.units, *told.units]),
    }
    if question is not None:
        change |= {"question": question.question, "answer": question.answer}
    with slices.commit(lease):
        # Only while it is open: a person, or another worker, may have decided meanwhile.
        Draft.objects.filter(id=draft.id, state=DraftState.OPEN).update(**change)


def _kept(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:20_000]
