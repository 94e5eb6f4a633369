"""How often something happened, since the installation began: what /metrics tells as counters."""

from django.db import models


class Tally(models.Model):
    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=60)
    label = models.CharField(max_length=60, blank=True)
    n = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="one_tally_per_name_and_label")]

    def __str__(self) -> str:
        return f"{self.name} {self.label} {self.n}"
