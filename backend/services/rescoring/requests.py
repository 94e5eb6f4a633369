"""What a re-scoring is asked for, and the run that comes of it.

What the stored rankings cannot answer is refused whole, and the refusal says how many questions it is about.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.states import RunKind, RunState
from backend.models import QuestionSetVersion, Run, Workspace
from backend.queries import questions, runs
from backend.services import evaluation_requests, finished_runs, retention
from backend.services.evaluation_requests import Measured
from backend.services.finished_runs import Record
from backend.services.rescoring.scoring import Scoring, kept_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to differ; the rest is the run's own. `version`: of the run's set, or of any as `id@version`."""

    version: str = ""
    level: str = ""
    threshold: float | None = None
    top_k: int | None = None
    k: int | Sequence[int] | None = None
    primary_metric: str = ""
    metrics: Sequence[str] = ()
    label: str = ""


def rescore(workspace: Workspace, run_id: UUID, request: Request, *, now: datetime) -> Run:
    """A new run that says what it came from. Questions that another version adds or words anew are `not_run`.

    Raises ConflictError for a run without results or whose set is gone, and ValidationError, naming how many
    questions, for what its stored rankings cannot answer.
    """
    source = runs.get_run(workspace, run_id)
    if source.state != RunState.SCORED:
        raise ConflictError(f"This run is {source.state}: only one that was scored can be scored again.")
    retention.check_whole(source)
    asked = source.evaluation.question_set_version
    version = _version(workspace, request.version, asked)
    measured = _measured(request, source, version)
    threshold = _threshold(request, source, version, asked)
    scoring = Scoring(source=source, asked=asked, version=version, measured=measured, threshold=threshold)
    return finished_runs.write(
        workspace,
        _record(source, label=request.label),
        version=version,
        measured=measured,
        threshold=threshold,
        rows=scoring.rows(),
        now=now,
    )


def _version(workspace: Workspace, wanted: str, asked: QuestionSetVersion | None) -> QuestionSetVersion:
    if not wanted:
        if asked is None:
            raise ConflictError("The question set of this run was deleted: name another version to score it by.")
        return asked
    key, at, number = wanted.partition("@")
    if not at and key.isdigit():
        if asked is None:
            raise ConflictError("The question set of this run was deleted: name one as id@version.")
        return questions.get_version(asked.question_set, key)
    return questions.get_version(questions.get_set(workspace, key), number or None)


def _measured(request: Request, source: Run, version: QuestionSetVersion) -> Measured:
    top_k = request.top_k
    if top_k is None:
        wanted = [k for k in ([request.k] if isinstance(request.k, int) else request.k or ()) if isinstance(k, int)]
        top_k = max(source.top_k, *wanted, 1)
    measured = evaluation_requests.measured_by(
        evaluation_requests.Request(
            top_k=top_k,
            k=request.k,
            level=request.level or source.level,
            primary_metric=request.primary_metric,
        ),
        version,
    )
    extra = [MetricKey.parse(name, top_k=measured.top_k) for name in request.metrics]
    return replace(measured, keys=tuple(dict.fromkeys((*measured.keys, *extra))))


def _threshold(request: Request, source: Run, version: QuestionSetVersion, asked: QuestionSetVersion | None) -> float:
    if request.threshold is None:
        return source.threshold if asked is not None and version.id == asked.id else version.threshold
    if not math.isfinite(request.threshold) or request.threshold <= 0:
        raise _invalid("threshold is a number above 0: the grade from which a result counts as relevant.", "threshold")
    return float(request.threshold)


def _record(source: Run, *, label: str) -> Record:
    return Record(
        name=source.name,
        mode=source.mode,
        kind=RunKind.RESCORED,
        derived_from=source.id,
        origin={
            "run": str(source.id),
            "name": source.name,
            "set": source.evaluation.set_name,
            # Which labels decided what was kept of each ranking: the first run's, however often it is scored again.
            "set_hash": source.origin.get("set_hash", source.set_hash),
            "level": source.level,
            "threshold": source.threshold,
            "top_k": source.top_k,
            "kept": {"level": kept_of(source).level.value, "top_k": kept_of(source).top_k},
            **({"imported": source.origin} if source.kind == RunKind.IMPORTED else {}),
        },
        config=source.config,
        config_fingerprint=source.config_fingerprint,
        scope=source.evaluation.scope,
        searched=source.evaluation.plan["scope"],
        knowledge_base=source.knowledge_base,
        knowledge_base_name=source.knowledge_base_name,
        corpus_fingerprint=source.corpus_fingerprint,
        generations=source.generations,
        corpus_changed=source.corpus_changed,
        label=label or source.label,
    )


def _invalid(message: str, where: str) -> ValidationError:
    return ValidationError(
        message, field=where, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=where)]
    )
