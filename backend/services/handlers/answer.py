"""`answer`: one question of one run answered from its stored ranking, and the answer judged.

Retrieval is done by then: whatever happens here changes neither a result nor a metric of it. Replies are found again
by content, so a slice that is tried again asks only for what failed.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from backend.core.answers import judging, prompts
from backend.core.answers.judging import Judgement
from backend.core.answers.kinds import AnswerOutcome
from backend.core.errors import ErrorCode
from backend.core.replies import UnreadableReplyError
from backend.core.types import Question
from backend.models import Purpose, Result
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.chat import Ask, Ending, system_and_user
from backend.search import chatting
from backend.search.ledger import PaidFor
from backend.search.pacing import PacedError
from backend.services import answers, giving_up, plans, provider_states, slices
from backend.services.answer_requests import AnswerPlan
from backend.services.answers import Written
from backend.services.plans import Plan
from backend.services.slices import Lease

_ANSWER_TOKENS = 800
_JUDGE_TOKENS = 3000
_MOST_REPLY = 20_000


@dataclass(slots=True, kw_only=True)
class _Work:
    """What is known of one answer so far. `asked` names the provider of the call under way."""

    lease: Lease
    plan: Plan
    wanted: AnswerPlan
    question: Question
    passages: list[dict[str, Any]]
    asked: str = ""
    text: str = ""
    replies: list[dict[str, Any]] = field(default_factory=list)
    units: dict[str, float] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [passage["text"] for passage in self.passages]

    def written(self, outcome: AnswerOutcome, **more: Any) -> Written:
        return Written(
            run_id=UUID(self.lease.payload["run"]),
            ordinal=self.lease.items[0],
            question_key=self.lease.payload["key"],
            outcome=outcome,
            text=self.text,
            passages=[{name: passage[name] for name in ("rank", "passage", "path")} for passage in self.passages],
            replies=self.replies,
            units=self.units,
            **more,
        )


def run(lease: Lease) -> None:
    """Raises ProviderError while trying again can help."""
    plan = plans.load(lease.evaluation)
    ordinal = lease.items[0]
    question = plans.questions(plan.version_id, [ordinal]).get(ordinal)
    result = Result.objects.filter(run_id=lease.payload["run"], ordinal=ordinal).only("ranking").first()
    if plan.answers is None or question is None or result is None:
        # The run or the set was deleted meanwhile: nothing is owed to anybody.
        with slices.commit(lease, finish=True):
            return
    passages = answers.passages_of(result.ranking, limit=plan.answers.passages)
    work = _Work(lease=lease, plan=plan, wanted=plan.answers, question=question, passages=passages)
    stop = answers.stopped(plan.evaluation_id, epoch=lease.epoch)
    if stop is not None:
        _end(work, work.written(AnswerOutcome.NOT_RUN, code=stop[0], reason=stop[1]))
        return
    if not passages:
        reason = "The passages of its ranking are gone: the documents have changed since."
        _end(work, work.written(AnswerOutcome.FAILED, code=ErrorCode.NOT_FOUND.value, reason=reason))
        return
    try:
        done = _answered_and_judged(work)
    except PacedError:
        raise
    except ProviderError as error:
        if provider_states.will_try_again(lease, error, provider=work.asked):
            raise
        if error.fatal:
            giving_up.stop_answers(lease, code=error.code, reason=error.message)
            return
        done = work.written(AnswerOutcome.FAILED, code=error.code.value, reason=error.message)
    _end(work, done)


def _end(work: _Work, done: Written) -> None:
    with slices.commit(work.lease, finish=True):
        answers.write([done], epoch=work.lease.epoch)


def _answered_and_judged(work: _Work) -> Written:
    work.text = _answer(work)
    if not work.text:
        # It says that it does not know. No judge is needed to see that, and none agrees with itself about it.
        return work.written(
            AnswerOutcome.JUDGED,
            abstained=True,
            relevance=None if work.question.unanswerable else 0.0,
            correctness=_correctness(work, [], abstained=True),
        )
    judged = _judgements(work)
    abstained = sum(one.abstained for one in judged) * 2 > len(judged)
    return work.written(
        AnswerOutcome.JUDGED,
        abstained=abstained,
        faithfulness=judging.mean([one.faithfulness for one in judged]),
        relevance=judging.mean([one.relevance for one in judged]),
        correctness=_correctness(work, judged, abstained=abstained),
        n_repeats=len(judged),
        claims=[[claim.to_json() for claim in one.claims] for one in judged],
    )


def _correctness(work: _Work, judged: list[Judgement], *, abstained: bool) -> float | None:
    """Against the reference answer. A question that has no answer is answered rightly by saying so."""
    if work.question.unanswerable:
        return 1.0 if abstained else 0.0
    if not work.question.reference_answer:
        return None
    return 0.0 if not judged else judging.mean([one.correctness for one in judged])


def _answer(work: _Work) -> str:
    prompt = prompts.answer(work.question.text, work.texts)
    ask = Ask(
        name="answer",
        messages=system_and_user(prompt.system, prompt.user),
        schema=prompts.ANSWER_SCHEMA,
        max_tokens=_ANSWER_TOKENS,
    )
    return str(_ask(work, "answer", work.wanted.llm, ask, judging.read_answer))


def _judgements(work: _Work) -> list[Judgement]:
    """One a repeat. Where some fail and others do not, those that there are count; where all fail, the first failure
    is raised."""
    reference = work.question.reference_answer
    prompt = prompts.judge(work.question.text, work.texts, answer=work.text, reference=reference)
    ask = Ask(
        name="judgement",
        messages=system_and_user(prompt.system, prompt.user),
        schema=prompts.judge_schema(with_reference=bool(reference)),
        max_tokens=_JUDGE_TOKENS,
    )
    found: list[Judgement] = []
    first: ProviderError | None = None
    for repeat in range(work.wanted.repeats):
        try:
            found.append(
                _ask(
                    work,
                    "judge",
                    work.wanted.judge,
                    ask,
                    lambda text: judging.read_judgement(text, passages=work.texts, with_reference=bool(reference)),
                    repeat=repeat,
                )
            )
        except PacedError:
            raise
        except ProviderError as error:
            if error.fatal:
                raise
            first = first or error
    if not found and first is not None:
        raise first
    return found


def _ask(work: _Work, role: str, spec: str, ask: Ask, read: Any, *, repeat: int = 0) -> Any:
    """A usable reply, read. One that is not raises a SHAPE fault that can be tried again."""
    work.asked = spec
    standing = provider_states.check(work.lease, spec)
    if standing.gave_up:
        reason = provider_states.gave_up_on(spec, standing)
        raise ProviderError(ProviderFault.SERVER, reason)
    replied = chatting.ask(
        work.plan.workspace_id,
        spec,
        ask,
        repeat=repeat,
        use_cache=work.plan.use_cache,
        timeout=work.lease.call_seconds(local=False),
        paid_for=PaidFor(purpose=Purpose.ANSWERS, owner=work.lease.evaluation),
    )
    if standing.ailing:
        provider_states.succeeded(work.plan.workspace_id, spec)
    reply = replied.reply
    if replied.is_cached:
        work.units[f"{role}_cached"] = work.units.get(f"{role}_cached", 0.0) + 1
    for name, amount in reply.units.items():
        work.units[f"{role}_{name}"] = work.units.get(f"{role}_{name}", 0.0) + amount
    kept = {
        "role": role,
        "repeat": repeat,
        "model": reply.model,
        "rung": reply.rung.value,
        "ending": reply.ending.value,
        "text": reply.text.replace("\x00", "").encode("utf-8", "replace").decode()[:_MOST_REPLY],
    }
    work.replies.append(kept)
    if reply.ending is not Ending.COMPLETE:
        raise _unusable(spec, f"gave a reply that was {reply.ending.value}.")
    try:
        value = read(reply.text)
    except UnreadableReplyError as error:
        raise _unusable(spec, f"gave a reply that cannot be used: {error}") from error
    if work.plan.use_cache:
        chatting.keep(work.plan.workspace_id, replied)
    return value


def _unusable(spec: str, what: str) -> ProviderError:
    return ProviderError(ProviderFault.SHAPE, f"{spec} {what}", retryable=True)
