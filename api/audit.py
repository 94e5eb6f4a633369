"""`audit`: who changed what in the workspace."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint
from api.schema import PAGING, answer, page_of, problems, query
from backend.models import AuditEvent, Scope
from backend.queries import access


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    fields = serializers.ListField(  # type: ignore[assignment]  # what was sent; the framework's name for its own
        child=serializers.CharField(), help_text="The names of what was sent; values are not kept."
    )

    class Meta:
        model = AuditEvent
        fields = ("id", "at", "caller", "caller_name", "action", "target", "fields", "request_id")
        read_only_fields = fields


class AuditView(Endpoint):
    required_scopes: ClassVar = {"GET": Scope.ADMIN}

    @extend_schema(
        operation_id="audit_list",
        summary="List changes, newest first",
        parameters=[
            query("caller", "Only those of this caller: `token:ID`, `user:ID`, or a name."),
            query("action", "Only those whose action holds this text, such as `question-sets`."),
            *PAGING,
        ],
        responses={200: answer(page_of(AuditEventSerializer, name="AuditEvent"), "A page."), **problems(422)},
        tags=["access"],
    )
    def get(self, request: Request) -> Response:
        asked = request.query_params
        rows = access.events_of(self.workspace, caller=asked.get("caller", ""), action=asked.get("action", ""))
        return self.page(rows, lambda found: AuditEventSerializer(found, many=True).data)
