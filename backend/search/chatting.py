"""Asking a chat model: paced and paid for like every call, and its reply kept by content where the caller can use it.

Who asks decides what a usable reply is, so keeping one is a second step: a reply that could not be read is asked for
again, not found again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from backend.models import CachedReply
from backend.providers import rates
from backend.providers.chat import Ask, ChatReply, Ending, Rung
from backend.search import cache, ledger, pacing, providers
from backend.search.ledger import PaidFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """A reply, and the key under which it can be kept. A cached one was not billed: its `units` are empty."""

    reply: ChatReply
    key: bytes
    is_cached: bool = False


def ask(
    workspace_id: UUID,
    spec: str,
    question: Ask,
    *,
    repeat: int = 0,
    use_cache: bool = True,
    timeout: float | None = None,
    paid_for: PaidFor = ledger.SEARCH,
    before_call: Callable[[], None] | None = None,
) -> Replied:
    """Raises ProviderError, and PacedError before any call is made. `repeat` tells apart the times that one thing is
    asked on purpose; `before_call` runs between leave and call."""
    model = providers.chat(spec, workspace_id=workspace_id)
    info = model.info
    messages = [[one.role, one.content] for one in question.messages]
    key = cache.key(
        "reply",
        info.provider,
        info.base_url,
        info.model,
        messages,
        question.schema,
        question.temperature,
        question.max_tokens,
        repeat,
    )
    if use_cache and (found := _stored(workspace_id, key)) is not None:
        return Replied(reply=found, key=key, is_cached=True)
    pacing.take(workspace_id, rates.of_chat(spec, base_url=info.base_url, settings=providers.settings(workspace_id)))
    if before_call is not None:
        before_call()
    ledger.check(workspace_id, spec)
    reply = model.reply(question, timeout=settings.PROVIDER_TIMEOUT_SECONDS if timeout is None else timeout)
    # Before the reply is looked at: what cannot be used was paid for as well.
    ledger.record(
        workspace_id,
        spec,
        units=reply.units,
        estimates={
            "input_tokens": float(ledger.tokens_of(one.content for one in question.messages)),
            "output_tokens": float(ledger.tokens_of([reply.text])),
        },
        paid_for=paid_for,
    )
    return Replied(reply=reply, key=key)


def keep(workspace_id: UUID, replied: Replied) -> None:
    """Find it again, the next time that the same is asked."""
    if replied.is_cached:
        return
    reply = replied.reply
    stored = {
        "text": reply.text.replace("\x00", ""),
        "ending": reply.ending.value,
        "rung": reply.rung.value,
        "model": reply.model,
    }
    CachedReply.objects.bulk_create(
        [CachedReply(workspace_id=workspace_id, key=replied.key, reply=stored)], ignore_conflicts=True
    )


def _stored(workspace_id: UUID, key: bytes) -> ChatReply | None:
    row = CachedReply.objects.filter(workspace_id=workspace_id, key=key).first()
    if row is None:
        return None
    if timezone.now() - row.used_at > cache.FRESH:
        CachedReply.objects.filter(id=row.id).update(used_at=timezone.now())
    told = row.reply
    return ChatReply(text=told["text"], ending=Ending(told["ending"]), rung=Rung(told["rung"]), model=told["model"])
