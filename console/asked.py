"""The page of one question in one run: how each stage ranked, what matched, why it was lost, how its figures add up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from backend.core.highlighting import Piece, pieces
from backend.core.types import Level
from backend.models import Question, Result, Run
from backend.queries import arithmetic, asked, results, runs
from backend.queries.asked import Place
from backend.queries.results import ResultRow
from backend.services import preflight, run_results
from console import question_form
from console import runs as run_page
from console.access import PageRequest, page
from console.moves import drawing

_SHOWN = 10
_SNIPPET = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One expectation in words. `rank`: of the first passage or document that meets it, None where none did. `fault`:
    why nothing where the run searched can meet it."""

    said: str
    grade: float
    is_relevant: bool
    rank: int | None
    cause: str = ""
    fault: str = ""
    wrong_passage: bool = False
    ranks: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A passage of the final list. `cells`: by stage, rank and score."""

    place: Place
    text: Sequence[Piece]
    is_cut: bool
    cells: Sequence[tuple[int | None, float | None]]


@page()
def question(request: PageRequest, run_id: str, ordinal: int) -> HttpResponse:
    run = runs.get_run(request.workspace, run_id)
    found = asked.result(run, ordinal)
    (result,) = results.of(run, k=run.top_k).filter(ordinal=ordinal)
    (told,) = run_results.shown(run, [result], run.top_k)
    written = asked.question_of(run, ordinal)
    places = asked.places(run, found)
    stages = asked.stages_of(places)
    before, after = asked.neighbours(run, ordinal)
    context = {
        "run": runs.row(run),
        "result": told,
        "status": run_page.status(told),
        "question": written,
        "key": found.question_key,
        "number": ordinal + 1,
        "expected": _expected(told, found, preflight.of_question(run, ordinal) if told.losses else {}),
        "stages": stages,
        "ranked": _ranked(places, stages, written, run=run),
        "n_kept": len(places),
        "moves": drawing(places, stages, most=max(_SHOWN, min(run.top_k, 2 * _SHOWN))),
        "sums": _sums(run, ordinal),
        "past": asked.past(run, found.question_key),
        "before": before,
        "after": after,
    }
    return render(request, "runs/question.html", context)


def _expected(told: ResultRow, found: Result, wrong: Mapping[int, str]) -> list[Expected]:
    """In words, with where each came. A stored list of expectations is merged: where it does not line up with what the
    set says, only the set's own words are told."""
    judged = found.judged or {}
    grades, threshold = list(judged.get("grades", ())), float(judged.get("threshold", 1.0))
    positive = [one for one in told.expect if one.get("grade", 1.0) > 0]
    lines_up = len(positive) == len(grades)
    ranks = _ranks(judged)
    losses = {loss["expectation"]: loss for loss in told.losses}
    out = []
    for index, one in enumerate(positive):
        loss = losses.get(index) if lines_up else None
        grade = float(one.get("grade", 1.0))
        out.append(
            Expected(
                said=question_form.in_words(one),
                grade=grade,
                is_relevant=grade >= threshold,
                rank=ranks.get(index) if lines_up else None,
                cause="" if loss is None else loss["cause"],
                fault="" if loss is None else wrong.get(index, ""),
                wrong_passage=loss is not None and loss["wrong_passage"],
                ranks=() if loss is None else sorted(loss["ranks"].items(), key=lambda item: item[1]),
            )
        )
    return out


def _ranks(judged: Mapping[str, Any]) -> dict[int, int]:
    """The rank that first met each expectation."""
    found: dict[int, int] = {}
    for number, rank in enumerate(judged.get("ranks", ()), start=1):
        if isinstance(rank, list):
            for index in rank[2:]:
                found.setdefault(index, number)
    return found


def _ranked(places: Sequence[Place], stages: Sequence[str], written: Question | None, *, run: Run) -> list[Ranked]:
    """The first passages, and deeper down those that were expected."""
    labels = [] if written is None else list(_labels(written.expect))
    text = "" if written is None else written.text
    shown = []
    for place in places:
        if place.ranks["final"] > max(_SHOWN, run.top_k if run.level == Level.PASSAGE else 0) and not place.satisfies:
            continue
        cut = place.text if len(place.text) <= _SNIPPET or place.satisfies else place.text[:_SNIPPET]
        shown.append(
            Ranked(
                place=place,
                text=pieces(cut, labels=labels, question=text),
                is_cut=len(cut) < len(place.text),
                cells=[(place.ranks.get(stage), place.scores.get(stage)) for stage in stages],
            )
        )
    return shown[: 3 * _SHOWN]


def _labels(expect: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        text
        for one in expect
        for alternative in one.get("any_of", ())
        for text in (*(alternative.get("content_contains") or ()), alternative.get("text") or "")
        if text
    ]


def _sums(run: Run, ordinal: int) -> list[arithmetic.Explained]:
    """The arithmetic of the primary metric and of each other kind at its deepest k."""
    deepest: dict[str, str] = {}
    for key in run.evaluation.plan.get("keys", ()):
        name, _, k = str(key).rpartition("@")
        if name not in deepest or int(k) > int(deepest[name].rpartition("@")[2]):
            deepest[name] = str(key)
    wanted = list(dict.fromkeys([run.primary_metric, *deepest.values()]))
    return arithmetic.explain_each(run, ordinal, metrics=wanted)
