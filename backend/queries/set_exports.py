"""A version of a question set as a file of a form that other programs, or Touchstone again, read."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from backend.core import question_sets
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.core.types import Level, ParsedSet
from backend.models import QuestionSetVersion
from backend.queries import questions

# A zip's own clock would make two exports of one version differ.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class SetForm(StrEnum):
    """`full` is form 4 of docs/question-sets.md, which holds everything; `jsonl` form 1, `csv` form 5."""

    FULL = "full"
    JSONL = "jsonl"
    CSV = "csv"
    BEIR = "beir"
    QRELS = "qrels"
    TOPICS = "topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    data: bytes
    media_type: str
    filename: str


_Writer = Callable[[ParsedSet, bool], bytes]
_WRITERS: Mapping[SetForm, tuple[_Writer, str, str]] = {
    SetForm.FULL: (
        lambda parsed, _: question_sets.to_jsonl(parsed).encode(), "application/x-ndjson", "jsonl",
    ),
    SetForm.JSONL: (
        lambda parsed, lossy: question_sets.to_jsonl(parsed, form=1, lossy=lossy).encode(),
        "application/x-ndjson",
        "jsonl",
    ),
    SetForm.CSV: (
        lambda parsed, lossy: question_sets.to_csv(parsed, lossy=lossy).encode(), "text/csv; charset=utf-8", "csv",
    ),
    SetForm.BEIR: (
        lambda parsed, lossy: _zipped(question_sets.to_beir(parsed, lossy=lossy)), "application/zip", "zip",
    ),
    SetForm.QRELS: (
        lambda parsed, lossy: question_sets.to_qrels(parsed, lossy=lossy).encode(),
        "text/plain; charset=utf-8",
        "qrels",
    ),
    SetForm.TOPICS: (
        lambda parsed, _: question_sets.to_topics(parsed).encode(), "text/plain; charset=utf-8", "tsv",
    ),
}  # fmt: skip
MEDIA_TYPES = tuple(media_type for _, media_type, _ in _WRITERS.values())


def export(version: QuestionSetVersion, *, form: str = "", lossy: bool = False) -> SetFile:
    """The whole version. Raises ValidationError for a form that is none, and, naming the questions, for one that
    cannot hold them (unless `lossy`)."""
    if (form or SetForm.FULL) not in set(SetForm):
        message = f"format is one of {', '.join(SetForm)}, not {form!r}."
        raise ValidationError(
            message, field="format", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="format")]
        )
    chosen = SetForm(form or SetForm.FULL)
    write, media_type, suffix = _WRITERS[chosen]
    parsed = ParsedSet(
        format=version.format,
        questions=tuple(questions.as_core(version)),
        threshold=version.threshold,
        level=Level(version.level),
    )
    name = f"set-{version.question_set_id}-{version.number}-{chosen.value}.{suffix}"
    return SetFile(data=write(parsed, lossy), media_type=media_type, filename=name)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
