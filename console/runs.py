"""The page of a run: its figures, plots, causes and questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from backend.core.diagnosis import Cause
from backend.core.metric_keys import MetricKey
from backend.core.reports import Status
from backend.models import Run, Scope
from backend.queries import exports, results, reused, runs
from backend.queries.exports import Format
from backend.queries.runs import RunRow
from backend.services import long_jobs, run_results, surveys
from backend.services import runs as services
from console import figures, paging
from console.access import PageRequest, page
from console.figures import Tile
from console.plots import of_run, shown

_OUTCOMES = (
    ("", "all"),
    ("found", "found"),
    ("missed", "missed"),
    ("empty", "nothing returned"),
    ("error", "errors"),
    ("not_run", "not run"),
    ("cancelled", "cancelled"),
)
_MEANS = {
    Cause.NOT_INDEXED: "nothing that was searched holds what is expected",
    Cause.CROSSES_BORDER: "a document holds the text, but it is cut between two passages",
    Cause.OUTSIDE_SCOPE: "it is there, in a part that was not searched",
    Cause.NO_LEG_FOUND_IT: "no search had it among its candidates",
    Cause.NOT_RETURNED: "it is not in the list that is known",
    Cause.DEMOTED_BY_FUSION: "one search had it high enough, all together had not",
    Cause.OUTSIDE_POOL: "found too deep for the reranker to see it",
    Cause.DEMOTED_BY_RERANKER: "high enough before the reranker, not after it",
    Cause.BELOW_K: "found, deeper than what counts",
}
_ORDERS = (("", "as asked"), ("-rank", "worst first"), ("-latency", "slowest first"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A filter that is a link. `n` None: not counted; `said`: what the label means, where it does not say it."""

    label: str
    url: str
    is_current: bool
    n: int | None = None
    said: str = ""


@page(post=Scope.EVALUATE)
def run(request: PageRequest, run_id: str) -> HttpResponse:
    """GET shows it; POST labels or pins it. The number of queries does not depend on the number of questions."""
    found = runs.get_run(request.workspace, run_id)
    if request.method == "POST":
        services.update(
            request.workspace, found.id, label=request.POST.get("label", "")[:200], pinned="pinned" in request.POST
        )
        return redirect("run", run_id=run_id)
    row = runs.row(found)
    asked = surveys.of(request.workspace, found)
    survey = asked.survey
    context = {
        "run": row,
        "evaluation": found.evaluation,
        "siblings": [runs.row(one) for one in _siblings(found)],
        "tiles": _tiles(row),
        "taken_over": reused.of_run(row),
        "metrics": figures.matrix(row),
        "survey": survey,
        "survey_job": asked.job,
        "plots": [shown.of_run(one, row.id) for one in of_run.all_of(row, survey)],
        "errors": _errors(found, row),
        "questions": _questions(request, found, row, survey),
        "exports": _exports(row),
        "causes": _causes(survey, row),
    }
    return render(request, "runs/run.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form to take the run away in. `is_file`: its address answers with the file, not with a page that waits."""

    name: str
    url: str
    is_file: bool


def _exports(row: RunRow) -> list[Form]:
    is_long = long_jobs.is_long(row.n_questions)
    address = reverse("run-export", args=[row.id]) if is_long else f"/api/v1/runs/{row.id}/export"
    return [
        Form(name=one.value, url=f"{address}?format={one.value}", is_file=not is_long)
        for one in Format
        if row.pruned_at is None or one not in exports.NEED_RANKINGS
    ]


def _siblings(run: Run) -> Sequence[Run]:
    """The runs of the same evaluation, this one among them."""
    every = runs.of(run.workspace).filter(evaluation=run.evaluation_id)
    return sorted(every, key=lambda one: one.ordinal)


def _tiles(row: RunRow) -> list[Tile]:
    keys = [key for key in (row.primary_metric, *_headline_keys(row)) if key in row.metrics]
    tiles = [figures.tile(key, row.metrics[key]) for key in dict.fromkeys(keys)]
    counts = row.counts
    if counts.get("n_must_pass"):
        tiles.append(
            Tile(
                label="must pass",
                value=f"{counts['n_must_pass_found']:,} of {counts['n_must_pass']:,}",
                detail=f"found within {MetricKey.parse(row.primary_metric).k}",
                tone="" if counts["n_must_pass_found"] == counts["n_must_pass"] else "bad",
            )
        )
    if counts.get("n_unanswerable"):
        tiles.append(
            Tile(
                label="unanswerable",
                value=f"{counts.get('n_unanswerable_silent', 0):,} of {counts['n_unanswerable']:,}",
                detail="returned nothing"
                if row.config.get("min_score") is not None
                else "returned nothing; no min_score",
            )
        )
    latency = row.timings.get("latency_ms") or {}
    if latency:
        tiles.append(
            Tile(
                label="latency p50",
                value=f"{latency['p50']:,.0f} ms",
                detail=", ".join(filter(None, [f"p95 {latency['p95']:,.0f} ms", figures.measured_in(row)])),
            )
        )
    return tiles


def _headline_keys(row: RunRow) -> list[str]:
    k = row.top_k if not row.ks else max(row.ks)
    return [f"hit@{k}", f"recall@{k}", f"ndcg@{k}", "hit@1"]


def _errors(run: Run, row: RunRow) -> list[dict[str, Any]]:
    """Questions without a result, by code, with an example of what was said."""
    told: Mapping[str, int] = row.counts.get("errors") or {}
    if not told:
        return []
    reasons = results.reasons(run, codes=list(told))
    return [
        {
            "code": code,
            "n": n,
            "reason": reasons.get(code, ""),
            "url": f"{reverse('run', args=[run.id])}?code={code}#questions",
        }
        for code, n in sorted(told.items(), key=lambda item: -item[1])
    ]


def _causes(survey: Mapping[str, Any] | None, row: RunRow) -> list[Choice]:
    if survey is None:
        return []
    address = reverse("run", args=[row.id])
    return [
        Choice(
            label=cause,
            url=f"{address}?{figures.query(cause=cause)}#questions",
            is_current=False,
            n=n,
            said=_MEANS[Cause(cause)],
        )
        for cause, n in survey["causes"].items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """A page of the question table with the filters that made it. `cut_short`: of a cause only the first are listed."""

    k: int
    page: paging.Page
    outcomes: Sequence[Choice]
    ks: Sequence[Choice]
    orders: Sequence[Choice]
    tag: str
    code: str
    cause: str
    must_pass: bool
    cut_short: int = 0


def _questions(request: HttpRequest, run: Run, row: RunRow, survey: Mapping[str, Any] | None) -> Questions:
    given = request.GET
    k = results.check_k(run, figures.whole(given.get("k", ""), field="k"))
    outcome = results.outcome_of(given.get("outcome", ""))
    cause = given.get("cause", "")
    rows = results.of(
        run,
        k=k,
        outcome=outcome,
        tag=given.get("tag", ""),
        must_pass=bool(given.get("must_pass")),
        code=given.get("code", ""),
    )
    lost: Sequence[int] = ()
    if cause:
        lost = (survey or {}).get("lost", {}).get(cause, ())
        rows = rows.filter(ordinal__in=lost)
    cut = paging.cut(request, rows, order=results.order_of(given.get("order", "")))
    told = run_results.shown(run, cut.rows, k)
    n_lost = 0 if not cause or survey is None else survey["causes"].get(cause, 0)
    return Questions(
        k=k,
        page=paging.Page(
            rows=[{"row": one, "status": status(one)} for one in told],
            next=cut.next,
            first_url=cut.first_url,
            is_later=cut.is_later,
        ),
        outcomes=_outcomes(request, row, k=k),
        ks=[_choice(request, f"k = {one}", k=one, is_current=one == k) for one in sorted({*row.ks, row.top_k})],
        orders=[
            _choice(request, label, order=name, is_current=given.get("order", "") == name) for name, label in _ORDERS
        ],
        tag=given.get("tag", ""),
        code=given.get("code", ""),
        cause=cause,
        must_pass=bool(given.get("must_pass")),
        cut_short=max(0, n_lost - len(lost)),
    )


def status(row: results.ResultRow) -> Status:
    """As in reports: an error is no miss, and what expects nothing is neither."""
    if row.found is not None:
        return Status.FOUND if row.found else Status.MISSED
    return Status.ERROR if row.outcome in {"error", "not_run"} else Status.LEFT_OUT


def _outcomes(request: HttpRequest, row: RunRow, *, k: int) -> list[Choice]:
    counts, chosen = row.counts, request.GET.get("outcome", "")
    numbers: dict[str, int | None] = {
        "": counts.get("n_total"),
        "error": counts.get("n_error"),
        "empty": counts.get("n_empty"),
        "not_run": counts.get("n_not_run"),
        "cancelled": counts.get("n_cancelled"),
    }
    by_rank = counts.get("by_rank")
    if by_rank and k <= len(by_rank["first"]):
        numbers["found"] = sum(by_rank["first"][:k])
        numbers["missed"] = by_rank["n"] - sum(by_rank["first"][:k])
    return [
        _choice(request, label, outcome=name, is_current=chosen == name, n=numbers.get(name))
        for name, label in _OUTCOMES
        if chosen == name or name in {"", "found", "missed"} or numbers.get(name)
    ]


def _choice(request: HttpRequest, label: str, *, is_current: bool, n: int | None = None, **changed: object) -> Choice:
    query = request.GET.copy()
    query.pop("cursor", None)
    for name, value in changed.items():
        query.pop(name, None)
        if value not in {None, ""}:
            query[name] = str(value)
    address = f"{request.path}?{query.urlencode()}" if query else request.path
    return Choice(label=label, url=f"{address}#questions", is_current=is_current, n=n)


@page()
def survey(request: PageRequest, run_id: str) -> HttpResponse:
    """The part that takes its time on a large run; the whole page is loaded anew once it is there."""
    found = runs.get_run(request.workspace, run_id)
    asked = surveys.of(request.workspace, found)
    row = runs.row(found)
    answer = render(
        request,
        "runs/survey.html",
        {"run": row, "survey": asked.survey, "survey_job": asked.job, "causes": _causes(asked.survey, row)},
    )
    if asked.survey is not None:
        # Its plots and filters come with it.
        answer.headers["HX-Refresh"] = "true"
    return answer
