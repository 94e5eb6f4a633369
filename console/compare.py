"""The page that compares runs: the verdict first, then what it rests on, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from backend.core.comparison import QuestionDelta, Transitions, Verdict
from backend.core.states import RunState
from backend.models import Question, Run
from backend.queries import comparisons, reused, runs
from backend.queries.runs import RunRow
from backend.services import long_jobs
from console import figures
from console.access import PageRequest, page
from console.plots import of_comparison, shown
from console.plots.shown import Shown

_MOST_LISTED, _MOST_CHOICES, _MOST_DRAWN = 15, 40, 5
_TIE = 1e-9
_TONES = {Verdict.BETTER.value: "better", Verdict.WORSE.value: "worse"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A question that gained or lost. `ordinal` is its place in the candidate's set; None where that is gone."""

    key: str
    text: str
    ordinal: int | None
    baseline: float
    candidate: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A candidate with all that is told of it. `pairs`: the primary metric first."""

    run: RunRow
    verdict: str
    tone: str
    sentence: str
    adjusted_p: float | None
    pairs: Sequence[Mapping[str, Any]]
    by_tag: Sequence[Any]
    warnings: Sequence[str]
    gained: Sequence[Moved]
    lost: Sequence[Moved]
    n_gained: int
    n_lost: int
    plots: Sequence[Shown]
    changed: Sequence[tuple[str, str, str]]


@page()
def compare(request: PageRequest) -> HttpResponse:
    """Runs are chosen on the page itself; their comparison has an address of its own, to be passed on. That of many
    questions is a Job, which this page begins where none of these runs' figures is there, and waits for."""
    baseline = request.GET.get("baseline", "")
    candidates = [one for one in dict.fromkeys(request.GET.getlist("candidate")) if one and one != baseline]
    if not baseline or not candidates:
        return render(request, "compare/choose.html", _choices(request, baseline))
    asked = comparisons.check(
        request.workspace,
        baseline=baseline,
        candidates=candidates,
        primary_metric=request.GET.get("metric", ""),
    )
    if long_jobs.is_long(asked.n_questions):
        job = long_jobs.comparison_of(request.workspace, asked, created_by=f"user:{request.user.pk}")
        told = long_jobs.compared_by(job)
        if told is None:
            return render(request, "compare/waiting.html", {"job": job, "runs": list(map(runs.row, asked.runs))})
        if request.headers.get("HX-Request"):
            return HttpResponse(headers={"HX-Refresh": "true"})
    else:
        told = long_jobs.comparison_as_json(
            comparisons.compare(
                request.workspace, baseline=baseline, candidates=candidates, primary_metric=str(asked.primary)
            )
        )
    found = asked.runs
    shown_runs = [runs.row(run) for run in found]
    context = {
        "baseline": shown_runs[0],
        "taken_over": [(run.name, one) for run in shown_runs if (one := reused.of_run(run)) is not None],
        "metric": told["primary_metric"],
        "metrics": [key for key in found[0].metrics if all(key in run.metrics for run in found)],
        "margin": told["margin"],
        "seed": told["seed"],
        "sides": _sides(found, told),
        "swapped": f"?baseline={candidates[0]}&candidate={baseline}" if len(candidates) == 1 else "",
        "hidden": [("baseline", baseline), *(("candidate", one) for one in candidates)],
    }
    return render(request, "compare/comparison.html", context)


def _choices(request: PageRequest, baseline: str) -> dict[str, Any]:
    """The latest runs with figures; with a baseline, those of its set first of all."""
    every = runs.of(request.workspace).filter(state=RunState.SCORED)
    chosen = None
    if baseline:
        chosen = runs.get_run(request.workspace, baseline)
        same = every.filter(set_hash=chosen.set_hash, level=chosen.level).exclude(id=chosen.id)
        rows = [chosen, *same[:_MOST_CHOICES]]
    else:
        rows = list(every[:_MOST_CHOICES])
    return {"chosen": None if chosen is None else runs.row(chosen), "rows": [runs.row(one) for one in rows]}


def _sides(found: Sequence[Run], told: Mapping[str, Any]) -> list[Side]:
    """From the answer of `POST comparisons`, which a Job keeps and a small comparison gives at once."""
    metric = told["primary_metric"]
    every = [
        [
            QuestionDelta(key=one["key"], baseline=one["baseline"], candidate=one["candidate"], delta=one["delta"])
            for one in candidate["deltas"]
        ]
        for candidate in told["candidates"]
    ]
    extremes = [_extremes(deltas) for deltas in every]
    places = _places(found[0], {one.key for gained, lost in extremes for one in (*gained, *lost)})
    return [
        Side(
            run=runs.row(run),
            verdict=candidate["verdict"],
            tone=_TONES.get(candidate["verdict"], ""),
            sentence=candidate["sentence"],
            adjusted_p=candidate["adjusted_p"],
            pairs=[] if candidate["primary"] is None else [candidate["primary"], *candidate["others"]],
            by_tag=candidate["by_tag"],
            warnings=candidate["warnings"],
            gained=[_moved(one, places) for one in gained],
            lost=[_moved(one, places) for one in lost],
            n_gained=sum(one.delta > _TIE for one in deltas),
            n_lost=sum(one.delta < -_TIE for one in deltas),
            plots=_plots(deltas, candidate["transitions"], found[0], run, metric=metric) if place < _MOST_DRAWN else [],
            changed=differences(found[0].config, run.config),
        )
        for place, (run, candidate, deltas, (gained, lost)) in enumerate(
            zip(found[1:], told["candidates"], every, extremes, strict=True)
        )
    ]


def _extremes(deltas: Sequence[QuestionDelta]) -> tuple[list[QuestionDelta], list[QuestionDelta]]:
    """The largest gains and the largest losses."""
    ordered = sorted(deltas, key=lambda one: (one.delta, one.key))
    lost = [one for one in ordered[:_MOST_LISTED] if one.delta < -_TIE]
    gained = [one for one in reversed(ordered[-_MOST_LISTED:]) if one.delta > _TIE]
    return gained, lost


def _places(run: Run, keys: set[str]) -> dict[str, tuple[int, str]]:
    """Ordinal and text of the questions that are listed. One query."""
    version_id = run.evaluation.question_set_version_id
    if version_id is None or not keys:
        return {}
    rows = Question.objects.filter(version=version_id, key__in=keys).values_list("key", "ordinal", "text")
    return {key: (ordinal, text) for key, ordinal, text in rows}


def _moved(delta: QuestionDelta, places: Mapping[str, tuple[int, str]]) -> Moved:
    ordinal, text = places.get(delta.key, (None, delta.key))
    return Moved(
        key=delta.key,
        text=text,
        ordinal=ordinal,
        baseline=delta.baseline,
        candidate=delta.candidate,
        delta=delta.delta,
    )


def _plots(
    deltas: Sequence[QuestionDelta], matrix: Mapping[str, Any] | None, baseline: Run, candidate: Run, *, metric: str
) -> list[Shown]:
    pictures = [
        of_comparison.deltas(deltas, metric=metric),
        of_comparison.scatter(deltas, metric=metric),
        None if matrix is None else of_comparison.transitions(Transitions(**matrix)),
    ]
    return [
        shown.of_comparison(one, baseline=baseline.id, candidate=candidate.id, metric=metric)
        for one in pictures
        if one is not None
    ]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The settings that differ, each with both values; the name is no setting."""
    names = sorted((set(before) | set(after)) - {"name"})
    return [
        (name, figures.setting(before.get(name)), figures.setting(after.get(name)))
        for name in names
        if before.get(name) != after.get(name)
    ]
