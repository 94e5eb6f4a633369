"""`embed`: a batch of questions to vectors, handed to the `search` slice of the same questions."""

from typing import Any
from uuid import UUID

from backend.core.errors import ErrorCode
from backend.core.states import Lane, SliceKind
from backend.models import Purpose, Slice
from backend.providers.base import ProviderError
from backend.search import embedding, providers
from backend.search.ledger import PaidFor
from backend.search.pacing import PacedError
from backend.services import giving_up, owners, plans, provider_states, slices
from backend.services.plans import EmbedderPlan, Plan
from backend.services.slices import Lease


def run(lease: Lease) -> None:
    """Raises ProviderError while trying again can help; what has failed for good goes along as a failure, and the
    search is inserted all the same: configurations without vectors go on."""
    plan = plans.load(lease.evaluation, epoch=lease.epoch)
    asked = plans.questions(plan.version_id, list(lease.items))
    ordinals = [ordinal for ordinal in lease.items if ordinal in asked]
    texts = [asked[ordinal].text for ordinal in ordinals]
    payload: dict[str, Any] = {"vectors": {}, "failures": {}, "embed": {}}
    stopped = giving_up.stopped(plan.evaluation_id)
    for key, embedder in plan.embedders().items():
        stop = _stop(plan, key, stopped)
        if stop is not None:
            payload["failures"][key] = [*stop, True]
            continue
        standing = provider_states.check(lease, embedder.spec)
        if standing.gave_up:
            sentence = provider_states.gave_up_on(embedder.spec, standing)
            payload["failures"][key] = [ErrorCode.PROVIDER_UNAVAILABLE.value, sentence, False]
            continue
        try:
            vectors, told = _vectors(plan, embedder, texts, lease)
        except PacedError:
            raise
        except ProviderError as error:
            if provider_states.will_try_again(lease, error, provider=embedder.spec):
                raise
            if error.fatal:
                giving_up.stop_embedder(plan.evaluation_id, key=key, code=error.code, reason=error.message)
            payload["failures"][key] = [error.code.value, error.message, error.fatal]
            continue
        payload["vectors"][key] = dict(zip(map(str, ordinals), vectors, strict=True))
        payload["embed"][key] = told
    commit_children(lease, plan=plan, payload=payload)


def _stop(plan: Plan, key: str, stopped: dict[UUID, tuple[str, str]]) -> tuple[str, str] | None:
    """Why this embedder is not asked any more: every run that needs it was stopped."""
    needing = [planned for planned in plan.runs if key in plan.embedders_of(planned)]
    if not all(planned.run_id in stopped for planned in needing):
        return None
    return stopped[needing[0].run_id]


def commit_children(lease: Lease, *, plan: Plan, payload: dict[str, Any]) -> None:
    """End the slice and insert its search, in one commit. It is handed out when this one is left (work.after)."""
    with slices.commit(lease, finish=True):
        if not owners.is_open(plan.evaluation_id, epoch=lease.epoch):
            return
        Slice.objects.bulk_create(
            [
                Slice(
                    workspace_id=plan.workspace_id,
                    evaluation_id=plan.evaluation_id,
                    epoch=lease.epoch,
                    kind=SliceKind.SEARCH,
                    lane=Lane.SEARCH,
                    items=list(lease.items),
                    first=min(lease.items),
                    last=max(lease.items),
                    pool=lease.pool,
                    payload=payload,
                )
            ],
            ignore_conflicts=True,
        )


def _vectors(plan: Plan, embedder: EmbedderPlan, texts: list[str], lease: Lease) -> tuple[list[str], dict[str, Any]]:
    answer = embedding.embed_queries(
        plan.workspace_id,
        embedder.spec,
        texts,
        use_cache=plan.use_cache,
        query_prefix=embedder.query_prefix,
        timeout=lease.call_seconds(
            local=providers.describe_embedder(embedder.spec, workspace_id=plan.workspace_id).local
        ),
        paid_for=PaidFor(purpose=Purpose.EVALUATION, owner=plan.evaluation_id),
    )
    provider_states.succeeded(plan.workspace_id, embedder.spec)
    share = answer.ms / max(1, len(texts) - answer.n_cached)
    return [embedding.pack(vector) for vector in answer.vectors], {
        "ms": share,
        # Each question's share, so that the questions' sum is what the slice took.
        "units": {
            "embed_cached": answer.n_cached / len(texts),
            "embed_calls": answer.n_calls / len(texts),
            **({} if answer.tokens is None else {"input_tokens": answer.tokens / len(texts)}),
        },
    }


def failures_of(payload: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    return {key: (value[0], value[1], bool(value[2])) for key, value in payload.get("failures", {}).items()}


def vector_of(payload: dict[str, Any], *, key: str, ordinal: int) -> list[float] | None:
    encoded = payload.get("vectors", {}).get(key, {}).get(str(ordinal))
    return None if encoded is None else list(embedding.unpack(encoded))
