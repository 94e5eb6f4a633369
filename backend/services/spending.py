"""Money: what is spent, what may be, and what is refused for it (docs/decisions/0010).

`record` and `check` are what stands around each call that costs; embedders and rerankers have them already
(backend.search), other callers of providers use them as `spending.check(...)`, the call, `spending.record(...)`.
"""

from decimal import Decimal

from backend.core.errors import ConflictError, ErrorCode
from backend.models import Purpose, Workspace
from backend.search import ledger
from backend.search.ledger import PaidFor
from backend.services import estimates, plans
from backend.services.answer_requests import AnswerPlan
from backend.services.evaluation_requests import Request, Resolved
from backend.services.plans import Plan

__all__ = ["PaidFor", "Purpose", "check", "record", "refuse_beyond_limit", "refuse_when_spent"]

check = ledger.check
record = ledger.record


def refuse_beyond_limit(workspace: Workspace, request: Request, resolved: Resolved) -> None:
    """Raises SPEND_LIMIT for what would cost more than is left of the month. Without a limit, or where nothing that it
    uses has a price, this asks nothing; else it makes the estimate, whose calls are those at most."""
    if not any(ledger.has_price(spec) for spec in _providers(resolved)):
        return
    now = ledger.month(workspace.id)
    if now.limit is None:
        return
    if now.is_over:
        raise ConflictError(now.sentence, code=ErrorCode.SPEND_LIMIT)
    cost = Decimal(repr(estimates.of_resolved(workspace, request, resolved).cost or 0.0))
    if now.spent + cost > now.limit:
        raise ConflictError(
            f"This evaluation may cost up to {cost:,.2f} {now.currency}; of the workspace's {now.limit:,.2f} for "
            f"{now.month} (UTC) {now.spent:,.2f} are spent. Ask fewer questions or modes, raise the limit, or wait for "
            "the next month.",
            code=ErrorCode.SPEND_LIMIT,
        )


def refuse_when_spent(plan: Plan, workspace: Workspace) -> None:
    """For what was estimated once and is asked again: raises SPEND_LIMIT when the month is used up."""
    specs = {embedder.spec for embedder in plan.embedders().values()}
    specs |= {planned.config.reranker for planned in plan.runs if planned.config.reranker} | _models(plan.answers)
    if any(ledger.has_price(spec) for spec in specs):
        now = ledger.month(workspace.id)
        if now.is_over:
            raise ConflictError(now.sentence, code=ErrorCode.SPEND_LIMIT)


def _providers(resolved: Resolved) -> set[str]:
    rerankers = {config.reranker for config in resolved.configs if config.reranker}
    return (
        rerankers
        | _models(resolved.answers)
        | {
            plans.embedder_of(index).spec
            for config in resolved.configs
            if config.needs_vector
            for index in resolved.scoped.scope.indexes_for(config.index)
            if index.embedder
        }
    )


def _models(answers: AnswerPlan | None) -> set[str]:
    """Those that answer and judge. Their tokens are in no estimate: they are stopped, and not refused beforehand."""
    return set() if answers is None else {answers.llm, answers.judge}
