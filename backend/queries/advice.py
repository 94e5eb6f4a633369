"""What advice reads beside a run's own record: its evaluation's other runs by question, and samples of text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import F
from django.db.models.functions import Left

from backend.core.states import RunState
from backend.models import Document, Question, Run

_CODE = re.compile(r"\b[\w.-]*\d[\w.-]*\b")
_SAMPLE, _SAMPLE_CHARACTERS = 200, 2000

_ALONE = """
SELECT q.text, m.first_rank <= %(k)s IS TRUE
FROM backend_result m
JOIN backend_result w ON w.run_id = %(words)s AND w.ordinal = m.ordinal
JOIN backend_question q ON q.version_id = %(version)s AND q.ordinal = m.ordinal AND NOT q.unanswerable
WHERE m.run_id = %(meaning)s AND m.outcome IN ('ok', 'empty') AND w.outcome IN ('ok', 'empty')
  AND (m.first_rank <= %(k)s IS TRUE) <> (w.first_rank <= %(k)s IS TRUE)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Questions found within k by one leg and missed by the other. `n_codes_by_words` hold a code or number."""

    n_by_meaning: int = 0
    n_by_words: int = 0
    n_codes_by_words: int = 0


def scored_by_mode(run: Run) -> dict[str, Run]:
    """The scored runs of the same evaluation, the first of each mode."""
    found: dict[str, Run] = {}
    for each in Run.objects.filter(evaluation=run.evaluation_id, state=RunState.SCORED).order_by("ordinal"):
        found.setdefault(each.mode, each)
    return found


def alone(*, meaning: UUID, words: UUID, version_id: UUID, k: int) -> Alone:
    """One query; only questions on which the two differ come back."""
    with connection.cursor() as cursor:
        cursor.execute(_ALONE, {"meaning": meaning, "words": words, "version": version_id, "k": k})
        rows = cursor.fetchall()
    by_words = [text for text, by_meaning in rows if not by_meaning]
    return Alone(
        n_by_meaning=len(rows) - len(by_words),
        n_by_words=len(by_words),
        n_codes_by_words=sum(1 for text in by_words if has_code(text)),
    )


def has_code(text: str) -> bool:
    """Whether a word of it holds a digit: `E-1042`, `2023`, `RFC9457`."""
    return _CODE.search(text) is not None


def sample_of_documents(base_ids: Sequence[UUID]) -> list[str]:
    """The beginnings of some documents: the same ones each time."""
    rows = Document.objects.filter(knowledge_base__in=base_ids).exclude(text="").order_by("id")
    return list(rows.annotate(head=Left(F("text"), _SAMPLE_CHARACTERS)).values_list("head", flat=True)[:_SAMPLE])


def sample_of_questions(version_id: UUID) -> list[str]:
    rows = Question.objects.filter(version=version_id).order_by("ordinal")
    return list(rows.values_list("text", flat=True)[: 5 * _SAMPLE])
