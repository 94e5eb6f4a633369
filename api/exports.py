"""`runs/{id}/export`: a run in the forms that other programs read."""

from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from api.base import Endpoint, respond
from api.jobs import JOB_ACCEPTED, accepted
from api.schema import files, path, problems, query
from backend.queries import exports, runs
from backend.queries.exports import Format
from backend.services import exporting, long_jobs


class RunExportView(Endpoint):
    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:  # noqa: ARG002, FBT001  the framework's signature
        """The framework would take `format` for a choice among its own renderers, which only speak of errors here."""
        return JSONRenderer(), "application/json"

    @extend_schema(
        operation_id="runs_export",
        summary="Export a run",
        description=(
            "`json`: the record with all results. `jsonl`: a result a line. `csv`: for a spreadsheet. `trec_run` and "
            "`trec_qrels`: for trec_eval and its kin, with strictly falling scores. `junit`: a test case a "
            "question. `markdown`: fits a comment. `html`: a page with plots that needs nothing else. Over 5,000 "
            "questions it is a job, whose file is the export; asking again finds that job."
        ),
        parameters=[
            path("run_id", "The run's id."),
            query("format", "Which form. Default: json.", enum=[form.value for form in Format]),
            query("baseline", "A run to compare with, in junit, markdown and html.", type=OpenApiTypes.UUID),
        ],
        responses={
            **files(exporting.MEDIA_TYPES, "The file."),
            (200, "application/json"): OpenApiResponse(response=OpenApiTypes.OBJECT, description="The file."),
            202: JOB_ACCEPTED,
            **problems(404, 409, 422),
        },
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        params = request.query_params
        form, baseline = params.get("format") or Format.JSON, params.get("baseline", "")
        run = runs.get_run(self.workspace, run_id)
        if long_jobs.is_long(run.evaluation.n_questions):
            exports.check_writable(run, exports.form_of(form))
            job = long_jobs.start_export(self.workspace, run, form=form, baseline=baseline, created_by=self.caller.id)
            return respond(accepted(request, job))
        made = exporting.export(self.workspace, run_id, form=form, baseline=baseline)
        return StreamingHttpResponse(
            (piece.encode() for piece in made.text),
            content_type=made.media_type,
            headers={"Content-Disposition": f'attachment; filename="{made.filename}"'},
        )
