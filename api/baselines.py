"""`baselines`: the runs that a person approved to compare others with."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_flag, read_object
from api.enums import BASELINE_STATES
from api.run_shapes import MetricSerializer
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems, query
from backend.models import Scope
from backend.queries import baselines as queries
from backend.queries.lookups import as_uuid
from backend.services import baselines
from backend.services.idempotency import Answer

_ID = path("baseline_id", "The baseline's id.")


class BaselineSerializer(serializers.Serializer[Any]):
    """What was approved, by whom, and of which labels and metric definitions. `outdated`: these have changed since, as
    `why` says; approve a run of the new ones."""

    id = serializers.UUIDField()
    run = serializers.UUIDField()
    evaluation = serializers.UUIDField()
    name = serializers.CharField()
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # ours, not the base class's
    state = serializers.ChoiceField(choices=BASELINE_STATES)
    why = serializers.CharField(allow_blank=True)
    question_set = serializers.UUIDField(allow_null=True)
    set_name = serializers.CharField()
    set_hash = serializers.CharField()
    metric_definitions = serializers.CharField()
    code_version = serializers.CharField()
    primary_metric = serializers.CharField()
    headline = MetricSerializer(allow_null=True)
    approved_by = serializers.CharField()
    approved_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)


class BaselineRequestSerializer(serializers.Serializer[Any]):
    run = serializers.UUIDField()
    label = serializers.CharField(required=False, max_length=200)  # type: ignore[assignment]  # as above


class BaselinesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="baselines_list",
        summary="List baselines, newest first",
        parameters=[query("retired", "Also those that were replaced or retired.", type=bool), *PAGING],
        responses={200: answer(page_of(BaselineSerializer, name="Baseline"), "A page."), **problems(422)},
        tags=["gates"],
    )
    def get(self, request: Request) -> Response:
        found = queries.of(self.workspace, retired=read_flag(request, "retired"))
        return self.page(found, lambda rows: BaselineSerializer(queries.rows(rows), many=True).data)

    @extend_schema(
        operation_id="baselines_approve",
        summary="Approve a run as a baseline",
        description=(
            "Of its set, scope and configuration name; the one before is retired. Refused with 409 unless every "
            "question has a result and the documents stayed as they were. The run cannot be retried or deleted then."
        ),
        parameters=[IDEMPOTENCY_KEY],
        request=BaselineRequestSerializer,
        examples=[example({"run": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11", "label": "release 4"})],
        responses={201: answer(BaselineSerializer, "The baseline."), **problems(400, 404, 409, 415, 422)},
        tags=["gates"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("run", "label"))
        run, label = body.get("run"), body.get("label", "")
        if not isinstance(run, str):
            raise invalid("run is a run's id.", "run")
        if not isinstance(label, str) or len(label) > baselines.MAX_LABEL:
            raise invalid(f"label is a text of at most {baselines.MAX_LABEL} characters.", "label")

        def make() -> Answer:
            made = baselines.approve(
                self.workspace,
                as_uuid(run, what="run"),
                approved_by=self.caller.name or self.caller.id,
                now=timezone.now(),
                label=label,
            )
            shown = BaselineSerializer(queries.rows([queries.get_baseline(self.workspace, made.id)])[0]).data
            location = request.build_absolute_uri(f"/api/v1/baselines/{made.id}")
            return Answer(status=201, body=as_json(shown), location=location)

        return self.once(make, body=body)


class BaselineView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.SCHEDULES}

    @extend_schema(
        operation_id="baselines_read",
        summary="Read a baseline",
        parameters=[_ID],
        responses={200: answer(BaselineSerializer, "The baseline."), **problems(404)},
        tags=["gates"],
    )
    def get(self, request: Request, baseline_id: str) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.get_baseline(self.workspace, baseline_id)
        return Response(BaselineSerializer(queries.rows([found])[0]).data)

    @extend_schema(
        operation_id="baselines_retire",
        summary="Retire a baseline",
        description="It stays in the list of those that were; its run may be retried and deleted again.",
        parameters=[_ID],
        responses={204: answer(None, "It is in force no more."), **problems(404)},
        tags=["gates"],
    )
    def delete(self, request: Request, baseline_id: str) -> Response:  # noqa: ARG002  the framework's signature
        baselines.retire(self.workspace, as_uuid(baseline_id, what="baseline"), now=timezone.now())
        return Response(status=204)
