"""`knowledge-bases/{id}/sources`: upload areas, and folders that are read again."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, read_object
from api.base_shapes import SetFileSerializer, SourceRequestSerializer, SourceSerializer, SyncedSerializer
from api.ingestions import shown_ingestion
from api.knowledge_bases import BASE_ID
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.models import Scope
from backend.queries import knowledge as queries
from backend.queries import questions as sets
from backend.services import sources
from backend.services.idempotency import Answer

SOURCE_ID = path("source_id", "The source's id.")


class SourcesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="sources_list",
        summary="List a base's sources by name",
        parameters=[BASE_ID, *PAGING],
        responses={200: answer(page_of(SourceSerializer, name="Source"), "A page."), **problems(404, 422)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str) -> Response:  # noqa: ARG002  the framework's signature
        base = queries.get_base(self.workspace, base_id)
        return self.page(queries.sources_of(base), lambda rows: SourceSerializer(rows, many=True).data, order=("name",))

    @extend_schema(
        operation_id="sources_create",
        summary="Make an upload area, or name a folder of the server",
        parameters=[BASE_ID, IDEMPOTENCY_KEY],
        request=SourceRequestSerializer,
        examples=[example({"name": "handbook", "kind": "folder", "folder": "/srv/handbook"})],
        responses={201: answer(SourceSerializer, "It is there."), **problems(400, 404, 409, 415, 422)},
        tags=["documents"],
    )
    def post(self, request: Request, base_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        body = read_object(request, known=("name", "kind", "folder", "collection"))

        def make() -> Answer:
            made = sources.create(base, **{"name": "", **body})
            return Answer(
                status=201,
                body=as_json(SourceSerializer(queries.get_source(base, made.id)).data),
                location=request.build_absolute_uri(f"{request.path}/{made.id}"),
            )

        return self.once(make, body=body)


class SourceView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.WRITE}

    @extend_schema(
        operation_id="sources_read",
        summary="Read a source",
        parameters=[BASE_ID, SOURCE_ID],
        responses={200: answer(SourceSerializer, "The source with its counts."), **problems(404)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str, source_id: str) -> Response:  # noqa: ARG002  as above
        base = queries.get_base(self.workspace, base_id)
        return Response(SourceSerializer(queries.get_source(base, source_id)).data)

    @extend_schema(
        operation_id="sources_delete",
        summary="Delete a source with its documents",
        parameters=[BASE_ID, SOURCE_ID],
        responses={204: answer(None, "It is gone."), **problems(404)},
        tags=["documents"],
    )
    def delete(self, request: Request, base_id: str, source_id: str) -> Response:  # noqa: ARG002  as above
        base = queries.get_base(self.workspace, base_id)
        sources.delete(queries.get_source(base, source_id))
        return Response(status=204)


class SourceSyncView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="sources_sync",
        summary="Read a folder again",
        description="What is new or changed is indexed, what is gone is removed, unchanged files are not read.",
        parameters=[BASE_ID, SOURCE_ID],
        request=None,
        responses={202: answer(SyncedSerializer, "It has begun: follow the ingestion."), **problems(404, 409)},
        tags=["documents"],
    )
    def post(self, request: Request, base_id: str, source_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        source = queries.get_source(base, source_id)
        started = sources.sync(source)
        location = request.build_absolute_uri(f"/api/v1/knowledge-bases/{base.id}/ingestions/{started.id}")
        found = sets.set_files_of(base).filter(source=source)
        return Response(
            {"ingestion": shown_ingestion(started), "set_files": SetFileSerializer(found, many=True).data},
            status=202,
            headers={"Location": location},
        )


class SetFilesView(Endpoint):
    @extend_schema(
        operation_id="set_files_list",
        summary="List the question-set files found in a base's sources",
        description="Each with its number of questions, or what is wrong with it. An evaluation names one as `file`.",
        parameters=[BASE_ID, *PAGING],
        responses={200: answer(page_of(SetFileSerializer, name="SetFile"), "A page."), **problems(404, 422)},
        tags=["question sets"],
    )
    def get(self, request: Request, base_id: str) -> Response:  # noqa: ARG002  as above
        base = queries.get_base(self.workspace, base_id)
        return self.page(
            sets.set_files_of(base),
            lambda rows: SetFileSerializer(rows, many=True).data,
            order=("source__name", "path", "id"),
        )
