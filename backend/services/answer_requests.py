"""Which models answer and judge, as an evaluation asks for it: checked at submit, frozen in its plan."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from backend.core.answers import prompts
from backend.core.errors import ErrorCode, TouchstoneError
from backend.providers.base import ProviderError
from backend.search import providers

DEFAULT_PASSAGES, MOST_PASSAGES = 5, 20
MOST_REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan:
    """`passages`: how many of the first are answered from. `repeats`: how often each answer is judged."""

    llm: str
    judge: str
    passages: int = DEFAULT_PASSAGES
    repeats: int = 1
    prompt_version: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> "AnswerPlan | None":
        return cls(**stored) if stored else None


def resolve(workspace_id: UUID, *, llm: str, judge: str, passages: int, repeats: int) -> AnswerPlan:
    """Raises PROVIDER_NOT_CONFIGURED, naming the field. Without a judge of its own the answering model judges itself:
    the run says so."""
    answering = llm or settings.LLM
    if not answering:
        raise TouchstoneError(
            ErrorCode.PROVIDER_NOT_CONFIGURED,
            "Judging answers needs a chat model: name one in llm (such as openai:gpt-4o-mini), set TOUCHSTONE_LLM, or "
            "leave evaluate_answers out.",
            field="llm",
        )
    judging = judge or settings.JUDGE or answering
    for spec, field in ((answering, "llm"), (judging, "judge")):
        try:
            providers.chat(spec, workspace_id=workspace_id)
        except ProviderError as error:
            raise TouchstoneError(error.code, error.message, field=field) from error
    return AnswerPlan(
        llm=answering, judge=judging, passages=passages, repeats=repeats, prompt_version=prompts.version()
    )
