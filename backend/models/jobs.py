"""Work that outlasts a request and is no evaluation: one row a job, its slice is what workers claim."""

from django.db import models
from django.db.models import Q

from backend.core.states import FileRole, JobState
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id, one_of


class Job(models.Model):
    """`payload` is what the handler needs and nobody else is shown; `result` what came of it. `kind` is a JobKind, and
    no constraint: a release that adds one needs no migration. `created_by` names the caller (api/auth.py)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="jobs", db_index=False)
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=12, choices=choices(JobState), default=JobState.QUEUED)
    payload = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    n_done = models.PositiveIntegerField(default=0)
    n_total = models.PositiveIntegerField(default=0)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    faults = models.JSONField(default=list)
    created_by = models.CharField(max_length=100, blank=True)
    deadline_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [one_of("state", JobState, name="job_state_is_known")]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="job_by_workspace"),
            models.Index(fields=["state"], name="job_open", condition=Q(state__in=["queued", "running", "cancelling"])),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id} {self.state}"


class JobFile(models.Model):
    """What is too large for `payload` or `result`: an uploaded file to work on, or the one that was made. Goes with
    its job."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="files", db_index=False)
    role = models.CharField(max_length=6, choices=choices(FileRole))
    name = models.CharField(max_length=300)
    media_type = models.CharField(max_length=100, blank=True)
    size = models.PositiveBigIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "role"], name="job_has_one_file_of_a_role"),
            one_of("role", FileRole, name="job_file_role_is_known"),
        ]

    def __str__(self) -> str:
        return self.name
