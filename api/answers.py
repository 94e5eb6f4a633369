"""`runs/{id}/answers`: what was answered to each question, and how it was judged."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid
from api.enums import ANSWER_OUTCOMES
from api.schema import PAGING, answer, page_of, path, problems, query
from backend.queries import answers as queries
from backend.queries import runs


class AnswerReplySerializer(serializers.Serializer[Any]):
    """What a model wrote, as it wrote it. `ending`: complete, cut, refused or empty."""

    role = serializers.CharField(help_text="answer or judge")
    repeat = serializers.IntegerField()
    model = serializers.CharField(allow_blank=True)
    rung = serializers.CharField()
    ending = serializers.CharField()
    text = serializers.CharField(allow_blank=True)


class ClaimSerializer(serializers.Serializer[Any]):
    """A statement of the answer. It counts as supported when the judge says so and its quote is in a passage."""

    claim = serializers.CharField()
    verdict = serializers.ChoiceField(choices=["supported", "contradicted", "unsupported"])
    quote = serializers.CharField(allow_blank=True)
    is_quoted = serializers.BooleanField()


class AnswerPassageSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    passage = serializers.CharField()
    path = serializers.CharField()


class JudgedAnswerSerializer(serializers.Serializer[Any]):
    """Scores are in 0..1; null where there is nothing to score. `claims` has a list for each judgement."""

    question_key = serializers.CharField()
    ordinal = serializers.IntegerField()
    outcome = serializers.ChoiceField(choices=ANSWER_OUTCOMES)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    abstained = serializers.BooleanField()
    faithfulness = serializers.FloatField(allow_null=True)
    relevance = serializers.FloatField(allow_null=True)
    correctness = serializers.FloatField(allow_null=True)
    n_repeats = serializers.IntegerField()
    claims = serializers.ListField(child=ClaimSerializer(many=True))
    passages = AnswerPassageSerializer(many=True)
    replies = AnswerReplySerializer(many=True)
    units = serializers.DictField(child=serializers.FloatField())


class RunAnswersView(Endpoint):
    @extend_schema(
        operation_id="runs_answers",
        summary="The answers of a run, in question order",
        description="Where `evaluate_answers` was asked for. Questions without passages have none: they are skipped.",
        parameters=[
            path("run_id", "The run's id."),
            query("outcome", "Only answers that ended so.", enum=ANSWER_OUTCOMES),
            *PAGING,
        ],
        responses={200: answer(page_of(JudgedAnswerSerializer, name="Answer"), "A page."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:
        run = runs.get_run(self.workspace, run_id)
        outcome = request.query_params.get("outcome", "")
        if outcome and outcome not in ANSWER_OUTCOMES:
            raise invalid(f"outcome is one of {', '.join(ANSWER_OUTCOMES)}, not {outcome!r}.", "outcome")
        found = queries.of(run, outcome=outcome)
        return self.page(found, lambda rows: JudgedAnswerSerializer(rows, many=True).data, order=("ordinal", "id"))
