"""A run in the forms that other programs read. Written line by line: a run may have 100,000 questions."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from backend.core import formulas, question_sets
from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.core.judging import JudgedList
from backend.core.types import GOOD_OUTCOMES, Level, ParsedSet
from backend.models import Result, Run
from backend.queries import questions, results
from backend.queries import runs as run_queries

_BATCH = 500


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"
    JSONL = "jsonl"
    TREC_RUN = "trec_run"
    TREC_QRELS = "trec_qrels"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


# What they tell is read from rankings.
NEED_RANKINGS = frozenset({Format.TREC_RUN, Format.JUNIT, Format.MARKDOWN, Format.HTML})


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """`text` in pieces, to be sent as they come."""

    text: Iterable[str]
    media_type: str
    filename: str


_MEDIA: dict[Format, tuple[str, str]] = {
    Format.JSON: ("application/json", "json"),
    Format.CSV: ("text/csv; charset=utf-8", "csv"),
    Format.JSONL: ("application/x-ndjson", "jsonl"),
    Format.TREC_RUN: ("text/plain; charset=utf-8", "run"),
    Format.TREC_QRELS: ("text/plain; charset=utf-8", "qrels"),
}


MEDIA_TYPES = tuple(media_type for media_type, _ in _MEDIA.values())
Shown = Callable[[Run, Sequence[Any], int], list[results.ResultRow]]


def form_of(text: str) -> Format:
    """Raises ValidationError for a form that is none."""
    if text not in set(Format):
        message = f"format is one of {', '.join(Format)}, not {text!r}."
        raise ValidationError(
            message, field="format", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="format")]
        )
    return Format(text)


def check_writable(run: Run, form: Format) -> None:
    """Raises ConflictError for a run that has not ended, or whose rankings are gone where the form needs them."""
    check_ended(run)
    if run.pruned_at is not None and form in NEED_RANKINGS:
        raise ConflictError("The rankings of this run are gone (docs/nightly.md): its figures stay.")


def check_ended(run: Run) -> None:
    """Raises ConflictError for a run that has not ended."""
    if not run_queries.is_final(run):
        raise ConflictError("This run has not ended: wait for its results.")


def export(run: Run, *, form: Format, shown: Shown) -> Export:
    """A data form (the reports are made in services/exporting.py). `shown` makes rows of a page's results.

    Raises ValidationError for a set that qrels cannot hold; ConflictError for a run that has not ended, or whose set
    is gone where the form needs it.
    """
    check_writable(run, form)
    media_type, suffix = _MEDIA[form]
    writers: dict[Format, Callable[[Run, Shown], Iterable[str]]] = {
        Format.JSON: _json,
        Format.CSV: _csv,
        Format.JSONL: _jsonl,
        Format.TREC_RUN: _trec_run,
        Format.TREC_QRELS: _qrels,
    }
    return Export(text=writers[form](run, shown), media_type=media_type, filename=f"run-{run.id}.{suffix}")


def rows(run: Run, *, k: int, shown: Shown) -> Iterator[results.ResultRow]:
    """All results in question order, read in batches."""
    last = -1
    while True:
        batch = list(results.of(run, k=k).filter(ordinal__gt=last)[:_BATCH])
        if not batch:
            return
        yield from shown(run, batch, k)
        last = batch[-1].ordinal


def _json(run: Run, shown: Shown) -> Iterator[str]:
    """The run's record with its `results`."""
    record = json.dumps(asdict(run_queries.row(run)), cls=DjangoJSONEncoder, ensure_ascii=False)
    yield f'{record[:-1]}, "results": ['
    between = "\n"
    for row in rows(run, k=run.top_k, shown=shown):
        yield between + _line(asdict(row))
        between = ",\n"
    yield "\n]}\n"


def _jsonl(run: Run, shown: Shown) -> Iterator[str]:
    """A result a line."""
    for row in rows(run, k=run.top_k, shown=shown):
        yield f"{_line(asdict(row))}\n"


_COLUMNS = (
    "number", "key", "question", "outcome", "found", "first_rank", "found_path", "top_path", "latency_ms", "code",
    "reason", "cause", "tags", "must_pass",
)  # fmt: skip


def _csv(run: Run, shown: Shown) -> Iterator[str]:
    """A question a row, for a spreadsheet: a cell that would be taken for a formula is quoted."""
    yield _csv_line(_COLUMNS)
    for row in rows(run, k=run.top_k, shown=shown):
        relevant = row.first_relevant.path if row.first_relevant else ""
        top = row.found_instead[0].path if row.found_instead else relevant if row.first_rank == 1 else ""
        values = [
            row.ordinal + 1, row.key, row.question, row.outcome, row.found, row.first_rank, relevant, top,
            row.latency_ms, row.code, row.reason, row.cause, "|".join(row.tags), row.must_pass,
        ]  # fmt: skip
        yield _csv_line(["" if value is None else _harmless(value) for value in values])


def _trec_run(run: Run, _: Shown) -> Iterator[str]:
    """The judged ranks, with scores that fall by one, so that no tie is left to the reader.

    At document level a document is named by its path (with its source where several have one of that path), at
    passage level a passage by its id. Questions that ended in an error are left out, as they are of the means.
    """
    repeated = _repeated_paths(run)
    good = Result.objects.filter(run=run, outcome__in=list(GOOD_OUTCOMES)).order_by("ordinal")
    for result in good.iterator(chunk_size=_BATCH):
        if result.judged is None or not result.ranking:
            continue
        names = {item["d"]: _document_name(item, with_source=item["p"] in repeated) for item in result.ranking}
        ranks = JudgedList.from_json(result.judged).ranks
        for rank, judged in enumerate(ranks, start=1):
            name = names[judged.key] if run.level == Level.DOCUMENT else judged.key
            yield f"{_token(result.question_key)} Q0 {name} {rank} {len(ranks) - rank + 1} {_token(run.name)}\n"


def _qrels(run: Run, _: Shown) -> list[str]:
    """What is expected, as relevance judgements of the documents that the run file names.

    Where the run file names something else, trec_eval would find nothing and say 0: that is refused.
    """
    if run.level == Level.PASSAGE:
        raise _unsaid(
            "This run is judged at passage level, and what is expected is named by documents, not by passages"
        )
    repeated = sorted(_repeated_paths(run))
    if repeated:
        raise _unsaid(f"Several sources have a document {repeated[0]!r}, and qrels have no place for the source")
    version = run.evaluation.question_set_version
    if version is None:
        raise ConflictError("The question set of this run was deleted: what it expected is not known any more.")
    parsed = ParsedSet(
        format=version.format,
        # What qrels have no place for, and what changes no judgement.
        questions=tuple(
            replace(one, tags=(), note="", must_pass=False, reference_answer="", source="", collection="")
            for one in questions.as_core(version)
            if one.expectations
        ),
        threshold=version.threshold,
        level=Level(version.level),
    )
    return [question_sets.to_qrels(parsed)]


def _unsaid(why: str) -> ValidationError:
    message = f"{why}. Export json instead, which has the judgement of every question."
    return ValidationError(
        message, field="format", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="format")]
    )


def _repeated_paths(run: Run) -> set[str]:
    """The paths under which the run found documents of several sources."""
    source_of: dict[str, str] = {}
    repeated = set()
    for ranking in Result.objects.filter(run=run).values_list("ranking", flat=True).iterator(chunk_size=_BATCH):
        for item in ranking:
            if source_of.setdefault(item["p"], item["s"]) != item["s"]:
                repeated.add(item["p"])
    return repeated


def _document_name(item: Mapping[str, Any], *, with_source: bool) -> str:
    return _token(f"{item['s']}:{item['p']}" if with_source and item["s"] else item["p"])


def _token(text: str) -> str:
    """One word of a TREC file: white space would begin the next column."""
    return "_".join(text.split())


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def _csv_line(values: Sequence[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()


def _harmless(value: object) -> object:
    return formulas.disarm(value) if isinstance(value, str) else value
