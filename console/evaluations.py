"""The pages of evaluations: all of them, one with how far it is, cancelled, tried again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from backend.core.errors import TouchstoneError
from backend.core.states import TERMINAL, EvaluationState, RunKind, RunState
from backend.core.types import Outcome
from backend.models import Scope
from backend.queries import evaluations as queries
from backend.queries import reused
from backend.queries.evaluations import EvaluationDetail, EvaluationRow
from backend.queries.lookups import as_uuid
from backend.queries.runs import RunRow
from backend.queries.waiting import WaitingFor
from backend.services import evaluations as services
from console import paging
from console.access import PageRequest, page

_A_PAGE = 20
# In this order they stand in the bar.
_OUTCOMES = (Outcome.OK, Outcome.EMPTY, Outcome.ERROR, Outcome.NOT_RUN, Outcome.CANCELLED)
# A poll of a large evaluation counts many rows: it is asked less often.
_LARGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the progress bar; `x` and `width` in percent of it."""

    outcome: str
    n: int
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an open evaluation is. A question has an answer in each run. `poll_seconds`: how often its page asks;
    `counts_only`: the runs' numbers come at the end."""

    n_done: int
    n_questions: int
    n_answers: int
    n_answers_total: int
    counts_only: bool
    percent: str
    parts: Sequence[Part]
    questions_per_second: float | None
    eta_seconds: float | None
    elapsed_seconds: float
    poll_seconds: int
    waiting_for: Sequence[WaitingFor]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToAsk:
    """Answers, of a question in a run, that an ended evaluation has not: failed ones, and those that nobody asked for
    since it was cancelled."""

    n_failed: int
    n_cancelled: int


@page()
def every(request: PageRequest) -> HttpResponse:
    now = timezone.now()
    cut = paging.cut(request, queries.of(request.workspace), limit=_A_PAGE)
    rows = paging.Page(
        rows=[{"evaluation": one, "compare": compare_url(one)} for one in (queries.row(e, now=now) for e in cut.rows)],
        next=cut.next,
        first_url=cut.first_url,
        is_later=cut.is_later,
    )
    return render(request, "evaluations/list.html", {"rows": rows})


@page()
def one(request: PageRequest, evaluation_id: str) -> HttpResponse:
    """An ended one is told from its record: nothing is counted anew."""
    return render(request, "evaluations/evaluation.html", _context(request, evaluation_id))


@page()
def progress(request: PageRequest, evaluation_id: str) -> HttpResponse:
    """The part of the page that changes while it runs. When it has ended, the whole page is loaded anew."""
    context = _context(request, evaluation_id)
    answer = render(request, "evaluations/state.html", context)
    if context["evaluation"].is_final:
        answer.headers["HX-Refresh"] = "true"
    return answer


@page(None, post=Scope.EVALUATE)
def cancel(request: PageRequest, evaluation_id: str) -> HttpResponse:
    try:
        services.cancel(request.workspace, as_uuid(evaluation_id, what="evaluation"))
    except TouchstoneError as error:
        _tell(request, error)
    else:
        messages.success(request, "It is stopping: what is finished is kept and counted.")
    return redirect("evaluation", evaluation_id=evaluation_id)


@page(None, post=Scope.EVALUATE)
def retry(request: PageRequest, evaluation_id: str) -> HttpResponse:
    allowed = "allow_changed_corpus" in request.POST
    key = as_uuid(evaluation_id, what="evaluation")
    try:
        services.retry(request.workspace, key, now=timezone.now(), allow_changed_corpus=allowed)
    except TouchstoneError as error:
        _tell(request, error)
    else:
        messages.success(request, "What has no good result is asked again.")
    return redirect("evaluation", evaluation_id=evaluation_id)


def compare_url(evaluation: EvaluationRow) -> str:
    """All its scored runs against the plainest of them; empty with fewer than two."""
    scored = [run for run in evaluation.runs if run.state == RunState.SCORED]
    if len(scored) < 2:
        return ""
    baseline = min(scored, key=lambda run: (run.mode.endswith("_rerank"), run.mode == "hybrid", run.ordinal))
    others = "".join(f"&candidate={run.id}" for run in scored if run.id != baseline.id)
    return f"{reverse('compare')}?baseline={baseline.id}{others}"


def _context(request: PageRequest, evaluation_id: str) -> dict[str, Any]:
    now = timezone.now()
    found = queries.get_evaluation(request.workspace, evaluation_id)
    if found.state in TERMINAL:
        row = queries.row(found, now=now)
        return {
            "evaluation": row,
            "progress": None,
            "taken_over": reused.of_runs(row.runs),
            "can_cancel": False,
            "to_ask": _to_ask(row.runs),
            "compare": compare_url(row),
        }
    seen = queries.look(request.workspace, evaluation_id)
    told = queries.detail(seen, now=now)
    return {
        "evaluation": told.evaluation,
        "progress": _progress(told),
        "can_cancel": found.state not in {EvaluationState.CANCELLING, EvaluationState.AGGREGATING},
        "to_ask": None,
        "compare": "",
    }


def _to_ask(runs: Sequence[RunRow]) -> ToAsk | None:
    """None where every answer is good, or nothing was searched here."""
    if any(run.kind != RunKind.SEARCHED for run in runs):
        return None
    n = {name: sum(int(run.counts.get(name, 0)) for run in runs) for name in ("n_error", "n_not_run", "n_cancelled")}
    return ToAsk(n_failed=n["n_error"] + n["n_not_run"], n_cancelled=n["n_cancelled"]) if any(n.values()) else None


def _progress(told: EvaluationDetail) -> Progress:
    counted = told.progress
    total = counted.n_results_total or 1
    parts, at = [], 0.0
    for outcome in _OUTCOMES:
        n = counted.by_outcome.get(outcome.value, 0)
        share = 100 * n / total
        if n:
            parts.append(Part(outcome=outcome.value, n=n, x=f"{at:.2f}%", width=f"{share:.2f}%"))
        at += share
    return Progress(
        n_done=counted.n_done,
        n_questions=counted.n_questions,
        n_answers=counted.n_results,
        n_answers_total=counted.n_results_total,
        counts_only=told.counts_only,
        percent=f"{100 * counted.n_results / total:.0f}",
        parts=parts,
        questions_per_second=told.questions_per_second,
        eta_seconds=told.eta_seconds,
        elapsed_seconds=told.evaluation.elapsed_seconds,
        poll_seconds=2 if counted.n_results_total <= _LARGE else 5,
        waiting_for=told.waiting_for,
    )


def _tell(request: PageRequest, error: TouchstoneError) -> None:
    if error.code.value == "NOT_FOUND":
        raise error
    messages.error(request, f"{error.message} ({error.code.value})")
