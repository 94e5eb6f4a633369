"""The way in: bytes, files or JSON values to a question set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.core.errors import ErrorCode
from backend.core.question_sets.assembling import assemble
from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Bundle, Content
from backend.core.question_sets.decoding import decode
from backend.core.question_sets.expectations import Sources
from backend.core.question_sets.notes import Notes, Place, refuse
from backend.core.question_sets.parquet import is_parquet, to_jsonl
from backend.core.question_sets.registry import find_bundle_format, find_format
from backend.core.question_sets.zipped import is_zip, unzip
from backend.core.types import ParsedSet

MAX_QUESTIONS = 100_000
MAX_BYTES = 50 * 1024 * 1024


def parse(
    data: bytes,
    *,
    filename: str = "",
    format: str | None = None,  # noqa: A002  the name of the option in the API and on the command line
    known_sources: frozenset[str] = frozenset(),
    max_questions: int = MAX_QUESTIONS,
    max_bytes: int = MAX_BYTES,
) -> ParsedSet:
    """Read one file (or a BEIR zip). The format is recognised by content unless `format` names it.

    Raises QuestionSetError with all faults (the first 100), each with its code, sentence, line and field.
    """
    _check_size(len(data), max_bytes=max_bytes)
    if is_zip(data):
        files = unzip(data, max_bytes=max_bytes)
        return parse_files(
            files,
            format=format,
            known_sources=known_sources,
            max_questions=max_questions,
            max_bytes=max_bytes,
        )
    if is_parquet(data):
        data = to_jsonl(data, max_rows=max_questions, max_bytes=4 * max_bytes)
    content = Content(text=decode(data), filename=filename)
    chosen, notes = find_format(content, name=format), Notes()
    return assemble(
        chosen.read(content, notes),
        format_name=chosen.name,
        sources=Sources(known_sources),
        notes=notes,
        max_questions=max_questions,
    )


def parse_files(
    files: Mapping[str, bytes],
    *,
    format: str | None = None,  # noqa: A002  the name of the option in the API and on the command line
    known_sources: frozenset[str] = frozenset(),
    max_questions: int = MAX_QUESTIONS,
    max_bytes: int = MAX_BYTES,
) -> ParsedSet:
    """Read a set that is several files, by name: a BEIR folder, or TREC topics and qrels. Raises as `parse`."""
    if len(files) == 1:
        ((name, data),) = files.items()
        if not is_zip(data):
            return parse(
                data,
                filename=name,
                format=format,
                known_sources=known_sources,
                max_questions=max_questions,
                max_bytes=max_bytes,
            )
    bundle = Bundle.of(files)
    _check_size(sum(len(data) for data in bundle.files.values()), max_bytes=max_bytes)
    chosen, notes = find_bundle_format(bundle, name=format), Notes()
    return assemble(
        chosen.read(bundle, notes),
        format_name=chosen.name,
        sources=Sources(known_sources),
        notes=notes,
        max_questions=max_questions,
    )


def parse_items(
    items: Sequence[Any],
    *,
    known_sources: frozenset[str] = frozenset(),
    max_questions: int = MAX_QUESTIONS,
    path: str = "questions",
) -> ParsedSet:
    """Read cases that came as JSON in a request. Faults carry a field path (`questions[3].expected[0]`), no line."""
    root = Place(path=path)
    cases: Iterable[RawCase] = (RawCase(value=item, place=root / i) for i, item in enumerate(items))
    return assemble(
        cases,
        format_name="inline",
        sources=Sources(known_sources),
        notes=Notes(),
        max_questions=max_questions,
    )


def _check_size(size: int, *, max_bytes: int) -> None:
    if size > max_bytes:
        limit = f"{max_bytes / (1024 * 1024):,.6g} MiB"
        raise refuse(
            f"The file has {size:,} bytes; the limit of this workspace is {limit}. Split the set.",
            code=ErrorCode.EVAL_TOO_LARGE,
        )
