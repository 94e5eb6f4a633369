"""Judged answers, as API and console show them."""

from django.db.models import QuerySet

from backend.models import Answer, Run


def of(run: Run, *, outcome: str = "") -> QuerySet[Answer]:
    """In question order."""
    found = Answer.objects.filter(run=run).order_by("ordinal", "id")
    return found.filter(outcome=outcome) if outcome else found
