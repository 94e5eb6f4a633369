"""`alerts` and `alert-targets`: what people have to know, and who is told."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.enums import ALERT_KINDS, ALERT_STATES, DELIVERY_STATES, TARGET_KINDS
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems, query
from backend.core.alerts import TargetKind
from backend.models import Scope
from backend.queries import alerts as queries
from backend.services import alert_targets, alerts, webhooks
from backend.services.idempotency import Answer

_ALERT = path("alert_id", "The alert's id.")
_TARGET = path("target_id", "The target's id.")
MAX_NAME = 200


class DeliverySerializer(serializers.Serializer[Any]):
    """One message to one target. `id` is what a webhook's receiver sees as Touchstone-Delivery."""

    id = serializers.UUIDField()
    target = serializers.UUIDField()
    target_name = serializers.CharField()
    event = serializers.CharField()
    state = serializers.ChoiceField(choices=DELIVERY_STATES)
    n_attempts = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class AlertSerializer(serializers.Serializer[Any]):
    """`because`: what changed since it was well, `causes` the same by run in numbers. `lost`: question ids. `recovery`
    says how it ended."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=ALERT_KINDS)
    state = serializers.ChoiceField(choices=ALERT_STATES)
    title = serializers.CharField()
    sentences = serializers.ListField(child=serializers.CharField())
    because = serializers.ListField(child=serializers.CharField())
    causes = serializers.DictField()
    lost = serializers.ListField(child=serializers.CharField())
    recovery = serializers.CharField(allow_blank=True)
    schedule = serializers.UUIDField(allow_null=True)
    schedule_name = serializers.CharField(allow_blank=True)
    gate = serializers.UUIDField(allow_null=True)
    gate_name = serializers.CharField(allow_blank=True)
    evaluation = serializers.UUIDField(allow_null=True)
    opened_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(allow_null=True)
    deliveries = DeliverySerializer(many=True)


class TargetSerializer(serializers.Serializer[Any]):
    """`with_texts`: the texts of lost questions may be sent there; without, their ids alone."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=TARGET_KINDS)
    address = serializers.CharField()
    with_texts = serializers.BooleanField()
    enabled = serializers.BooleanField()
    last = DeliverySerializer(allow_null=True)
    created_at = serializers.DateTimeField()


class TargetRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME)
    kind = serializers.ChoiceField(choices=TARGET_KINDS)
    address = serializers.CharField(max_length=alert_targets.MAX_ADDRESS)
    with_texts = serializers.BooleanField(default=False)
    enabled = serializers.BooleanField(default=True)


class TargetChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME, required=False)
    address = serializers.CharField(max_length=alert_targets.MAX_ADDRESS, required=False)
    with_texts = serializers.BooleanField(required=False)
    enabled = serializers.BooleanField(required=False)


class SecretRequestSerializer(serializers.Serializer[Any]):
    """`new`: another secret from now on; the one before signs nothing more."""

    new = serializers.BooleanField(default=False)


class SecretSerializer(serializers.Serializer[Any]):
    """What a webhook's signatures are checked with (docs/nightly.md)."""

    secret = serializers.CharField()


class AlertsView(Endpoint):
    @extend_schema(
        operation_id="alerts_list",
        summary="List alerts, newest first",
        parameters=[query("state", "Only these.", enum=ALERT_STATES), *PAGING],
        responses={200: answer(page_of(AlertSerializer, name="Alert"), "A page."), **problems(422)},
        tags=["alerts"],
    )
    def get(self, request: Request) -> Response:
        state = request.query_params.get("state", "")
        if state and state not in ALERT_STATES:
            raise invalid(f"state is {' or '.join(ALERT_STATES)}, not {state!r}.", "state")
        found = queries.of(self.workspace, state=state)
        return self.page(found, lambda rows: AlertSerializer([queries.row(one) for one in rows], many=True).data)


class AlertView(Endpoint):
    @extend_schema(
        operation_id="alerts_read",
        summary="Read an alert",
        parameters=[_ALERT],
        responses={200: answer(AlertSerializer, "The alert."), **problems(404)},
        tags=["alerts"],
    )
    def get(self, request: Request, alert_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(AlertSerializer(queries.row(queries.get_alert(self.workspace, alert_id))).data)


class TargetsView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="alert_targets_list",
        summary="List who is told of alerts",
        parameters=PAGING,
        responses={200: answer(page_of(TargetSerializer, name="AlertTarget"), "A page."), **problems(422)},
        tags=["alerts"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.targets_of(self.workspace)
        return self.page(found, lambda rows: TargetSerializer(queries.target_rows(rows), many=True).data)

    @extend_schema(
        operation_id="alert_targets_create",
        summary="Add an e-mail address or a webhook",
        description="A webhook's secret is told by `POST alert-targets/{id}/secret`.",
        parameters=[IDEMPOTENCY_KEY],
        request=TargetRequestSerializer,
        examples=[example({"name": "chat", "kind": "webhook", "address": "https://hooks.example.org/touchstone"})],
        responses={201: answer(TargetSerializer, "The target."), **problems(400, 409, 415, 422)},
        tags=["alerts"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("name", "kind", "address", "with_texts", "enabled"))
        given = TargetRequestSerializer(data=body)
        given.is_valid(raise_exception=True)
        values = given.validated_data

        def make() -> Answer:
            made = alert_targets.create(self.workspace, **{**values, "kind": TargetKind(values["kind"])})
            location = request.build_absolute_uri(f"/api/v1/alert-targets/{made.id}")
            shown = TargetSerializer(queries.target_rows([made])[0]).data
            return Answer(status=201, body=as_json(shown), location=location)

        return self.once(make, body=body)


class TargetView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.SCHEDULES, "DELETE": Scope.SCHEDULES}

    @extend_schema(
        operation_id="alert_targets_read",
        summary="Read a target",
        parameters=[_TARGET],
        responses={200: answer(TargetSerializer, "The target."), **problems(404)},
        tags=["alerts"],
    )
    def get(self, request: Request, target_id: str) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.get_target(self.workspace, target_id)
        return Response(TargetSerializer(queries.target_rows([found])[0]).data)

    @extend_schema(
        operation_id="alert_targets_change",
        summary="Change a target",
        parameters=[_TARGET],
        request=TargetChangeSerializer,
        examples=[example({"enabled": False})],
        responses={200: answer(TargetSerializer, "As it is now."), **problems(400, 404, 409, 415, 422)},
        tags=["alerts"],
    )
    def patch(self, request: Request, target_id: str) -> Response:
        target = queries.get_target(self.workspace, target_id)
        given = TargetChangeSerializer(data=read_object(request, known=("name", "address", "with_texts", "enabled")))
        given.is_valid(raise_exception=True)
        changed = alert_targets.update(target, changes=given.validated_data)
        return Response(TargetSerializer(queries.target_rows([changed])[0]).data)

    @extend_schema(
        operation_id="alert_targets_delete",
        summary="Delete a target",
        description="Messages to it that have not arrived are dropped.",
        parameters=[_TARGET],
        responses={204: answer(None, "It is gone."), **problems(404)},
        tags=["alerts"],
    )
    def delete(self, request: Request, target_id: str) -> Response:  # noqa: ARG002  the framework's signature
        queries.get_target(self.workspace, target_id).delete()
        return Response(status=204)


class TargetTestView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="alert_targets_test",
        summary="Send a message of no consequence",
        description="Whether it arrived is in the target's `last`.",
        parameters=[_TARGET, IDEMPOTENCY_KEY],
        request=None,
        responses={202: answer(DeliverySerializer, "It is on its way."), **problems(404, 409, 422)},
        tags=["alerts"],
    )
    def post(self, request: Request, target_id: str) -> Response:  # noqa: ARG002  the framework's signature
        target = queries.get_target(self.workspace, target_id)

        def make() -> Answer:
            sent = alerts.send_test(target, now=timezone.now())
            return Answer(status=202, body=as_json(DeliverySerializer(queries.delivery_row(sent)).data), location="")

        return self.once(make, body={})


class TargetSecretView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="alert_targets_secret",
        summary="The secret that a webhook's signatures are checked with",
        parameters=[_TARGET],
        request=SecretRequestSerializer,
        examples=[example({"new": False})],
        responses={200: answer(SecretSerializer, "The secret."), **problems(400, 404, 415, 422)},
        tags=["alerts"],
    )
    def post(self, request: Request, target_id: str) -> Response:
        target = queries.get_target(self.workspace, target_id)
        given = SecretRequestSerializer(data=read_object(request, known=("new",)))
        given.is_valid(raise_exception=True)
        if target.kind != TargetKind.WEBHOOK:
            raise invalid("An e-mail address has no secret.")
        if given.validated_data["new"]:
            target = alert_targets.update(target, changes={"new_secret": True})
        return Response({"secret": webhooks.secret_of(target)})
