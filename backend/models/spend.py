"""What calls to providers cost: a row per call, and the sum of each month. Both outlive the runs they were made for."""

from enum import StrEnum

from django.db import models

from backend.models.accounts import Workspace
from backend.models.base import choices, one_of


class Purpose(StrEnum):
    """What a call was made for."""

    SEARCH = "search"
    EVALUATION = "evaluation"
    INGESTION = "ingestion"
    ANSWERS = "answers"
    GENERATION = "generation"


class SpendEntry(models.Model):
    """One call, or several of a month that is over (`n_calls`). `units` are what was billed, by the provider's names;
    `is_estimated`: a unit that has a price was counted here, since the answer did not tell it. `amount` is None where
    no price is known. `owner` is the id of the evaluation, ingestion or job, which may be gone."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    month = models.DateField()
    provider = models.CharField(max_length=400)
    purpose = models.CharField(max_length=12, choices=choices(Purpose))
    owner = models.UUIDField(null=True)
    n_calls = models.PositiveIntegerField(default=1)
    units = models.JSONField(default=dict)
    amount = models.DecimalField(max_digits=24, decimal_places=12, null=True)
    currency = models.CharField(max_length=10, blank=True)
    is_estimated = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            one_of("purpose", Purpose, name="spend_purpose_is_known"),
            models.CheckConstraint(
                condition=models.Q(amount__isnull=True) | models.Q(amount__gte=0), name="spend_amount_is_not_negative"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "month"], name="spend_by_month"),
            models.Index(fields=["owner"], name="spend_by_owner", condition=models.Q(owner__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.amount} {self.currency}"


class SpendMonth(models.Model):
    """The sum of a month's amounts, kept beside the rows it sums so that it costs one look before each call."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    month = models.DateField()
    currency = models.CharField(max_length=10)
    amount = models.DecimalField(max_digits=24, decimal_places=12)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "month", "currency"], name="one_sum_per_month_and_currency")
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} {self.amount} {self.currency}"
