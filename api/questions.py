"""`question-sets/{id}/questions`: single test cases of the latest version; an edit makes a new one."""

from typing import Any, ClassVar
from urllib.parse import quote

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.question_sets import QUESTION_FILTERS, SET_ID, list_questions
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from api.set_shapes import (
    QuestionCountSerializer,
    QuestionEditSerializer,
    QuestionSerializer,
    QuestionsRequestSerializer,
    VersionSerializer,
)
from backend.models import Scope
from backend.queries import questions as queries
from backend.services import question_sets
from backend.services.idempotency import Answer

_QUESTION = {"question": "Who approves a trip?", "expected": ["finance/travel.md"]}
QUESTION_KEY = path("question_key", "The question's id within its set.")


class QuestionsView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="questions_list",
        summary="List the questions of the latest version",
        parameters=[SET_ID, *QUESTION_FILTERS, *PAGING],
        responses={200: answer(page_of(QuestionSerializer, name="Question"), "A page."), **problems(404, 422)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str) -> Response:
        version = queries.get_version(queries.get_set(self.workspace, set_id))
        return list_questions(self, request, version)

    @extend_schema(
        operation_id="questions_create",
        summary="Add questions",
        description="One question as the body, or several as `questions`. Makes a new version.",
        parameters=[SET_ID, IDEMPOTENCY_KEY],
        request=QuestionsRequestSerializer,
        examples=[
            example({"question": "Who approves a trip?", "expected": ["finance/travel.md"]}, name="One"),
            example(
                {"questions": [{"question": "Who approves a trip?", "expected": ["finance/travel.md"]}]}, name="All"
            ),
        ],
        responses={201: answer(QuestionEditSerializer, "The new version."), **problems(400, 404, 409, 415, 422)},
        tags=["question sets"],
    )
    def post(self, request: Request, set_id: str) -> Response:
        found = queries.get_set(self.workspace, set_id)
        body = read_object(request)
        items = body["questions"] if set(body) == {"questions"} else [body]
        if not isinstance(items, list):
            raise invalid("questions is a list, a question each.", "questions")

        def make() -> Answer:
            before = queries.get_version(found).n_questions
            version = question_sets.add_questions(found, items)
            added = queries.questions_of(version).filter(ordinal__gte=before)
            shown = [queries.full_form(one) for one in added]
            location = f"{request.path}/{quote(shown[0]['id'])}" if len(shown) == 1 else request.path
            return Answer(
                status=201,
                body=as_json({"version": VersionSerializer(version).data, "questions": shown}),
                location=request.build_absolute_uri(location),
            )

        return self.once(make, body=body)


class QuestionView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.WRITE}

    @extend_schema(
        operation_id="questions_read",
        summary="Read a question of the latest version",
        parameters=[SET_ID, QUESTION_KEY],
        responses={200: answer(QuestionSerializer, "The question in the full form."), **problems(404)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str, question_key: str) -> Response:  # noqa: ARG002  the framework's
        version = queries.get_version(queries.get_set(self.workspace, set_id))
        return Response(queries.full_form(queries.get_question(version, question_key)))

    @extend_schema(
        operation_id="questions_delete",
        summary="Take a question out",
        description="Makes a new version without it; the earlier ones keep it.",
        parameters=[SET_ID, QUESTION_KEY],
        responses={204: answer(None, "The latest version has it no more."), **problems(404, 422)},
        tags=["question sets"],
    )
    def delete(self, request: Request, set_id: str, question_key: str) -> Response:  # noqa: ARG002  as above
        question_sets.delete_questions(queries.get_set(self.workspace, set_id), [question_key])
        return Response(status=204)


class QuestionCountView(Endpoint):
    @extend_schema(
        operation_id="questions_count",
        summary="Count the questions of the latest version",
        parameters=[SET_ID, *QUESTION_FILTERS],
        responses={200: answer(QuestionCountSerializer, "The counts."), **problems(404, 422)},
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str) -> Response:
        version = queries.get_version(queries.get_set(self.workspace, set_id))
        params = request.query_params
        found = queries.questions_of(
            version,
            tag=params.get("tag", ""),
            source=params.get("source", ""),
            collection=params.get("collection", ""),
        ).order_by()
        grouped: dict[str, dict[str, Any]] = {
            name: dict(found.values_list(name).annotate(n=Count("id")).order_by(name))
            for name in ("source", "collection")
        }
        return Response(
            {
                "version": version.number,
                "count": sum(grouped["source"].values()),
                "by_source": grouped["source"],
                "by_collection": grouped["collection"],
            }
        )
