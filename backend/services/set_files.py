"""Question-set files found in a source: kept with what is in them, or what is wrong with them."""

import hashlib
from collections.abc import Collection

from django.conf import settings
from django.utils import timezone

from backend.core import question_sets
from backend.core.errors import ErrorCode, QuestionSetError
from backend.core.types import ParsedSet
from backend.models import KnowledgeBase, Source, SourceSetFile


def record(source: Source, path: str, data: bytes) -> SourceSetFile:
    """Keep a file, and how many questions it has or its fault. Unchanged bytes are read again all the same: the
    sources that a `source:path` can name may have changed."""
    n_questions, code, reason = None, "", ""
    try:
        n_questions = len(parse(source.knowledge_base, data, filename=path).questions)
    except QuestionSetError as error:
        code, reason = error.code, told(error)
    kept = b"" if code == ErrorCode.EVAL_TOO_LARGE else data
    file, _ = SourceSetFile.objects.update_or_create(
        source=source,
        path=path,
        defaults={
            "data": kept,
            "bytes_hash": hashlib.sha256(data).hexdigest(),
            "n_questions": n_questions,
            "code": code,
            "reason": reason,
            "found_at": timezone.now(),
        },
    )
    return file


def forget_others(source: Source, paths: Collection[str]) -> int:
    """Forget the files of a source that are not among these any more."""
    return SourceSetFile.objects.filter(source=source).exclude(path__in=list(paths)).delete()[0]


def parse(knowledge_base: KnowledgeBase, data: bytes, *, filename: str) -> ParsedSet:
    """Raises QuestionSetError with all faults."""
    return question_sets.parse(
        data,
        filename=filename,
        known_sources=frozenset(Source.objects.filter(knowledge_base=knowledge_base).values_list("name", flat=True)),
        max_questions=settings.MAX_QUESTIONS,
        max_bytes=settings.MAX_SET_BYTES,
    )


def told(error: QuestionSetError) -> str:
    """The first faults of a refused file, a line each."""
    lines = [fault.message for fault in error.faults[:10]]
    more = len(error.faults) - len(lines)
    return "\n".join([*lines, *([f"(and {more} more)"] if more else [])])
