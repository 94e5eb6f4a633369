"""`knowledge-bases/{id}/ingestions`: how far reading and indexing is."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint
from api.base_shapes import IngestionSerializer
from api.knowledge_bases import BASE_ID
from api.schema import PAGING, answer, page_of, path, problems
from backend.core.errors import NotFoundError
from backend.models import Ingestion
from backend.queries import knowledge as queries


class IngestionsView(Endpoint):
    @extend_schema(
        operation_id="ingestions_list",
        summary="List rounds of indexing, newest first",
        parameters=[BASE_ID, *PAGING],
        responses={200: answer(page_of(IngestionSerializer, name="Ingestion"), "A page."), **problems(404, 422)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str) -> Response:  # noqa: ARG002  the framework's signature
        base = queries.get_base(self.workspace, base_id)
        return self.page(
            queries.ingestions_of(base), lambda rows: [shown_ingestion(one) for one in rows], default_limit=20
        )


class IngestionView(Endpoint):
    @extend_schema(
        operation_id="ingestions_read",
        summary="Follow a round of indexing",
        parameters=[BASE_ID, path("ingestion_id", "The ingestion's id.")],
        responses={200: answer(IngestionSerializer, "As it is now."), **problems(404)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str, ingestion_id: str) -> Response:  # noqa: ARG002  as above
        base = queries.get_base(self.workspace, base_id)
        found = queries.get_ingestion(self.workspace, ingestion_id)
        if found.knowledge_base_id != base.id:
            raise NotFoundError("ingestion", ingestion_id)
        return Response(shown_ingestion(found))


def shown_ingestion(ingestion: Ingestion) -> Any:
    """An IngestionSerializer's data; one query for the counts."""
    told = queries.ingestion_progress(ingestion)
    return IngestionSerializer(
        {
            **{
                name: getattr(ingestion, name)
                for name in ("id", "knowledge_base_id", "source_id", "code", "reason", "created_at", "finished_at")
            },
            **{name: getattr(told, name) for name in told.__dataclass_fields__},
        }
    ).data
