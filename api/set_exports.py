"""`question-sets/{id}/export`: a version as a file."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from api.base import Endpoint, read_flag
from api.question_sets import SET_ID
from api.schema import files, problems, query
from backend.queries import questions as queries
from backend.queries import set_exports
from backend.queries.set_exports import SetForm


class SetExportView(Endpoint):
    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:  # noqa: ARG002, FBT001  the framework's signature
        """The framework would take `format` for a choice among its own renderers, which only speak of errors here."""
        return JSONRenderer(), "application/json"

    @extend_schema(
        operation_id="question_sets_export",
        summary="Export a question set",
        description=(
            "`full` holds everything and comes back the same. The others are refused, naming the questions they cannot "
            "hold, unless `lossy=true`, which leaves out what does not fit."
        ),
        parameters=[
            SET_ID,
            query("format", "Which form. Default: full.", enum=[form.value for form in SetForm]),
            query("version", "Its number. Default: the latest.", type=int),
            query("lossy", "Leave out what the form cannot hold.", type=bool),
        ],
        responses={
            **files(set_exports.MEDIA_TYPES, "The file; a BEIR folder as a ZIP."),
            **problems(404, 422),
        },
        tags=["question sets"],
    )
    def get(self, request: Request, set_id: str) -> HttpResponse:
        params = request.query_params
        version = queries.get_version(queries.get_set(self.workspace, set_id), params.get("version") or None)
        made = set_exports.export(version, form=params.get("format", ""), lossy=read_flag(request, "lossy"))
        return HttpResponse(
            made.data,
            content_type=made.media_type,
            headers={"Content-Disposition": f'attachment; filename="{made.filename}"'},
        )
