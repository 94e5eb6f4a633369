"""`question-sets`: golden sets and their immutable versions."""

from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from api import set_bodies
from api.base import MIB, Endpoint, as_json, read_flag
from api.schema import FORCE, IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems, query
from api.set_shapes import (
    QuestionSerializer,
    QuestionSetRowSerializer,
    QuestionSetSerializer,
    SetRequestSerializer,
    SetUploadSerializer,
    VersionRequestSerializer,
    VersionSerializer,
    VersionUploadSerializer,
)
from backend.core.errors import ErrorCode
from backend.models import QuestionSet, QuestionSetVersion, Scope
from backend.queries import questions as queries
from backend.services import question_sets
from backend.services.idempotency import Answer

SET_ID = path("set_id", "The question set's id.")
VERSION = path("number", "The version's number, from 1.")
QUESTION_FILTERS = [
    query("tag", "Only questions with this tag."),
    query("source", "Only questions of this source."),
    query("collection", "Only questions of this collection."),
]
_QUESTIONS = [
    {"question": "How many days of leave do I get?", "expected": ["policies/leave.pdf"]},
    {"question": "Who approves a trip?", "expect": [{"document": "travel", "content_contains": ["line manager"]}]},
]


class SetEndpoint(Endpoint):
    """Takes a set as a file or in the body."""

    parser_classes = (JSONParser, MultiPartParser)
    max_body_bytes = settings.MAX_SET_BYTES + MIB
    too_large_code = ErrorCode.EVAL_TOO_LARGE


class QuestionSetsView(SetEndpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="question_sets_list",
        summary="List question sets, newest first",
        parameters=[query("name", "Only the one of exactly this name."), *PAGING],
        responses={200: answer(page_of(QuestionSetRowSerializer, name="QuestionSet"), "A page."), **problems(422)},
        tags=["question sets"],
    )
    def get(self, request: Request) -> Response:
        found = queries.sets_of(self.workspace)
        name = request.query_params.get("name")
        if name:
            found = found.filter(name=name)
        return self.page(found, lambda rows: QuestionSetRowSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="question_sets_create",
        summary="Make a question set",
        description="From a file in any known form, or from questions in the body. All faults are told together.",
        parameters=[IDEMPOTENCY_KEY],
        request={"application/json": SetRequestSerializer, "multipart/form-data": SetUploadSerializer},
        examples=[example({"name": "golden", "questions": _QUESTIONS})],
        responses={201: answer(QuestionSetSerializer, "It is there."), **problems(400, 409, 413, 415, 422)},
        tags=["question sets"],
    )
    def post(self, request: Request) -> Response:
        given = set_bodies.read(request, named=True)

        def make() -> Answer:
            version = question_sets.create(self.workspace, name=given.name, **given.arguments())
            made = version.question_set
            return Answer(
                status=201,
                body=as_json(shown_set(made, version)),
                location=request.build_absolute_uri(f"{request.path}/{made.id}"),
            )

        return self.once(make, body=given.fingerprint)


class QuestionSetView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.WRITE}

    @extend_schema(
        operation_id="question_sets_read",
        summary="Read a question set",
        parameters=[SET_ID],
        responses={200: answer(QuestionSetSerializer, "The set with its latest version."), **problems(404)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.get_set(self.workspace, set_id)
        return Response(shown_set(found, queries.get_version(found)))

    @extend_schema(
        operation_id="question_sets_delete",
        summary="Delete a question set with its versions",
        description="Runs outlive it, by name and fingerprint.",
        parameters=[SET_ID, FORCE],
        responses={204: answer(None, "It is gone."), **problems(404, 409, 422)},
        tags=["question sets"],
    )
    def delete(self, request: Request, set_id: str) -> Response:
        found = queries.get_set(self.workspace, set_id)
        question_sets.delete(found, force=read_flag(request, "force"))
        return Response(status=204)


class VersionsView(SetEndpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="versions_list",
        summary="List a set's versions, newest first",
        parameters=[SET_ID, *PAGING],
        responses={200: answer(page_of(VersionSerializer, name="Version"), "A page."), **problems(404, 422)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str) -> Response:  # noqa: ARG002  as above
        found = queries.get_set(self.workspace, set_id)
        return self.page(
            queries.versions_of(found), lambda rows: VersionSerializer(rows, many=True).data, order=("-number",)
        )

    @extend_schema(
        operation_id="versions_create",
        summary="Add a version",
        description="The same questions as the latest version make no new one: that one is the answer.",
        parameters=[SET_ID, IDEMPOTENCY_KEY],
        request={"application/json": VersionRequestSerializer, "multipart/form-data": VersionUploadSerializer},
        examples=[example({"questions": _QUESTIONS})],
        responses={201: answer(VersionSerializer, "The version."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["question sets"],
    )
    def post(self, request: Request, set_id: str) -> Response:
        found = queries.get_set(self.workspace, set_id)
        given = set_bodies.read(request, named=False)

        def make() -> Answer:
            version = question_sets.add_version(found, **given.arguments())
            return Answer(
                status=201,
                body=as_json(VersionSerializer(version).data),
                location=request.build_absolute_uri(f"{request.path}/{version.number}/questions"),
            )

        return self.once(make, body=given.fingerprint)


class VersionQuestionsView(Endpoint):
    @extend_schema(
        operation_id="versions_questions",
        summary="List a version's questions in file order",
        parameters=[SET_ID, VERSION, *QUESTION_FILTERS, *PAGING],
        responses={200: answer(page_of(QuestionSerializer, name="VersionQuestion"), "A page."), **problems(404, 422)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str, number: str) -> Response:
        version = queries.get_version(queries.get_set(self.workspace, set_id), number)
        return list_questions(self, request, version)


def list_questions(view: Endpoint, request: Request, version: QuestionSetVersion) -> Response:
    """A page of a version's questions, filtered as the request asks."""
    params = request.query_params
    found = queries.questions_of(
        version,
        tag=params.get("tag", ""),
        source=params.get("source", ""),
        collection=params.get("collection", ""),
    )
    return view.page(found, lambda rows: [queries.full_form(one) for one in rows], order=("ordinal",))


def shown_set(found: QuestionSet, version: QuestionSetVersion) -> dict[str, Any]:
    """A QuestionSetSerializer's data."""
    return {
        "id": str(found.id),
        "name": found.name,
        "n_questions": version.n_questions,
        "version": VersionSerializer(version).data,
        "created_at": found.created_at,
    }
