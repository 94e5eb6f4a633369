"""`jobs`: work that outlasts a request, followed and stopped; and the answer of an address that begins one."""

from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid
from api.enums import JOB_KINDS, JOB_STATES
from api.schema import PAGING, FaultSerializer, answer, files, page_of, path, problems, query
from backend.core.states import JobKind
from backend.models import Job, Scope
from backend.queries import jobs as queries
from backend.queries.jobs import JobRow
from backend.queries.lookups import as_uuid
from backend.services import exporting, jobs
from backend.services.idempotency import Answer

_ID = path("job_id", "The job's id.")
# Who may begin a job of a kind may stop it.
_CANCEL_SCOPES = {
    JobKind.PREFLIGHT: Scope.READ,
    JobKind.COMPARISON: Scope.READ,
    JobKind.EXPORT: Scope.READ,
    JobKind.RESCORE: Scope.EVALUATE,
    JobKind.IMPORT: Scope.WRITE,
    JobKind.GENERATE: Scope.WRITE,
}


class JobFileSerializer(serializers.Serializer[Any]):
    """What the job made: at `jobs/{id}/file`."""

    name = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField()


class JobSerializer(serializers.Serializer[Any]):
    """`n_total` is 0 while nobody knows it. A failed job says why in `code`, `reason` and `errors`; a completed one has
    its `result`: the answer that the address would have given at once, or where it is."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=JOB_KINDS)
    state = serializers.ChoiceField(choices=JOB_STATES)
    is_final = serializers.BooleanField()
    n_done = serializers.IntegerField()
    n_total = serializers.IntegerField()
    result = serializers.DictField()
    file = JobFileSerializer(allow_null=True)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    errors = FaultSerializer(many=True)  # type: ignore[assignment]  # a field of ours, not the base class's
    created_by = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


JOB_ACCEPTED = answer(JobSerializer, "It takes longer than a request: a job, to be polled at `Location`.")


def accepted(request: Request, job: Job) -> Answer:
    """202 with the job, and where it is."""
    row = queries.rows([job])[0]
    location = request.build_absolute_uri(f"/api/v1/jobs/{job.id}")
    return Answer(status=202, body=as_json(JobSerializer(row).data), location=location)


class JobsView(Endpoint):
    @extend_schema(
        operation_id="jobs_list",
        summary="List jobs, newest first",
        parameters=[
            query("kind", "Only jobs of this kind.", enum=JOB_KINDS),
            query("state", "Only jobs in this state.", enum=JOB_STATES),
            *PAGING,
        ],
        responses={200: answer(page_of(JobSerializer, name="Job"), "A page."), **problems(422)},
        tags=["jobs"],
    )
    def get(self, request: Request) -> Response:
        kind, state = (request.query_params.get(name, "") for name in ("kind", "state"))
        if kind and kind not in JOB_KINDS:
            raise invalid(f"kind is one of {', '.join(JOB_KINDS)}, not {kind!r}.", "kind")
        if state and state not in JOB_STATES:
            raise invalid(f"state is one of {', '.join(JOB_STATES)}, not {state!r}.", "state")
        found = queries.of(self.workspace, kind=kind, state=state)
        return self.page(found, lambda rows: JobSerializer(queries.rows(rows), many=True).data)


class JobView(Endpoint):
    @extend_schema(
        operation_id="jobs_read",
        summary="Follow a job",
        description="The answer carries an ETag; with `If-None-Match` it is 304 while nothing has changed.",
        parameters=[_ID],
        responses={
            200: answer(JobSerializer, "As it is now."),
            304: answer(None, "Nothing has changed since that ETag."),
            **problems(404),
        },
        tags=["jobs"],
    )
    def get(self, request: Request, job_id: str) -> Response:
        row = queries.look(self.workspace, job_id)
        headers = {"ETag": f'W/"{row.tag}"', "Cache-Control": "private, no-cache"}
        if _is_known(request, row):
            return Response(status=304, headers=headers)
        return Response(JobSerializer(row).data, headers=headers)


class JobFileView(Endpoint):
    @extend_schema(
        operation_id="jobs_file",
        summary="The file that a job made",
        parameters=[_ID],
        responses={
            **files(
                ("application/octet-stream", "application/json", *exporting.MEDIA_TYPES),
                "The file, under its own media type.",
            ),
            **problems(404),
        },
        tags=["jobs"],
    )
    def get(self, request: Request, job_id: str) -> HttpResponse:  # noqa: ARG002  the framework's signature
        made, data = queries.file_of(self.workspace, job_id)
        return HttpResponse(
            data,
            content_type=made.media_type or "application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{made.name}"'},
        )


class JobCancelView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="jobs_cancel",
        summary="Stop a job",
        description="Nothing more is written for it. It takes the scope that beginning a job of its kind takes.",
        parameters=[_ID],
        request=None,
        responses={202: answer(JobSerializer, "It is stopping, or has stopped."), **problems(404, 409)},
        tags=["jobs"],
    )
    def post(self, request: Request, job_id: str) -> Response:
        row = queries.look(self.workspace, job_id)
        needed = cancel_scope(row.kind)
        if needed not in self.caller.scopes:
            raise PermissionDenied(f"Stopping a job of kind {row.kind} needs the scope {needed.value}.")
        moved = jobs.cancel(self.workspace, as_uuid(job_id, what="job"))
        location = request.build_absolute_uri(request.path.rsplit("/", 1)[0])
        return Response(JobSerializer(queries.rows([moved])[0]).data, status=202, headers={"Location": location})


def cancel_scope(kind: str) -> Scope:
    """Gates, alerts and what a later release adds begin by themselves: stopping those is for who sets them up."""
    return _CANCEL_SCOPES.get(JobKind(kind), Scope.SCHEDULES) if kind in set(JobKind) else Scope.SCHEDULES


def _is_known(request: Request, row: JobRow) -> bool:
    given = {tag.strip().removeprefix("W/").strip('"') for tag in request.headers.get("If-None-Match", "").split(",")}
    return row.tag in given or "*" in given
