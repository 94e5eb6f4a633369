"""`generations/{id}/drafts` and `drafts`: questions that wait for a person's decision."""

from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_object
from api.enums import DRAFT_STATES, LEAKAGE_BANDS, QUESTION_KINDS
from api.generation_shapes import DraftSerializer, ReviewSerializer
from api.schema import PAGING, answer, example, page_of, path, problems, query
from backend.models import Scope
from backend.queries import generation as queries
from backend.services import drafts

_ID = path("draft_id", "The draft's id.")
_CHOICES = {"state": DRAFT_STATES, "kind": QUESTION_KINDS, "leakage": LEAKAGE_BANDS}


class DraftsView(Endpoint):
    @extend_schema(
        operation_id="drafts_list",
        summary="List a generation's drafts, in the order drawn",
        parameters=[
            path("generation_id", "The generation's id."),
            *(query(name, f"Only drafts of this {name}.", enum=values) for name, values in _CHOICES.items()),
            *PAGING,
        ],
        responses={200: answer(page_of(DraftSerializer, name="Draft"), "A page."), **problems(404, 422)},
        tags=["generation"],
    )
    def get(self, request: Request, generation_id: str) -> Response:
        made = queries.get_generation(self.workspace, generation_id)
        given = {name: request.query_params.get(name, "") for name in _CHOICES}
        for name, value in given.items():
            if value and value not in _CHOICES[name]:
                raise invalid(f"{name} is one of {', '.join(_CHOICES[name])}, not {value!r}.", name)
        found = queries.drafts_of(made, state=given["state"], kind=given["kind"], band=given["leakage"])
        return self.page(found, lambda rows: DraftSerializer(rows, many=True).data, order=("ordinal", "id"))


class DraftView(Endpoint):
    @extend_schema(
        operation_id="drafts_read",
        summary="Read a draft",
        parameters=[_ID],
        responses={200: answer(DraftSerializer, "The draft, with its verdicts."), **problems(404)},
        tags=["generation"],
    )
    def get(self, request: Request, draft_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(DraftSerializer(queries.get_draft(self.workspace, draft_id)).data)


class DraftReviewView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="drafts_review",
        summary="Accept, edit or reject a draft",
        description="A dropped draft can be accepted too. `reopen` takes a decision back.",
        parameters=[_ID],
        request=ReviewSerializer,
        examples=[example({"action": "accept", "question": "How many days of leave are there?"})],
        responses={200: answer(DraftSerializer, "As decided."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["generation"],
    )
    def post(self, request: Request, draft_id: str) -> Response:
        queries.get_draft(self.workspace, draft_id)
        body = read_object(request, known=("action", "question", "answer"))
        for name, value in body.items():
            if value is not None and not isinstance(value, str):
                raise invalid(f"{name} is a text.", name)
        decided = drafts.review(
            self.workspace,
            draft_id,
            action=str(body.get("action") or ""),
            question=body.get("question"),
            answer=body.get("answer"),
            reviewer=self.caller.id,
            now=timezone.now(),
        )
        return Response(DraftSerializer(decided).data)
