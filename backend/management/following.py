"""What the commands share: following evaluations to their end, and showing what came of them."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import IO, Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from backend.core.errors import TouchstoneError
from backend.core.states import Lane
from backend.models import Run, Workspace
from backend.queries import evaluations, pulses, results
from backend.queries.evaluations import EvaluationDetail
from backend.services import preflight
from touchstone import tables
from touchstone.progress import Bar, eta, waiting

_LOOK_SECONDS = 0.3
_SILENCE_SECONDS = 10.0
_MOST_UNMET = 10
START_WORKERS = "Start `touchstone up` in another terminal; the evaluation waits and goes on by itself."


def detail(workspace: Workspace, evaluation_id: UUID) -> EvaluationDetail:
    return evaluations.detail(evaluations.look(workspace, evaluation_id), now=timezone.now())


def follow(
    workspace: Workspace,
    evaluation_ids: Sequence[UUID],
    *,
    stream: IO[str],
    say: Callable[[str], Any],
    needed: Sequence[Lane] = tuple(Lane),
) -> list[EvaluationDetail]:
    """Wait until all have ended, with one bar for all. Tells when nothing moves since a lane has no workers."""
    silence = Silence(say, needed)
    with Bar("questions", stream=stream) as bar:
        while True:
            looks = [evaluations.look(workspace, evaluation_id) for evaluation_id in evaluation_ids]
            told = [evaluations.detail(look, now=timezone.now()) for look in looks]
            n_done = sum(one.progress.n_results for one in told)
            left = [one.eta_seconds for one in told if one.eta_seconds is not None]
            waits = [dataclasses.asdict(one) for each in told for one in each.waiting_for]
            note = waiting(waits, now=timezone.now()) or eta(max(left, default=None))
            bar.show(n_done, sum(one.progress.n_results_total for one in told), note=note)
            if all(one.evaluation.is_final for one in told):
                return told
            silence.look(n_done)
            pause()


def pause() -> None:
    time.sleep(_LOOK_SECONDS)


class Silence:
    """Says once, each time that nothing moves for a while, which workers are missing."""

    def __init__(self, say: Callable[[str], Any], needed: Sequence[Lane] = (Lane.CONTROL, Lane.SEARCH)) -> None:
        self._say, self._needed = say, needed
        self._n_done, self._since, self._said = -1, time.monotonic(), False

    def look(self, n_done: int) -> None:
        now = time.monotonic()
        if n_done != self._n_done:
            self._n_done, self._since, self._said = n_done, now, False
        elif not self._said and now - self._since > _SILENCE_SECONDS:
            missing = pulses.silent_lanes(self._needed)
            if missing:
                self._said = True
                self._say(f"No worker has shown life in the last minute ({', '.join(missing)}). {START_WORKERS}")


def run_values(told: EvaluationDetail) -> list[dict[str, Any]]:
    """The runs in the shape of `GET runs/{id}`."""
    return [dataclasses.asdict(run) for run in told.evaluation.runs]


def result_values(told: EvaluationDetail) -> list[list[dict[str, Any]]]:
    """The results of each run in the shape of `GET runs/{id}/results`."""
    loaded = Run.objects.select_related("evaluation__question_set_version").in_bulk(
        [run.id for run in told.evaluation.runs]
    )
    return [
        [dataclasses.asdict(row) for row in results.shown(run, list(results.of(run, k=run.top_k)), k=run.top_k)]
        for run in (loaded[row.id] for row in told.evaluation.runs)
    ]


def shown(told: EvaluationDetail) -> str:
    """Both tables, and why an evaluation has ended without figures."""
    runs = run_values(told)
    parts = [tables.questions(runs, result_values(told)), tables.aggregate(runs)]
    if told.evaluation.state != "completed":
        code = f" ({told.evaluation.code})" if told.evaluation.code else ""
        parts.append(f"This evaluation {ended(told.evaluation.state)}. {told.evaluation.reason}{code}".strip())
    return "\n\n".join(parts)


def ended(state: str) -> str:
    return {"failed": "failed", "cancelled": "was cancelled; the figures are of what was done before"}.get(state, state)


def unmet(report: preflight.Report) -> list[str]:
    """The labels that no search here can satisfy, a line each."""
    if not report.n_errors:
        return []
    total = tables.counted(report.n_expectations, "expectation")
    said = [f"{report.n_errors} of {total} can be met by no search here, and will count as missed:"]
    for one in [each for each in report.findings if each.severity is preflight.Severity.ERROR][:_MOST_UNMET]:
        place = f"line {one.line}" if one.line is not None else f"question {one.ordinal + 1}"
        said.append(f"  {place}: {one.message}")
    if report.n_errors > _MOST_UNMET:
        said.append(f"  and {report.n_errors - _MOST_UNMET} more")
    return said


def as_json(told: EvaluationDetail, *, with_results: bool) -> str:
    """The evaluation in the shape of `GET evaluations/{id}`; each run with its `results` where asked for."""
    values = {
        **dataclasses.asdict(told.evaluation),
        "progress": dataclasses.asdict(told.progress),
        "eta_seconds": told.eta_seconds,
        "questions_per_second": told.questions_per_second,
        "waiting_for": [dataclasses.asdict(one) for one in told.waiting_for],
    }
    if with_results:
        for run, rows in zip(values["runs"], result_values(told), strict=True):
            run["results"] = rows
    return json.dumps(values, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2)


def faults(error: TouchstoneError) -> str:
    """An error for people: its sentence and code; of a refused file every fault, a line each."""
    if len(error.faults) < 2:
        return f"{error.message} ({error.code})"
    lines = [f"  {fault.message} ({fault.code})" for fault in error.faults]
    return "\n".join([f"{len(error.faults)} faults, and nothing was done:", *lines])
