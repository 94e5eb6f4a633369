"""`runs/{id}/diagnosis` and `…/advice`: where questions were lost, and what could be done."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, read_whole
from api.schema import answer, path, problems, query
from backend.queries import results
from backend.queries import runs as queries
from backend.services import advising, diagnoses

_ID = path("run_id", "The run's id.")


class LossesSerializer(serializers.Serializer[Any]):
    """`causes` add up to `n_missed`; those with no question are left out."""

    n = serializers.IntegerField()
    n_missed = serializers.IntegerField()
    n_wrong_passage = serializers.IntegerField()
    causes = serializers.DictField(child=serializers.IntegerField())


class LiftSerializer(serializers.Serializer[Any]):
    n_up = serializers.IntegerField()
    n_down = serializers.IntegerField()
    n_unchanged = serializers.IntegerField()


class DiagnosisSerializer(serializers.Serializer[Any]):
    """`ceiling`: recall@k of the pool in perfect order, beside the `recall` that was reached; `lift`: what the reranker
    did, null without one. `corpus_changed`: labels are told as they resolve today."""

    k = serializers.IntegerField()
    overall = LossesSerializer()
    by_tag = serializers.DictField(child=LossesSerializer())
    ceiling = serializers.FloatField(allow_null=True)
    recall = serializers.FloatField(allow_null=True)
    mean_relevant = serializers.FloatField(allow_null=True)
    lift = LiftSerializer(allow_null=True)
    corpus_changed = serializers.BooleanField()


class AdviceSerializer(serializers.Serializer[Any]):
    """`id` is what scripts match on; `settings` are those the sentence speaks of."""

    id = serializers.CharField()
    sentence = serializers.CharField()
    strength = serializers.FloatField()
    settings = serializers.ListField(child=serializers.CharField())


class AdviceListSerializer(serializers.Serializer[Any]):
    advice = AdviceSerializer(many=True)


class RunDiagnosisView(Endpoint):
    @extend_schema(
        operation_id="runs_diagnosis",
        summary="Where a run's questions were lost",
        parameters=[_ID, query("k", "At which rank found and missed part. Default: the run's top_k.", type=int)],
        responses={200: answer(DiagnosisSerializer, "Over the set and by tag."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:
        run = queries.get_run(self.workspace, run_id)
        told = diagnoses.summarise(run, k=results.check_k(run, read_whole(request, "k")))
        shown = {name: getattr(told.summary, name) for name in told.summary.__slots__}
        return Response(DiagnosisSerializer({**shown, "corpus_changed": told.corpus_changed}).data)


class RunAdviceView(Endpoint):
    @extend_schema(
        operation_id="runs_advice",
        summary="What a run's figures advise",
        description="At most five, the strongest first; none where the figures do not carry any.",
        parameters=[_ID],
        responses={200: answer(AdviceListSerializer, "The advice."), **problems(404)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(AdviceListSerializer({"advice": advising.of(queries.get_run(self.workspace, run_id))}).data)
