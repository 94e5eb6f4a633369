"""The addresses of plots: `…/plots/<name>.svg|png?theme=light|dark`, answered again only when the numbers changed."""

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, cast

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from backend.core.errors import NotFoundError
from backend.queries import pairings, runs, trends
from backend.services import surveys
from console.access import Page, PageRequest, page
from console.plots import canvas, of_comparison, of_history, of_run
from console.plots.picture import THEMES, Picture

_P = ParamSpec("_P")
# Raised when the look of plots changes, so that nobody keeps old ones.
_LOOK = 1


def _kept(view: Page[_P]) -> Page[_P]:
    """Pages are never kept; a plot is kept by its reader, who asks each time whether it is still the same."""

    @wraps(view)
    def asked(request: HttpRequest, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponse:
        answer = view(request, *args, **kwargs)
        if answer.has_header("ETag"):
            answer.headers["Cache-Control"] = "private, no-cache"
            del answer.headers["Expires"]
        return answer

    return cast("Page[_P]", asked)


@_kept
@page()
def run_plot(request: PageRequest, run_id: str, name: str, form: str) -> HttpResponse:
    """Of one run. A survey that is not made yet is not made for a picture: the page asks for it."""
    run = runs.get_run(request.workspace, run_id)
    row = runs.row(run)
    survey = surveys.kept(run)
    tag = [str(run.id), run.evaluation.revision, survey is not None, run.state]

    def build() -> Picture | None:
        if name in of_run.OF_RECORD:
            return of_run.OF_RECORD[name](row)
        if name in of_run.OF_SURVEY and survey is not None:
            return of_run.OF_SURVEY[name](row, survey)
        return None

    return _answer(request, name, form, tag=tag, build=build)


@_kept
@page()
def comparison_plot(request: PageRequest, name: str, form: str) -> HttpResponse:
    """Of two runs: `baseline`, `candidate`, and the `metric` (the baseline's primary one unless named)."""
    baseline = runs.get_run(request.workspace, request.GET.get("baseline", ""))
    candidate = runs.get_run(request.workspace, request.GET.get("candidate", ""))
    metric = request.GET.get("metric", "") or baseline.primary_metric
    tag = [str(baseline.id), baseline.evaluation.revision, str(candidate.id), candidate.evaluation.revision, metric]

    def build() -> Picture | None:
        if name not in of_comparison.NAMES:
            return None
        found = pairings.of(baseline, candidate, metric=metric)
        if name == "transitions":
            return of_comparison.transitions(found.transitions)
        return (of_comparison.deltas if name == "deltas" else of_comparison.scatter)(found.deltas, metric=metric)

    return _answer(request, name, form, tag=tag, build=build)


@_kept
@page()
def history_plot(request: PageRequest, name: str, form: str) -> HttpResponse:
    """`trend` or `sparkline`: of a `question_set` and `knowledge_base`, by `mode` or configuration `name`."""
    given = request.GET
    told = trends.of(
        request.workspace,
        question_set=given.get("question_set", ""),
        knowledge_base=given.get("knowledge_base", ""),
        mode=given.get("mode", ""),
        name=given.get("name", ""),
        metric=given.get("metric", ""),
    )
    tag = [told.metric, *([str(one.run_id), one.mean, one.low, one.high, one.label] for one in told.points)]

    def build() -> Picture | None:
        drawn = of_history.NAMES.get(name)
        return None if drawn is None else drawn(told)

    return _answer(request, name, form, tag=tag, build=build)


def _answer(
    request: HttpRequest, name: str, form: str, *, tag: list[Any], build: Callable[[], Picture | None]
) -> HttpResponse:
    """304 where the reader has it. Raises NotFoundError for what cannot be drawn."""
    theme = request.GET.get("theme", "light")
    if form not in canvas.FORMS or theme not in THEMES:
        raise NotFoundError("plot", f"{name}.{form}")
    said = json.dumps([_LOOK, name, form, theme, *tag], default=str)
    etag = f'"{hashlib.sha256(said.encode()).hexdigest()[:32]}"'
    known = {one.removeprefix("W/") for one in parse_etags(request.headers.get("If-None-Match", ""))}
    if etag in known:
        return HttpResponseNotModified(headers={"ETag": etag})
    picture = build()
    if picture is None:
        raise NotFoundError("plot", f"{name}.{form}")
    headers = {"ETag": etag, "X-Content-Type-Options": "nosniff"}
    if "download" in request.GET:
        headers["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return HttpResponse(
        canvas.render(picture, form=form, theme=theme), content_type=canvas.FORMS[form], headers=headers
    )
