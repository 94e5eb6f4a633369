"""What the workspace may have, and what it has spent."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, read_object
from api.schema import answer, example, problems, query
from backend.models import Purpose, Scope
from backend.queries import spending
from backend.services import limits


class LimitsSerializer(serializers.Serializer[Any]):
    """In force. `own` names those that the workspace sets itself; the others are the installation's."""

    spend_per_month = serializers.DecimalField(max_digits=24, decimal_places=12, allow_null=True, normalize_output=True)
    open_evaluations = serializers.IntegerField()
    questions_in_flight = serializers.IntegerField()
    own = serializers.ListField(child=serializers.CharField())


class LimitChangesSerializer(serializers.Serializer[Any]):
    """Null gives a limit back to the installation's."""

    spend_per_month = serializers.DecimalField(
        max_digits=24, decimal_places=12, allow_null=True, required=False, min_value=0
    )
    open_evaluations = serializers.IntegerField(allow_null=True, required=False, min_value=1)
    questions_in_flight = serializers.IntegerField(allow_null=True, required=False, min_value=1)


class SpendLineSerializer(serializers.Serializer[Any]):
    """The calls of one provider for one purpose. `amount` is null where no price is known."""

    provider = serializers.CharField()
    purpose = serializers.ChoiceField(choices=[purpose.value for purpose in Purpose])
    n_calls = serializers.IntegerField()
    n_estimated = serializers.IntegerField(help_text="Calls with a unit that was counted here, not told.")
    units = serializers.DictField(child=serializers.FloatField())
    amount = serializers.DecimalField(max_digits=24, decimal_places=12, allow_null=True, normalize_output=True)


class SpendingSerializer(serializers.Serializer[Any]):
    month = serializers.CharField(help_text="In UTC, such as 2026-11.")
    currency = serializers.CharField()
    spent = serializers.DecimalField(max_digits=24, decimal_places=12, normalize_output=True)
    lines = SpendLineSerializer(many=True)


class LimitsView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.ADMIN}

    @extend_schema(
        operation_id="limits_read",
        summary="What the workspace may have",
        responses={200: answer(LimitsSerializer, "The limits in force."), **problems()},
        tags=["workspace"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return Response(LimitsSerializer(limits.of(self.workspace)).data)

    @extend_schema(
        operation_id="limits_change",
        summary="Change the workspace's limits",
        description=(
            "Money a month (UTC, in the currency of TOUCHSTONE_PRICES), evaluations that have not ended, questions "
            "begun and not ended. In force at once, for what is running as well."
        ),
        request=LimitChangesSerializer,
        examples=[example({"spend_per_month": "50.00", "open_evaluations": None})],
        responses={200: answer(LimitsSerializer, "The limits in force."), **problems(400, 413, 415, 422)},
        tags=["workspace"],
    )
    def patch(self, request: Request) -> Response:
        return Response(LimitsSerializer(limits.change(self.workspace, read_object(request))).data)


class SpendingView(Endpoint):
    @extend_schema(
        operation_id="spending_read",
        summary="What calls to providers have cost in a month",
        parameters=[query("month", "In UTC, such as 2026-11. The present month unless given.")],
        responses={200: answer(SpendingSerializer, "The month, by provider and purpose."), **problems(422)},
        tags=["workspace"],
    )
    def get(self, request: Request) -> Response:
        month = spending.parse_month(request.query_params.get("month"))
        return Response(SpendingSerializer(spending.of_month(self.workspace, month)).data)
