"""`comparisons`: did a change help, question by question."""

from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_object
from api.jobs import JOB_ACCEPTED, accepted
from api.run_shapes import RunSerializer
from api.schema import IDEMPOTENCY_KEY, answer, example, problems
from backend.core.comparison import Verdict
from backend.core.comparison.verdicts import DEFAULT_MARGIN
from backend.models import Scope
from backend.queries import comparisons as queries
from backend.services import long_jobs

_FIELDS = ("baseline", "candidates", "primary_metric", "margin")
_EXAMPLE = {
    "baseline": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11",
    "candidates": ["0192f0d0-6a5e-7c3e-9d55-2a1f6e1b7c12"],
    "primary_metric": "mrr@10",
}


class ComparisonRequestSerializer(serializers.Serializer[Any]):
    """Runs by id. `primary_metric` carries the verdict: the baseline's own unless given. `margin`: how small a
    difference counts as none (0.05)."""

    baseline = serializers.UUIDField()
    candidates = serializers.ListField(child=serializers.UUIDField(), min_length=1)
    primary_metric = serializers.CharField(required=False)
    margin = serializers.FloatField(required=False)


class PairedSerializer(serializers.Serializer[Any]):
    """One metric over the `n` questions scored in both runs; `low` and `high` bound the mean delta (95 %)."""

    metric = serializers.CharField()
    n = serializers.IntegerField()
    n_dropped = serializers.IntegerField()
    baseline_mean = serializers.FloatField(allow_null=True)
    candidate_mean = serializers.FloatField(allow_null=True)
    mean_delta = serializers.FloatField(allow_null=True)
    relative = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    sd = serializers.FloatField(allow_null=True)
    n_wins = serializers.IntegerField()
    n_ties = serializers.IntegerField()
    n_losses = serializers.IntegerField()


class TagDeltaSerializer(PairedSerializer):
    """The primary metric over the questions of one tag; the verdict is the whole set's."""

    tag = serializers.CharField()


class DeltaSerializer(serializers.Serializer[Any]):
    """One question. `question` is null where the set was deleted."""

    key = serializers.CharField()
    question = serializers.CharField(allow_null=True)
    baseline = serializers.FloatField()
    candidate = serializers.FloatField()
    delta = serializers.FloatField()


class TransitionsSerializer(serializers.Serializer[Any]):
    """`counts[i][j]`: questions in band `labels[i]` in the baseline and `labels[j]` in the candidate."""

    labels = serializers.ListField(child=serializers.CharField())
    counts = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    n_up = serializers.IntegerField()
    n_down = serializers.IntegerField()
    n_same = serializers.IntegerField()


class CandidateSerializer(serializers.Serializer[Any]):
    """One candidate against the baseline; nothing but the verdict where the two are not comparable."""

    run = RunSerializer()
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    sentence = serializers.CharField()
    p = serializers.FloatField(allow_null=True)
    adjusted_p = serializers.FloatField(allow_null=True)
    n_needed = serializers.IntegerField(allow_null=True)
    primary = PairedSerializer(allow_null=True)
    others = PairedSerializer(many=True)
    by_tag = TagDeltaSerializer(many=True)
    transitions = TransitionsSerializer(allow_null=True)
    deltas = DeltaSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())


class ComparisonSerializer(serializers.Serializer[Any]):
    """`seed` and `margin` repeat it."""

    baseline = RunSerializer()
    primary_metric = serializers.CharField()
    seed = serializers.IntegerField()
    margin = serializers.FloatField()
    candidates = CandidateSerializer(many=True)


class ComparisonsView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="comparisons_create",
        summary="Compare runs question by question",
        description=(
            "The primary metric alone carries a verdict, from a paired test over the questions scored in both runs "
            "(Holm's adjustment over the candidates). Nothing is searched. Over 5,000 questions it is a job, whose "
            "file is the answer."
        ),
        parameters=[IDEMPOTENCY_KEY],
        request=ComparisonRequestSerializer,
        examples=[example(_EXAMPLE)],
        responses={
            200: answer(ComparisonSerializer, "The comparison."),
            202: JOB_ACCEPTED,
            **problems(400, 404, 409, 415, 422),
        },
        tags=["runs"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)
        candidates = body.get("candidates")
        if not isinstance(body.get("baseline"), str) or not isinstance(candidates, list):
            raise invalid("baseline is a run's id, candidates a list of them.", "candidates")
        primary, margin = body.get("primary_metric") or "", body.get("margin", DEFAULT_MARGIN)
        if not isinstance(primary, str):
            raise invalid("primary_metric is a text such as mrr@10.", "primary_metric")
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin < 1:
            raise invalid("margin is a number above 0 and below 1.", "margin")
        wanted = {
            "baseline": body["baseline"],
            "candidates": candidates,
            "primary_metric": primary,
            "margin": margin,
        }
        asked = queries.check(self.workspace, **wanted)
        if long_jobs.is_long(asked.n_questions):
            begin = partial(long_jobs.start_comparison, self.workspace, asked, created_by=self.caller.id)
            return self.once(lambda: accepted(request, begin()), body=body)
        return Response(long_jobs.comparison_as_json(queries.compare(self.workspace, **wanted)))
