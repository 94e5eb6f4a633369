"""`evaluations/estimate`: what an evaluation would take."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, read_object
from api.evaluation_request import EXAMPLE, EvaluationRequestSerializer
from api.schema import answer, example, problems
from backend.models import Scope
from backend.services import estimates, submissions


class EstimatedPartSerializer(serializers.Serializer[Any]):
    """One embedder or reranker. `n_items` texts or pools, of which `n_cached` are known already (null: only the search
    can tell); `n_calls` at most. `minutes` at `limit_per_minute`; null where no limit is known. `cost` null: no price
    is known."""

    provider = serializers.CharField()
    n_items = serializers.IntegerField()
    n_cached = serializers.IntegerField(allow_null=True)
    n_calls = serializers.IntegerField()
    units = serializers.DictField(child=serializers.FloatField())
    limit_per_minute = serializers.IntegerField(allow_null=True)
    minutes = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)
    is_local = serializers.BooleanField()


class EstimateSerializer(serializers.Serializer[Any]):
    """`n_searches` counts legs, shared ones once. `minutes` is the longest wait for a limit, `cost` the sum of what has
    a price; `notes` say what is missing from them."""

    n_questions = serializers.IntegerField()
    n_runs = serializers.IntegerField()
    n_searches = serializers.IntegerField()
    embedders = EstimatedPartSerializer(many=True)
    rerankers = EstimatedPartSerializer(many=True)
    answers = EstimatedPartSerializer(many=True)
    minutes = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)
    currency = serializers.CharField()
    notes = serializers.ListField(child=serializers.CharField())


class EstimateView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="evaluations_estimate",
        summary="Say what an evaluation would take",
        description=(
            "The body of an evaluation. Searches, provider calls at most, what is cached, minutes at the key's limit, "
            "money by TOUCHSTONE_PRICES. Starts nothing and calls no provider."
        ),
        request=EvaluationRequestSerializer,
        examples=[example(EXAMPLE)],
        responses={200: answer(EstimateSerializer, "The estimate."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["evaluations"],
    )
    def post(self, request: Request) -> Response:
        wanted = submissions.parse(read_object(request))
        return Response(EstimateSerializer(estimates.of(self.workspace, wanted)).data)
