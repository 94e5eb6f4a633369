"""A run in any of its forms: the data forms as they are read, the reports with causes, advice and a baseline."""

from collections.abc import Callable, Iterator
from typing import Any

from backend.core import comparison, reports
from backend.core.comparison import Candidate
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.metric_keys import MetricKey
from backend.core.reports import Against, Line, Metric, Report, Status, TagFigure
from backend.core.types import GOOD_OUTCOMES
from backend.models import Run, Workspace
from backend.queries import comparisons, exports, runs, tag_figures
from backend.queries.exports import Export, Format
from backend.queries.results import ResultRow
from backend.services import advising, diagnoses, run_results

_WRITERS: dict[Format, tuple[Callable[[Report], str], str, str]] = {
    Format.JUNIT: (reports.to_junit, "application/xml", "xml"),
    Format.MARKDOWN: (reports.to_markdown, "text/markdown; charset=utf-8", "md"),
    Format.HTML: (reports.to_html, "text/html; charset=utf-8", "html"),
}
MEDIA_TYPES = (*exports.MEDIA_TYPES, *(media_type for _, media_type, _ in _WRITERS.values()))
# In what order people look for a run's settings.
_SETTINGS = ("mode", "depth", "keyword", "reranker", "rerank_depth", "min_score")


def export(workspace: Workspace, run_id: object, *, form: str, baseline: str = "") -> Export:
    """Reports take a `baseline`, a run whose comparison they tell. Raises NotFoundError, ValidationError,
    ConflictError."""
    run = runs.get_run(workspace, run_id)
    chosen = exports.form_of(form)
    if chosen not in _WRITERS:
        if baseline:
            message = f"{chosen.value} has no place for a baseline: take {', '.join(one.value for one in _WRITERS)}."
            raise ValidationError(
                message, field="baseline", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="baseline")]
            )
        return exports.export(run, form=chosen, shown=run_results.shown)
    exports.check_ended(run)
    write, media_type, suffix = _WRITERS[chosen]
    text = write(_report(workspace, run, baseline=baseline))
    return Export(text=[text], media_type=media_type, filename=f"run-{run.id}.{suffix}")


def _report(workspace: Workspace, run: Run, *, baseline: str) -> Report:
    row = runs.row(run)
    k = MetricKey.parse(run.primary_metric).k
    losses = diagnoses.summarise(run, k=k)
    figures = tag_figures.of(run, metrics=[run.primary_metric])
    lines = tuple(_lines(run, k=k))
    groups = [*figures.by_tag, *([figures.untagged] if figures.untagged and figures.by_tag else [])]
    return Report(
        run_id=str(run.id),
        name=run.name,
        set_name=row.question_set.name,
        state=run.state,
        reason=run.stop_reason,
        level=run.level,
        k=k,
        primary=run.primary_metric,
        metrics=tuple(_metric(key, value) for key, value in sorted(run.metrics.items(), key=_order)),
        facts=tuple(_facts(row)),
        lines=lines,
        ranks=tuple(_ranks(lines, top_k=run.top_k)),
        causes={cause.value: n for cause, n in losses.summary.overall.causes.items()},
        by_tag=tuple(
            TagFigure(
                tag=one.tag,
                n_questions=one.n_questions,
                metric=_metric(run.primary_metric, one.metrics[run.primary_metric]),
            )
            for one in groups
        ),
        notes=tuple(_notes(run, losses)),
        advice=tuple(one.sentence for one in advising.of(run)),
        against=_against(workspace, run, baseline) if baseline else None,
        finished_at=run.finished_at.strftime("%Y-%m-%dT%H:%M:%S") if run.finished_at else "",
    )


def _lines(run: Run, *, k: int) -> Iterator[Line]:
    for row in exports.rows(run, k=k, shown=run_results.shown):
        yield Line(
            number=row.ordinal + 1,
            key=row.key,
            question=row.question or "",
            status=_status(row),
            first_rank=row.first_rank,
            detail=_detail(row),
            found=row.first_relevant.path if row.found and row.first_relevant else "",
            instead=tuple(place.path for place in row.found_instead),
            tags=tuple(row.tags),
            must_pass=row.must_pass,
            latency_ms=row.latency_ms,
        )


def _status(row: ResultRow) -> Status:
    if row.found is not None:
        return Status.FOUND if row.found else Status.MISSED
    return Status.LEFT_OUT if row.outcome in {*GOOD_OUTCOMES, "cancelled"} else Status.ERROR


def _detail(row: ResultRow) -> str:
    if row.cause:
        return row.cause + (" (right document, wrong passage)" if row.wrong_passage else "")
    if row.code or row.reason:
        return f"{row.reason} ({row.code})" if row.code else row.reason
    if row.found is not None:
        return ""
    if row.unanswerable:
        return "unanswerable"
    return "nothing relevant is expected" if row.outcome in GOOD_OUTCOMES else row.outcome


def _ranks(lines: tuple[Line, ...], *, top_k: int) -> Iterator[tuple[str, int]]:
    """How many questions were first found in each band of ranks, as the transitions of a comparison have them."""
    ranks = {line.key: line.first_rank for line in lines if line.status in {Status.FOUND, Status.MISSED}}
    moved = comparison.transitions(ranks, ranks, top_k=top_k)
    for at, label in enumerate(moved.labels):
        yield label, sum(moved.counts[at])


def _facts(row: Any) -> Iterator[tuple[str, str]]:
    yield "set", row.question_set.name
    if row.knowledge_base.name:
        yield "base", row.knowledge_base.name
    yield "level", f"{row.level}, top {row.top_k}"
    for name in _SETTINGS:
        if name in row.config:
            yield name, str(row.config[name])
    if row.label:
        yield "label", row.label
    counts = {name.removeprefix("n_"): n for name, n in row.counts.items() if isinstance(n, int) and n}
    yield "questions", ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items())
    latency = row.timings.get("latency_ms") or {}
    if latency:
        yield "latency", f"{latency['p50']:.0f} ms at the median, {latency['p95']:.0f} ms at 95 %"
    yield "configuration", row.fingerprints.config[:12]
    yield "metric definitions", row.fingerprints.metric_definitions


def _notes(run: Run, losses: diagnoses.RunSummary) -> Iterator[str]:
    if run.corpus_changed:
        yield "The documents changed while this run was made: it cannot be a baseline."
    if run.counts.get("n_error") or run.counts.get("n_not_run"):
        n = run.counts.get("n_error", 0) + run.counts.get("n_not_run", 0)
        yield f"{n} questions have no result; they are in no mean."
    if run.counts.get("n_must_pass"):
        yield f"{run.counts['n_must_pass_found']} of {run.counts['n_must_pass']} must-pass questions were found."
    summary = losses.summary
    if summary.ceiling is not None and summary.recall is not None:
        yield f"recall@{summary.k}: {summary.recall:.3f}; in perfect order the pool would reach {summary.ceiling:.3f}."
    if summary.lift is not None:
        moved = summary.lift
        yield f"The reranker moved {moved.n_up} questions up, {moved.n_down} down, {moved.n_unchanged} not at all."


def _against(workspace: Workspace, run: Run, baseline: str) -> Against:
    compared = comparisons.compare(workspace, baseline=baseline, candidates=[run.id])
    one: Candidate = compared.comparison.candidates[0]
    paired = [one.primary, *one.others] if one.primary is not None else []
    return Against(
        baseline=compared.comparison.baseline,
        verdict=one.decision.verdict.value,
        sentence=one.decision.sentence,
        warnings=one.warnings,
        deltas=tuple(
            (each.metric, each.mean_delta, f"{each.low:+.3f} to {each.high:+.3f}")
            for each in paired
            if each.mean_delta is not None
        ),
    )


def _metric(key: str, stored: Any) -> Metric:
    return Metric(key=key, **{name: stored[name] for name in ("mean", "low", "high", "n", "n_total")})


def _order(item: tuple[str, Any]) -> tuple[str, int]:
    name, _, k = item[0].rpartition("@")
    return name, int(k)
