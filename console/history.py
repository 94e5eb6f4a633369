"""Runs one under the other with their settings, and how one figure went over time."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render

from backend.core.configs import MODES
from backend.queries import knowledge, questions, runs, trends
from backend.queries.runs import RunRow
from console import paging
from console.access import PageRequest, page
from console.plots import of_history, shown

N_RUNS = 50
_MOST = 200
_FILTERS = ("question_set", "knowledge_base", "mode", "name")


@page()
def every(request: PageRequest) -> HttpResponse:
    """Filtered by `question_set`, `knowledge_base`, `mode` and a configuration's `name`; the trend is drawn where a
    set and a base are chosen."""
    wanted = {name: request.GET.get(name, "") for name in _FILTERS}
    found = runs.of(
        request.workspace,
        question_set=wanted["question_set"],
        knowledge_base=wanted["knowledge_base"],
        mode=wanted["mode"],
    )
    if wanted["name"]:
        found = found.filter(name=wanted["name"])
    cut = paging.cut(request, found, limit=N_RUNS)
    rows = [runs.row(run) for run in cut.rows]
    context: dict[str, Any] = {
        "rows": cut,
        "runs": rows,
        "wanted": wanted,
        "is_filtered": any(wanted.values()),
        # All of one set on one base: neither needs saying in each row.
        "is_one": bool(wanted["question_set"] and wanted["knowledge_base"]),
        "sets": list(questions.sets_of(request.workspace)[:_MOST]),
        "bases": list(knowledge.bases_of(request.workspace)[:_MOST]),
        "modes": MODES,
        "changes": _changes(rows),
    }
    if wanted["question_set"] and wanted["knowledge_base"]:
        told = trends.of(
            request.workspace,
            question_set=wanted["question_set"],
            knowledge_base=wanted["knowledge_base"],
            mode=wanted["mode"],
            name=wanted["name"],
        )
        picture = of_history.NAMES["trend"](told) if told.points else None
        if picture is not None:
            query = {**wanted, "name": told.name, "metric": told.metric}
            context |= {"trend": told, "plot": shown.of_history(picture, query)}
    return render(request, "history/history.html", context)


def _changes(rows: list[RunRow]) -> dict[UUID, tuple[str, ...]]:
    """By run, what differs from the run of the same set, base and name that is next below it on the page."""
    found: dict[UUID, tuple[str, ...]] = {}
    before: dict[tuple[object, ...], RunRow] = {}
    for row in reversed(rows):
        key = (row.question_set.id or row.question_set.name, row.knowledge_base.id or row.knowledge_base.name, row.name)
        older = before.get(key)
        if older is not None:
            found[row.id] = tuple(
                word
                for word, differs in (
                    ("documents", older.fingerprints.corpus != row.fingerprints.corpus),
                    ("questions", older.fingerprints.question_set != row.fingerprints.question_set),
                    ("configuration", older.fingerprints.config != row.fingerprints.config),
                    ("code", older.fingerprints.code != row.fingerprints.code),
                )
                if differs
            )
        before[key] = row
    return found
