"""`runs/{id}/rescore`: stored rankings scored by other rules, without a search."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.enums import LEVELS
from api.jobs import JOB_ACCEPTED, accepted
from api.run_shapes import RunSerializer
from api.schema import IDEMPOTENCY_KEY, answer, example, path, problems
from backend.models import Scope
from backend.queries import runs as queries
from backend.queries.lookups import as_uuid
from backend.services import long_jobs, rescoring
from backend.services.idempotency import Answer

_TEXTS = ("level", "primary_metric", "label")
_FIELDS = ("version", "threshold", "top_k", "k", "metrics", *_TEXTS)


class RescoreRequestSerializer(serializers.Serializer[Any]):
    """What is to differ; the rest is the run's own. `version`: a number of the run's set, or `id@version`. `metrics`
    are further keys, such as `ndcg(gain=exp)@10`."""

    version = serializers.CharField(required=False)
    level = serializers.ChoiceField(choices=LEVELS, required=False)
    threshold = serializers.FloatField(required=False)
    top_k = serializers.IntegerField(required=False, min_value=1)
    k = serializers.JSONField(required=False, help_text="A number or a list of numbers, at most top_k.")
    primary_metric = serializers.CharField(required=False)
    metrics = serializers.ListField(child=serializers.CharField(), required=False)
    label = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of ours, not the base class's


class RescoreView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.EVALUATE}

    @extend_schema(
        operation_id="runs_rescore",
        summary="Score a run again by other rules",
        description=(
            "A new run over the stored rankings: other cuts, level, threshold or metrics, or another version. "
            "Nothing is searched. What the rankings cannot answer is refused, with the number of questions; questions "
            "that the run did not ask are `not_run`. Over 5,000 questions it is a job, whose `result.run` is the new "
            "run."
        ),
        parameters=[path("run_id", "The run's id."), IDEMPOTENCY_KEY],
        request=RescoreRequestSerializer,
        examples=[example({"top_k": 5, "threshold": 2, "version": "3"})],
        responses={
            201: answer(RunSerializer, "The new run."),
            202: JOB_ACCEPTED,
            **problems(400, 404, 409, 415, 422),
        },
        tags=["runs"],
    )
    def post(self, request: Request, run_id: str) -> Response:
        body = read_object(request, known=_FIELDS)
        wanted = _read(body)
        source = as_uuid(run_id, what="run")
        found = queries.get_run(self.workspace, source)
        is_long = long_jobs.is_long(found.evaluation.n_questions)

        def make() -> Answer:
            if is_long:
                job = long_jobs.start_rescore(self.workspace, found, wanted, created_by=self.caller.id)
                return accepted(request, job)
            made = rescoring.rescore(self.workspace, source, wanted, now=timezone.now())
            row = RunSerializer(queries.row(queries.get_run(self.workspace, made.id))).data
            return Answer(status=201, body=as_json(row), location=request.build_absolute_uri(f"/api/v1/runs/{made.id}"))

        return self.once(make, body=body)


def _read(body: dict[str, Any]) -> rescoring.Request:
    for name in _TEXTS:
        if not isinstance(body.get(name, ""), str):
            raise invalid(f"{name} is a text.", name)
    version, threshold, metrics = body.get("version", ""), body.get("threshold"), body.get("metrics", [])
    if isinstance(version, bool) or not isinstance(version, str | int):
        raise invalid("version is a number of the run's set, or id@version.", "version")
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        raise invalid("threshold is a number above 0.", "threshold")
    if not isinstance(metrics, list) or not all(isinstance(one, str) for one in metrics):
        raise invalid("metrics is a list of keys such as ndcg(gain=exp)@10.", "metrics")
    cuts = body.get("k")
    if cuts is not None and not all(_is_whole(one) for one in (cuts if isinstance(cuts, list) else [cuts])):
        raise invalid("k is a whole number from 1 on, or a list of them.", "k")
    if len(body.get("label", "")) > 200:
        raise invalid("label is a text of at most 200 characters.", "label")
    return rescoring.Request(
        version=str(version),
        level=body.get("level", ""),
        threshold=threshold,
        top_k=body.get("top_k"),
        k=body.get("k"),
        primary_metric=body.get("primary_metric", ""),
        metrics=metrics,
        label=body.get("label", ""),
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
