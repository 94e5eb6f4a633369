"""`evaluations`: submitted, followed, cancelled, tried again."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.evaluation_request import EXAMPLE, EvaluationRequestSerializer
from api.run_shapes import (
    EvaluationDetailSerializer,
    EvaluationSerializer,
    ProgressSerializer,
    WaitingForSerializer,
)
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.models import Evaluation, Scope
from backend.queries import evaluations as queries
from backend.queries.evaluations import EvaluationDetail, Look
from backend.queries.lookups import as_uuid
from backend.services import evaluations, submissions
from backend.services.idempotency import Answer

_ID = path("evaluation_id", "The evaluation's id.")


class EvaluationsView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.EVALUATE}

    @extend_schema(
        operation_id="evaluations_list",
        summary="List evaluations, newest first",
        parameters=PAGING,
        responses={200: answer(page_of(EvaluationSerializer, name="Evaluation"), "A page."), **problems(422)},
        tags=["evaluations"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        now = timezone.now()
        return self.page(
            queries.of(self.workspace),
            lambda rows: EvaluationSerializer([queries.row(one, now=now) for one in rows], many=True).data,
        )

    @extend_schema(
        operation_id="evaluations_create",
        summary="Submit an evaluation",
        description="Answers at once; the questions are asked in the background. Poll the `Location`.",
        parameters=[IDEMPOTENCY_KEY],
        request=EvaluationRequestSerializer,
        examples=[example(EXAMPLE)],
        responses={
            202: answer(EvaluationDetailSerializer, "Accepted: the evaluation and its runs."),
            **problems(400, 404, 409, 413, 415, 422),
        },
        tags=["evaluations"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request)
        wanted = submissions.parse(body)

        def submit() -> Answer:
            made = evaluations.start(self.workspace, wanted, now=timezone.now())
            seen = queries.look(self.workspace, made.id)
            return Answer(
                status=202,
                body=as_json(_detail(seen)),
                location=request.build_absolute_uri(f"{request.path}/{made.id}"),
            )

        return self.once(submit, body=body)


class EvaluationView(Endpoint):
    @extend_schema(
        operation_id="evaluations_read",
        summary="Follow an evaluation",
        description=(
            "State, progress and the runs with their numbers so far. The answer carries an ETag; with "
            "`If-None-Match` it is 304 while nothing has changed."
        ),
        parameters=[_ID],
        responses={
            200: answer(EvaluationDetailSerializer, "As it is now."),
            304: answer(None, "Nothing has changed since that ETag."),
            **problems(404),
        },
        tags=["evaluations"],
    )
    def get(self, request: Request, evaluation_id: str) -> Response:
        seen = queries.look(self.workspace, evaluation_id)
        headers = {"ETag": f'W/"{seen.tag}"', "Cache-Control": "private, no-cache"}
        if _is_known(request, seen):
            return Response(status=304, headers=headers)
        told = queries.detail(seen, now=timezone.now())
        if not told.is_current:
            # Whoever asks again gets the numbers of the rows that this tag is of.
            del headers["ETag"]
        return Response(_shown(told), headers=headers)


class EvaluationCancelView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.EVALUATE}

    @extend_schema(
        operation_id="evaluations_cancel",
        summary="Stop an evaluation",
        description="No new question starts; those that are finished are kept, and counted when it has stopped.",
        parameters=[_ID],
        request=None,
        responses={202: answer(EvaluationDetailSerializer, "It is stopping."), **problems(404, 409)},
        tags=["evaluations"],
    )
    def post(self, request: Request, evaluation_id: str) -> Response:
        moved = evaluations.cancel(self.workspace, as_uuid(evaluation_id, what="evaluation"))
        return _accepted(request, moved, self)


class RetrySerializer(serializers.Serializer[Any]):
    allow_changed_corpus = serializers.BooleanField(default=False)


class EvaluationRetryView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.EVALUATE}

    @extend_schema(
        operation_id="evaluations_retry",
        summary="Ask again what has no good result",
        description=(
            "Only the (run, question) pairs without one, under the same plan. 409 when the documents have changed "
            "since, unless `allow_changed_corpus`."
        ),
        parameters=[_ID],
        request=RetrySerializer,
        examples=[example({"allow_changed_corpus": False})],
        responses={202: answer(EvaluationDetailSerializer, "It runs again."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["evaluations"],
    )
    def post(self, request: Request, evaluation_id: str) -> Response:
        allowed = read_object(request, known=("allow_changed_corpus",)).get("allow_changed_corpus", False)
        if not isinstance(allowed, bool):
            raise invalid("allow_changed_corpus is true or false.", "allow_changed_corpus")
        key = as_uuid(evaluation_id, what="evaluation")
        moved = evaluations.retry(self.workspace, key, now=timezone.now(), allow_changed_corpus=allowed)
        return _accepted(request, moved, self)


def _detail(seen: Look) -> dict[str, Any]:
    return _shown(queries.detail(seen, now=timezone.now()))


def _shown(told: EvaluationDetail) -> dict[str, Any]:
    """An EvaluationDetailSerializer's data."""
    return {
        **EvaluationSerializer(told.evaluation).data,
        "progress": ProgressSerializer(told.progress).data,
        "eta_seconds": told.eta_seconds,
        "questions_per_second": told.questions_per_second,
        "waiting_for": WaitingForSerializer(told.waiting_for, many=True).data,
    }


def _accepted(request: Request, moved: Evaluation, view: Endpoint) -> Response:
    seen = queries.look(view.workspace, moved.id)
    location = request.build_absolute_uri(request.path.rsplit("/", 1)[0])
    return Response(_detail(seen), status=202, headers={"Location": location})


def _is_known(request: Request, seen: Look) -> bool:
    given = {tag.strip().removeprefix("W/").strip('"') for tag in request.headers.get("If-None-Match", "").split(",")}
    return seen.tag in given or "*" in given
