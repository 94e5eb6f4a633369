"""`schedules`: evaluations that run by themselves."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.enums import FIRING_STATES, GATE_OUTCOMES
from api.evaluation_request import EvaluationRequestSerializer
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.models import Schedule, Scope
from backend.queries import schedules as queries
from backend.services import schedules
from backend.services.idempotency import Answer
from backend.services.schedules import Settings

_ID = path("schedule_id", "The schedule's id.")
_FIELDS = ("name", "evaluation", "cron", "time_zone", "enabled", "grace_seconds")
_EXAMPLE = {
    "name": "nightly",
    "cron": "0 2 * * *",
    "time_zone": "Europe/Berlin",
    "evaluation": {
        "question_set": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11",
        "scope": {"knowledge_base": "0192f0c0-11aa-7f00-8000-000000000001"},
        "modes": ["hybrid", "hybrid_rerank"],
    },
}


class FiringSerializer(serializers.Serializer[Any]):
    """One slot and what came of it; a row for missed or covered slots stands for `n_slots` of them. `outcomes`: what
    each gate said. `evaluation_request` is what it ran with."""

    id = serializers.UUIDField()
    slot_at = serializers.DateTimeField()
    manual = serializers.BooleanField()
    state = serializers.ChoiceField(choices=FIRING_STATES)
    caught_up = serializers.BooleanField()
    n_slots = serializers.IntegerField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    evaluation = serializers.UUIDField(allow_null=True)
    evaluation_state = serializers.CharField(allow_null=True)
    outcomes = serializers.DictField(child=serializers.ChoiceField(choices=GATE_OUTCOMES))
    evaluation_request = serializers.DictField(source="request")
    revision = serializers.IntegerField()


class ScheduleSerializer(serializers.Serializer[Any]):
    """`evaluation` is the body of `POST evaluations`. `upcoming`: the next slots. `revision` rises with each change."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    evaluation = serializers.DictField()
    question_set = serializers.UUIDField(allow_null=True)
    set_name = serializers.CharField(allow_blank=True)
    knowledge_base = serializers.UUIDField(allow_null=True)
    base_name = serializers.CharField(allow_blank=True)
    cron = serializers.CharField()
    time_zone = serializers.CharField()
    enabled = serializers.BooleanField()
    grace_seconds = serializers.IntegerField()
    revision = serializers.IntegerField()
    next_run_at = serializers.DateTimeField(allow_null=True)
    upcoming = serializers.ListField(child=serializers.DateTimeField())
    is_running = serializers.BooleanField()
    last = FiringSerializer(allow_null=True)
    n_open_alerts = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class ScheduleRequestSerializer(serializers.Serializer[Any]):
    """`cron`: minute hour day month weekday, read in `time_zone`. `grace_seconds`: how late a slot may still be caught
    up (6 hours)."""

    name = serializers.CharField(max_length=200)
    evaluation = EvaluationRequestSerializer()
    cron = serializers.CharField(max_length=200)
    time_zone = serializers.CharField(max_length=60, default="UTC")
    enabled = serializers.BooleanField(default=True)
    grace_seconds = serializers.IntegerField(default=schedules.GRACE_SECONDS)


class ScheduleChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200, required=False)
    evaluation = EvaluationRequestSerializer(required=False)
    cron = serializers.CharField(max_length=200, required=False)
    time_zone = serializers.CharField(max_length=60, required=False)
    enabled = serializers.BooleanField(required=False)
    grace_seconds = serializers.IntegerField(required=False)


class SchedulesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="schedules_list",
        summary="List schedules, newest first",
        parameters=PAGING,
        responses={200: answer(page_of(ScheduleSerializer, name="Schedule"), "A page."), **problems(422)},
        tags=["schedules"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(
            queries.of(self.workspace), lambda rows: ScheduleSerializer(queries.rows(rows), many=True).data
        )

    @extend_schema(
        operation_id="schedules_create",
        summary="Make a schedule",
        description="A question set without a version is its latest at each slot. The first slot is the next one.",
        parameters=[IDEMPOTENCY_KEY],
        request=ScheduleRequestSerializer,
        examples=[example(_EXAMPLE)],
        responses={201: answer(ScheduleSerializer, "The schedule."), **problems(400, 404, 409, 415, 422)},
        tags=["schedules"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)

        def make() -> Answer:
            values = _read(body)
            missing = [name for name in ("name", "cron", "request") if name not in values]
            if missing:
                told = "evaluation" if missing[0] == "request" else missing[0]
                raise invalid(f"{told} is missing.", told)
            made = schedules.create(self.workspace, Settings(**values), now=timezone.now())
            location = request.build_absolute_uri(f"/api/v1/schedules/{made.id}")
            return Answer(status=201, body=as_json(_shown(made)), location=location)

        return self.once(make, body=body)


class ScheduleView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.SCHEDULES, "DELETE": Scope.SCHEDULES}

    @extend_schema(
        operation_id="schedules_read",
        summary="Read a schedule",
        parameters=[_ID],
        responses={200: answer(ScheduleSerializer, "The schedule."), **problems(404)},
        tags=["schedules"],
    )
    def get(self, request: Request, schedule_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(_shown(queries.get_schedule(self.workspace, schedule_id)))

    @extend_schema(
        operation_id="schedules_change",
        summary="Change a schedule",
        description="From the next slot on; what has run keeps what it ran with.",
        parameters=[_ID],
        request=ScheduleChangeSerializer,
        examples=[example({"cron": "30 4 * * 1-5", "enabled": True})],
        responses={200: answer(ScheduleSerializer, "As it is now."), **problems(400, 404, 409, 415, 422)},
        tags=["schedules"],
    )
    def patch(self, request: Request, schedule_id: str) -> Response:
        schedule = queries.get_schedule(self.workspace, schedule_id)
        changes = _read(read_object(request, known=_FIELDS))
        return Response(_shown(schedules.update(schedule, changes=changes, now=timezone.now())))

    @extend_schema(
        operation_id="schedules_delete",
        summary="Delete a schedule with its history",
        description="The evaluations it started stay.",
        parameters=[_ID],
        responses={204: answer(None, "It is gone."), **problems(404)},
        tags=["schedules"],
    )
    def delete(self, request: Request, schedule_id: str) -> Response:  # noqa: ARG002  the framework's signature
        schedules.delete(queries.get_schedule(self.workspace, schedule_id), now=timezone.now())
        return Response(status=204)


class ScheduleRunNowView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="schedules_run_now",
        summary="Run a schedule now",
        description="Its slots stay as they are. 409 while its last evaluation runs.",
        parameters=[_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={202: answer(FiringSerializer, "What was started."), **problems(404, 409, 422)},
        tags=["schedules"],
    )
    def post(self, request: Request, schedule_id: str) -> Response:
        schedule = queries.get_schedule(self.workspace, schedule_id)

        def make() -> Answer:
            firing = schedules.run_now(schedule, now=timezone.now())
            location = request.build_absolute_uri(f"/api/v1/evaluations/{firing.evaluation_id}")
            return Answer(
                status=202, body=as_json(FiringSerializer(queries.firing_row(firing)).data), location=location
            )

        return self.once(make, body={})


class ScheduleHistoryView(Endpoint):
    @extend_schema(
        operation_id="schedules_history",
        summary="What came of each slot, the latest first",
        parameters=[_ID, *PAGING],
        responses={200: answer(page_of(FiringSerializer, name="Firing"), "A page."), **problems(404, 422)},
        tags=["schedules"],
    )
    def get(self, request: Request, schedule_id: str) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.history_of(queries.get_schedule(self.workspace, schedule_id))
        return self.page(
            found, lambda rows: FiringSerializer([queries.firing_row(one) for one in rows], many=True).data
        )


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, each of its kind."""
    kinds: dict[str, tuple[type, str]] = {
        "name": (str, "a text"),
        "cron": (str, "a text of five fields, such as 0 2 * * *"),
        "time_zone": (str, "a name such as Europe/Berlin"),
        "enabled": (bool, "true or false"),
        "grace_seconds": (int, "a whole number"),
        "evaluation": (dict, "an object: the body of POST evaluations"),
    }
    for name, value in body.items():
        kind, said = kinds[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise invalid(f"{name} is {said}.", name)
    return {"request" if name == "evaluation" else name: value for name, value in body.items()}


def _shown(schedule: Schedule) -> Any:
    return ScheduleSerializer(queries.rows([schedule])[0]).data
