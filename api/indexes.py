"""`knowledge-bases/{id}/indexes`: what a base was built as, so that a configuration can name one."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint
from api.enums import INDEX_STATES
from api.knowledge_bases import BASE_ID
from api.schema import PAGING, answer, page_of, problems
from backend.queries import knowledge as queries


class IndexSerializer(serializers.Serializer[Any]):
    """`is_live`: searched unless a configuration names another. A `retired` one was replaced; it can be named while it
    exists, and holds the documents as they were when it was replaced."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=INDEX_STATES)
    is_live = serializers.BooleanField()
    settings = serializers.DictField()
    n_documents = serializers.IntegerField()
    n_chunks = serializers.IntegerField()
    n_chunks_truncated = serializers.IntegerField()
    dimensions = serializers.IntegerField(allow_null=True)
    generation = serializers.IntegerField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)


_FIELDS = [str(name) for name in IndexSerializer().fields if str(name) != "is_live"]


class IndexesView(Endpoint):
    @extend_schema(
        operation_id="indexes_list",
        summary="List a base's Indexes, newest first",
        description="Two of them can be compared: name each as the `index` of a configuration.",
        parameters=[BASE_ID, *PAGING],
        responses={200: answer(page_of(IndexSerializer, name="Index"), "A page."), **problems(404, 422)},
        tags=["knowledge bases"],
    )
    def get(self, request: Request, base_id: str) -> Response:  # noqa: ARG002  the framework's signature
        base = queries.get_base(self.workspace, base_id)
        return self.page(
            queries.indexes_of(base),
            lambda rows: [
                IndexSerializer(
                    {**{name: getattr(one, name) for name in _FIELDS}, "is_live": one.id == base.live_index_id}
                ).data
                for one in rows
            ],
        )
