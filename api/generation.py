"""`question-sets/generate` and `generations`: questions made from documents, followed, stopped, put into a set."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, read_object
from api.generation_shapes import (
    GenerateRequestSerializer,
    GenerationSerializer,
    IntoSetSerializer,
    RatesListSerializer,
)
from api.question_sets import shown_set
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from api.set_shapes import QuestionSetSerializer
from backend.models import Generation, Scope
from backend.queries import generation as queries
from backend.services import drafts, generation
from backend.services.idempotency import Answer

_ID = path("generation_id", "The generation's id.")
_FIELDS = tuple(GenerateRequestSerializer().fields)


class GenerateView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="question_sets_generate",
        summary="Make questions from documents",
        description="Answers at once; drafts appear one after another. A person accepts, edits or rejects them.",
        parameters=[IDEMPOTENCY_KEY],
        request=GenerateRequestSerializer,
        examples=[example({"knowledge_base": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11", "llm": "openai:gpt-4o-mini"})],
        responses={202: answer(GenerationSerializer, "It has begun."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["generation"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)
        wanted = generation.parse(body)

        def begin() -> Answer:
            made = generation.start(self.workspace, wanted, created_by=self.caller.id)
            return Answer(status=202, body=_body(made), location=_location(request, made))

        return self.once(begin, body=body)


class GenerationsView(Endpoint):
    @extend_schema(
        operation_id="generations_list",
        summary="List generations, newest first",
        parameters=PAGING,
        responses={200: answer(page_of(GenerationSerializer, name="Generation"), "A page."), **problems(422)},
        tags=["generation"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(
            queries.of(self.workspace),
            lambda rows: GenerationSerializer([queries.row(one) for one in rows], many=True).data,
        )


class GenerationView(Endpoint):
    @extend_schema(
        operation_id="generations_read",
        summary="Follow a generation",
        parameters=[_ID],
        responses={200: answer(GenerationSerializer, "As it is now."), **problems(404)},
        tags=["generation"],
    )
    def get(self, request: Request, generation_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(_body(queries.get_generation(self.workspace, generation_id)))


class GenerationCancelView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="generations_cancel",
        summary="Stop a generation",
        description="What was made stays; what was not asked for stays open, for a retry.",
        parameters=[_ID],
        request=None,
        responses={202: answer(GenerationSerializer, "It is stopping, or has stopped."), **problems(404, 409)},
        tags=["generation"],
    )
    def post(self, request: Request, generation_id: str) -> Response:
        made = generation.cancel(self.workspace, generation_id)
        return Response(_body(made), status=202, headers={"Location": _location(request, made)})


class GenerationRetryView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="generations_retry",
        summary="Ask again what is open or failed",
        parameters=[_ID],
        request=None,
        responses={202: answer(GenerationSerializer, "It goes on."), **problems(404, 409, 422)},
        tags=["generation"],
    )
    def post(self, request: Request, generation_id: str) -> Response:
        made = generation.retry(self.workspace, generation_id, created_by=self.caller.id)
        return Response(_body(made), status=202, headers={"Location": _location(request, made)})


class GenerationSetView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="generations_into_set",
        summary="Put the accepted drafts into a question set",
        description=(
            "Those that are in none yet. Labels are documents with a snippet of their text, near-twins are "
            "alternatives; the questions stay marked as generated in every later version."
        ),
        parameters=[_ID, IDEMPOTENCY_KEY],
        request=IntoSetSerializer,
        examples=[example({"name": "made from the handbook"})],
        responses={201: answer(QuestionSetSerializer, "The set."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["generation"],
    )
    def post(self, request: Request, generation_id: str) -> Response:
        body = read_object(request, known=("name", "question_set"))
        queries.get_generation(self.workspace, generation_id)

        def put() -> Answer:
            version = drafts.put_into_set(
                self.workspace,
                generation_id,
                name=str(body.get("name") or ""),
                question_set=str(body.get("question_set") or ""),
            )
            found = version.question_set
            return Answer(
                status=201,
                body=as_json(shown_set(found, version)),
                location=request.build_absolute_uri(f"/api/v1/question-sets/{found.id}"),
            )

        return self.once(put, body=body)


class GenerationRatesView(Endpoint):
    @extend_schema(
        operation_id="generation_rates",
        summary="How each wording did",
        description="Drafts by model and prompt version: how many were accepted, edited, rejected, dropped, failed.",
        responses={200: answer(RatesListSerializer, "The most used first."), **problems()},
        tags=["generation"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return Response(RatesListSerializer({"results": queries.rates(self.workspace)}).data)


def _body(made: Generation) -> Any:
    return as_json(GenerationSerializer(queries.row(made)).data)


def _location(request: Request, made: Generation) -> str:
    return request.build_absolute_uri(f"/api/v1/generations/{made.id}")
