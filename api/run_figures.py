"""`runs/{id}/slices` and `…/arithmetic`: a run's figures by tag, and one question's term by term."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint
from api.enums import OUTCOMES
from api.run_shapes import MetricSerializer
from api.schema import answer, path, problems, query
from backend.queries import arithmetic, tag_figures
from backend.queries import runs as queries

_ID = path("run_id", "The run's id.")


class GroupSerializer(serializers.Serializer[Any]):
    """Questions of one tag; a question counts under each of its tags."""

    tag = serializers.CharField(allow_blank=True)
    n_questions = serializers.IntegerField()
    n_scored = serializers.IntegerField()
    n_eligible = serializers.IntegerField()
    n_error = serializers.IntegerField()
    metrics = serializers.DictField(child=MetricSerializer())


class FailedSerializer(serializers.Serializer[Any]):
    ordinal = serializers.IntegerField()
    key = serializers.CharField()
    question = serializers.CharField(allow_blank=True)
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    first_rank = serializers.IntegerField(allow_null=True)


class MustPassSerializer(serializers.Serializer[Any]):
    """Found within the primary metric's `k`. `failed`: the first hundred that were not, or not scored."""

    k = serializers.IntegerField()
    n = serializers.IntegerField()
    n_found = serializers.IntegerField()
    failed = FailedSerializer(many=True)


class UnanswerableSerializer(serializers.Serializer[Any]):
    """`share` of those asked returned nothing above `min_score`; null where the configuration has none."""

    n = serializers.IntegerField()
    n_asked = serializers.IntegerField()
    n_silent = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True)


class SlicesSerializer(serializers.Serializer[Any]):
    """`untagged`: the questions without a tag, if there are any."""

    metrics = serializers.ListField(child=serializers.CharField())
    n_tags = serializers.IntegerField()
    by_tag = GroupSerializer(many=True)
    untagged = GroupSerializer(allow_null=True)
    must_pass = MustPassSerializer()
    unanswerable = UnanswerableSerializer()


class TermSerializer(serializers.Serializer[Any]):
    """`term` is gain x discount; `key` and `path` say what is at that rank (empty in the ideal order)."""

    rank = serializers.IntegerField()
    key = serializers.CharField(allow_blank=True)
    path = serializers.CharField(allow_blank=True)
    gain = serializers.FloatField()
    discount = serializers.FloatField()
    term = serializers.FloatField()


class ArithmeticSerializer(serializers.Serializer[Any]):
    """`value` = the sum of the terms / `denominator`; null where there is none (`excluded`, `outcome`)."""

    ordinal = serializers.IntegerField()
    key = serializers.CharField()
    question = serializers.CharField(allow_null=True)
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    metric = serializers.CharField()
    formula = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    denominator = serializers.FloatField(allow_null=True)
    terms = TermSerializer(many=True)
    ideal = TermSerializer(many=True)
    grades = serializers.ListField(child=serializers.FloatField())
    threshold = serializers.FloatField(allow_null=True)
    excluded = serializers.CharField(allow_blank=True)


class RunSlicesView(Endpoint):
    @extend_schema(
        operation_id="runs_slices",
        summary="A run's figures by tag",
        description="And those of the `must_pass` and of the unanswerable questions.",
        parameters=[
            _ID,
            query("metrics", "Up to eight keys, commas between. Default: the primary one, hit and recall at its k."),
        ],
        responses={200: answer(SlicesSerializer, "The figures."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:
        run = queries.get_run(self.workspace, run_id)
        wanted = [one.strip() for one in request.query_params.get("metrics", "").split(",") if one.strip()]
        return Response(SlicesSerializer(tag_figures.of(run, metrics=wanted)).data)


class ArithmeticView(Endpoint):
    @extend_schema(
        operation_id="runs_arithmetic",
        summary="How a metric of one question came about",
        parameters=[
            _ID,
            path("question", "Its key, else its number counted from 0."),
            query("metric", "Such as ndcg@10. Default: the run's primary metric."),
        ],
        responses={200: answer(ArithmeticSerializer, "Term by term."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str, question: str) -> Response:
        run = queries.get_run(self.workspace, run_id)
        told = arithmetic.explain(run, question, metric=request.query_params.get("metric", ""))
        sums = told.arithmetic
        shown = {name: getattr(told, name) for name in told.__slots__ if name not in {"arithmetic", "paths"}}
        shown |= {
            "value": None if sums is None else sums.value,
            "denominator": None if sums is None or sums.value is None else sums.denominator,
        }
        for name in ("terms", "ideal"):
            terms = () if sums is None else getattr(sums, name)
            shown[name] = [{**asdict(term), "path": told.paths.get(term.key, "")} for term in terms]
        return Response(ArithmeticSerializer(shown).data)
