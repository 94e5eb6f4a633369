"""`knowledge-bases/{id}/documents`: uploaded, listed with their state, removed."""

from collections.abc import Iterator
from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import MIB, Endpoint, as_json, file_hash, invalid
from api.base_shapes import AddedSerializer, DocumentSerializer, SetFileSerializer, SkippedSerializer
from api.enums import DOCUMENT_STATES
from api.ingestions import shown_ingestion
from api.knowledge_bases import BASE_ID
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, page_of, path, problems, query
from backend.core.errors import ErrorCode
from backend.core.states import DocumentState
from backend.models import KnowledgeBase, Scope, Source
from backend.queries import knowledge as queries
from backend.services import documents, sources
from backend.services.documents import UploadedFile
from backend.services.idempotency import Answer

DOCUMENT_ID = path("document_id", "The document's id.")
_FIELDS = ("source", "path", "collection")


class UploadSerializer(serializers.Serializer[Any]):
    """A form with one part `file` per document. `path`, once per file and in their order, says where each lies; left
    out, it is the file's name. `source` is the id or name of an upload area (`uploads` unless given; made when there
    is none). `collection` is one for all, or one per file."""

    file = serializers.ListField(child=serializers.FileField())
    path = serializers.ListField(child=serializers.CharField(), required=False)
    source = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of ours, not the base class's
    collection = serializers.ListField(child=serializers.CharField(allow_blank=True), required=False)


class DocumentsView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.WRITE}
    parser_classes = (MultiPartParser,)
    # Files go to disk as they come; the limit is on what one request may hold.
    max_body_bytes = 20 * settings.MAX_DOCUMENT_BYTES + MIB
    too_large_code = ErrorCode.DOCUMENT_TOO_LARGE

    @extend_schema(
        operation_id="documents_list",
        summary="List a base's documents by path",
        parameters=[
            BASE_ID,
            query("state", "Only these.", enum=DOCUMENT_STATES),
            query("source", "Only those of this source.", type=OpenApiTypes.UUID),
            query("collection", "Only those of this collection."),
            query("path", "Only those whose path contains this."),
            *PAGING,
        ],
        responses={200: answer(page_of(DocumentSerializer, name="Document"), "A page."), **problems(404, 422)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        params = request.query_params
        state = params.get("state", "")
        if state and state not in set(DocumentState):
            raise invalid(f"state is one of {', '.join(DocumentState)}, not {state!r}.", "state")
        found = queries.documents_of(
            base,
            state=state,
            source=params.get("source") or None,
            collection=params.get("collection", ""),
            path=params.get("path", ""),
        )
        return self.page(found, lambda rows: DocumentSerializer(rows, many=True).data, order=("path", "id"))

    @extend_schema(
        operation_id="documents_create",
        summary="Upload documents",
        description=(
            "Many files at once. They are read in the background: each ends `indexed`, or `failed` with a code and a "
            "reason, whatever becomes of the others. Files whose bytes are there already are left alone. Question sets "
            "in `.touchstone/` or `.metis/` are read as such; other hidden files are skipped, and told."
        ),
        parameters=[BASE_ID, IDEMPOTENCY_KEY],
        request={"multipart/form-data": UploadSerializer},
        responses={202: answer(AddedSerializer, "Taken in."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["documents"],
    )
    def post(self, request: Request, base_id: str) -> Response:
        base = queries.get_base(self.workspace, base_id)
        given = _read(request)

        def take() -> Answer:
            added = documents.add_many(_source(base, given.source), given.files())
            location = ""
            if added.ingestion is not None:
                location = request.build_absolute_uri(
                    f"/api/v1/knowledge-bases/{base.id}/ingestions/{added.ingestion.id}"
                )
            body = {
                "documents": DocumentSerializer(added.documents, many=True).data,
                "ingestion": None if added.ingestion is None else shown_ingestion(added.ingestion),
                "set_files": SetFileSerializer(added.set_files, many=True).data,
                "skipped": SkippedSerializer(added.skipped, many=True).data,
            }
            return Answer(status=202, body=as_json(body), location=location)

        # Hashing the files is only worth it where the key is there to compare.
        body = given.fingerprint() if "Idempotency-Key" in request.headers else None
        return self.once(take, body=body)


class DocumentView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.WRITE}

    @extend_schema(
        operation_id="documents_read",
        summary="Read a document's state",
        parameters=[BASE_ID, DOCUMENT_ID],
        responses={200: answer(DocumentSerializer, "The document."), **problems(404)},
        tags=["documents"],
    )
    def get(self, request: Request, base_id: str, document_id: str) -> Response:  # noqa: ARG002  the framework's
        base = queries.get_base(self.workspace, base_id)
        return Response(DocumentSerializer(queries.get_document(base, document_id)).data)

    @extend_schema(
        operation_id="documents_delete",
        summary="Remove a document",
        parameters=[BASE_ID, DOCUMENT_ID],
        responses={204: answer(None, "It is gone, with its passages."), **problems(404)},
        tags=["documents"],
    )
    def delete(self, request: Request, base_id: str, document_id: str) -> Response:  # noqa: ARG002  as above
        base = queries.get_base(self.workspace, base_id)
        documents.remove(queries.get_document(base, document_id))
        return Response(status=204)


class _Upload:
    """The parts of an upload; a file's bytes are read when its turn comes."""

    def __init__(self, *, parts: list[Any], paths: list[str], collections: list[str], source: str) -> None:
        self.source = source
        self._parts, self._paths, self._collections = parts, paths, collections

    def files(self) -> Iterator[UploadedFile]:
        for part, path_, collection in zip(self._parts, self._paths, self._collections, strict=True):
            part.seek(0)
            yield UploadedFile(path=path_, data=part.read(), collection=collection)

    def fingerprint(self) -> list[Any]:
        return [self.source, self._paths, self._collections, [file_hash(part) for part in self._parts]]


def _read(request: Request) -> _Upload:
    data: Any = request.data
    for name in data:
        if name not in {"file", *_FIELDS}:
            raise invalid(f"There is no field {name!r}. There are: file, {', '.join(_FIELDS)}.", str(name))
    parts = request.FILES.getlist("file")
    if not parts:
        raise invalid("Send at least one file, in a part named `file`.", "file")
    paths = data.getlist("path") or [part.name for part in parts]
    collections = data.getlist("collection") or [""]
    if len(collections) == 1:
        collections *= len(parts)
    for name, values in (("path", paths), ("collection", collections)):
        if len(values) != len(parts):
            raise invalid(f"There are {len(parts)} files and {len(values)} values of `{name}`: one per file.", name)
        if any(not isinstance(value, str) for value in values):
            raise invalid(f"`{name}` is a text.", name)
    if any(len(value) > 200 or "\x00" in value for value in collections):
        raise invalid("A collection is a text of at most 200 characters.", "collection")
    return _Upload(parts=parts, paths=paths, collections=collections, source=str(data.get("source", "")))


def _source(base: KnowledgeBase, key: str) -> Source:
    """The upload area of this id or name; `uploads` unless one is named."""
    found = next((one for one in queries.sources_of(base) if str(one.id) == key.lower()), None) if key else None
    return sources.upload_area(base, name=found.name) if found else sources.upload_area(base, **_named(key))


def _named(key: str) -> dict[str, str]:
    return {"name": key} if key else {}
