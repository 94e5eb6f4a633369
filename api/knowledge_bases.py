"""`knowledge-bases`: made, read, changed, deleted."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_flag, read_object
from api.base_shapes import (
    KnowledgeBaseChangeSerializer,
    KnowledgeBaseRequestSerializer,
    KnowledgeBaseSerializer,
)
from api.schema import FORCE, IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems, query
from backend.models import KnowledgeBase, Scope
from backend.queries import knowledge as queries
from backend.services import knowledge_bases
from backend.services.idempotency import Answer

BASE_ID = path("base_id", "The knowledge base's id.")
_EXAMPLE = {
    "name": "Handbook",
    "settings": {
        "chunking": {"mode": "structure", "size": 1200, "overlap": 150},
        "embedding": {"embedder": "local"},
        "keyword": {"language": "english"},
        "fusion": {"formula": "rrf", "constant": 60},
        "reranker": "local",
    },
}


class KnowledgeBasesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="knowledge_bases_list",
        summary="List knowledge bases, newest first",
        parameters=[query("name", "Only the one of exactly this name."), *PAGING],
        responses={200: answer(page_of(KnowledgeBaseSerializer, name="KnowledgeBase"), "A page."), **problems(422)},
        tags=["knowledge bases"],
    )
    def get(self, request: Request) -> Response:
        found = queries.bases_of(self.workspace)
        name = request.query_params.get("name")
        if name:
            found = found.filter(name=name)
        return self.page(found, lambda rows: KnowledgeBaseSerializer(queries.base_rows(rows), many=True).data)

    @extend_schema(
        operation_id="knowledge_bases_create",
        summary="Make an empty knowledge base",
        parameters=[IDEMPOTENCY_KEY],
        request=KnowledgeBaseRequestSerializer,
        examples=[example(_EXAMPLE)],
        responses={201: answer(KnowledgeBaseSerializer, "It is there."), **problems(400, 409, 413, 415, 422)},
        tags=["knowledge bases"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("name", "settings"))

        def make() -> Answer:
            made = knowledge_bases.create(
                self.workspace, name=body.get("name", ""), settings=_settings(body, default={})
            )
            return Answer(
                status=201,
                body=as_json(_shown(made)),
                location=request.build_absolute_uri(f"{request.path}/{made.id}"),
            )

        return self.once(make, body=body)


class KnowledgeBaseView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.WRITE, "DELETE": Scope.WRITE}

    @extend_schema(
        operation_id="knowledge_bases_read",
        summary="Read a knowledge base",
        parameters=[BASE_ID],
        responses={200: answer(KnowledgeBaseSerializer, "The base with its state and counts."), **problems(404)},
        tags=["knowledge bases"],
    )
    def get(self, request: Request, base_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(_shown(queries.get_base(self.workspace, base_id)))

    @extend_schema(
        operation_id="knowledge_bases_change",
        summary="Change a knowledge base",
        description=(
            "A change of chunking, embedding or keyword builds a new Index beside the live one, which goes on serving "
            "until the new one is ready."
        ),
        parameters=[BASE_ID],
        request=KnowledgeBaseChangeSerializer,
        examples=[example({"settings": {"keyword": {"language": "english"}}})],
        responses={200: answer(KnowledgeBaseSerializer, "As it is now."), **problems(400, 404, 409, 415, 422)},
        tags=["knowledge bases"],
    )
    def patch(self, request: Request, base_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        body = read_object(request, known=("name", "settings"))
        knowledge_bases.patch(base, name=body.get("name"), settings=_settings(body))
        return Response(_shown(queries.get_base(self.workspace, base_id)))

    @extend_schema(
        operation_id="knowledge_bases_delete",
        summary="Delete a knowledge base with its documents",
        description="Runs outlive it, by name and fingerprint.",
        parameters=[BASE_ID, FORCE],
        responses={204: answer(None, "It is gone."), **problems(404, 409, 422)},
        tags=["knowledge bases"],
    )
    def delete(self, request: Request, base_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        knowledge_bases.delete(base, force=read_flag(request, "force"))
        return Response(status=204)


def _settings(body: dict[str, Any], *, default: Any = None) -> Any:
    value = body.get("settings", default)
    if value is not None and not isinstance(value, dict):
        raise invalid("settings is an object.", "settings")
    return value


def _shown(base: KnowledgeBase) -> Any:
    return KnowledgeBaseSerializer(queries.base_row(base)).data
