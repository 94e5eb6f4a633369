"""`runs/import`: a ranking made elsewhere, as a file or in the body."""

from typing import Any, ClassVar

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import MIB, Endpoint, as_json, file_hash, invalid, read_object
from api.enums import LEVELS, RANKING_FORMATS
from api.jobs import JOB_ACCEPTED, accepted
from api.run_shapes import RunSerializer
from api.schema import IDEMPOTENCY_KEY, answer, example, problems
from backend.core.errors import ErrorCode
from backend.models import Scope
from backend.queries import runs as queries
from backend.services import importing, long_jobs, question_sets
from backend.services.idempotency import Answer

_TEXTS = ("question_set", "name", "label", "level", "primary_metric", "knowledge_base", "missing", "format")
_FIELDS = (*_TEXTS, "top_k", "k")
_EXAMPLE = {
    "question_set": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11@2",
    "name": "our old search",
    "rankings": [
        {"question": "q1", "ids": ["policies/leave.pdf", "policies/travel.pdf"]},
        {"question": "Who approves a trip?", "results": [{"id": "p-17", "document": "finance/travel.md", "text": "…"}]},
    ],
}


class ImportFieldsSerializer(serializers.Serializer[Any]):
    """`question_set`: id or id@version. `missing`: what a question without a ranking counts as (`not_run`)."""

    question_set = serializers.CharField()
    name = serializers.CharField(required=False, max_length=200)
    label = serializers.CharField(required=False, max_length=200)  # type: ignore[assignment]  # ours, not the base class's
    level = serializers.ChoiceField(choices=LEVELS, required=False)
    top_k = serializers.IntegerField(required=False, min_value=1)
    k = serializers.JSONField(required=False, help_text="A number or a list of numbers, at most top_k.")
    primary_metric = serializers.CharField(required=False)
    knowledge_base = serializers.UUIDField(required=False, help_text="Files the run with this base.")
    missing = serializers.ChoiceField(choices=["not_run", "empty"], required=False)


class ImportUploadSerializer(ImportFieldsSerializer):
    """A TREC run, or JSONL: `{"question": key or text, "ids": [...]}` a line. Told apart by content."""

    file = serializers.FileField()
    format = serializers.ChoiceField(choices=RANKING_FORMATS, required=False)


class ImportBodySerializer(ImportFieldsSerializer):
    """The lines of the JSONL form as `rankings`."""

    rankings = serializers.ListField(child=serializers.DictField())


class RunImportView(Endpoint):
    parser_classes = (JSONParser, MultiPartParser)
    max_body_bytes = settings.MAX_SET_BYTES + MIB
    too_large_code = ErrorCode.EVAL_TOO_LARGE
    required_scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="runs_import",
        summary="Import a ranking made elsewhere",
        description=(
            "Scored against a set, a run like any other. A TREC run is read by score, highest first; equal scores "
            "stay in file order and are counted, the rank column is not looked at. Ids are opaque. `origin` of the run "
            "tells what does not match; faults of the file are told by line. Over 5,000 questions it is a job, whose "
            "`result.run` is the run."
        ),
        parameters=[IDEMPOTENCY_KEY],
        request={"application/json": ImportBodySerializer, "multipart/form-data": ImportUploadSerializer},
        examples=[example(_EXAMPLE)],
        responses={
            201: answer(RunSerializer, "The run."),
            202: JOB_ACCEPTED,
            **problems(400, 404, 409, 413, 415, 422),
        },
        tags=["runs"],
    )
    def post(self, request: Request) -> Response:
        is_form = request.content_type.startswith("multipart/")
        wanted, content, body = _form(request) if is_form else _json(request)

        def make() -> Answer:
            n_questions = question_sets.resolve(self.workspace, wanted.question_set).n_questions
            if long_jobs.is_long(n_questions):
                job = long_jobs.start_import(
                    self.workspace, wanted, **content, n_questions=n_questions, created_by=self.caller.id
                )
                return accepted(request, job)
            made = importing.import_run(self.workspace, wanted, **content, now=timezone.now())
            row = RunSerializer(queries.row(queries.get_run(self.workspace, made.id))).data
            return Answer(status=201, body=as_json(row), location=request.build_absolute_uri(f"/api/v1/runs/{made.id}"))

        return self.once(make, body=body)


def _form(request: Request) -> tuple[importing.Request, dict[str, Any], Any]:
    data: Any = request.data
    for name in data:
        if name not in {*_FIELDS, "file"}:
            raise invalid(f"There is no field {name!r}. There are: file, {', '.join(_FIELDS)}.", str(name))
    files = request.FILES.getlist("file")
    if len(files) != 1:
        raise invalid("Send the rankings as one file, in a part named `file`.", "file")
    fields: dict[str, Any] = {name: data[name] for name in _FIELDS if name in data}
    for name in ("top_k", "k"):
        if name in fields:
            fields[name] = _wholes(fields[name], name, one=name == "top_k")
    wanted = _wanted(fields, filename=str(files[0].name or ""))
    fingerprint = [{name: str(value) for name, value in fields.items()}, wanted.filename, file_hash(files[0])]
    return wanted, {"data": files[0].read()}, fingerprint


def _json(request: Request) -> tuple[importing.Request, dict[str, Any], Any]:
    body = read_object(request, known=(*_FIELDS, "rankings"))
    items = body.get("rankings")
    if not isinstance(items, list):
        raise invalid("rankings is a list, a question each.", "rankings")
    return _wanted({name: body[name] for name in _FIELDS if name in body}), {"items": items}, body


def _wanted(fields: dict[str, Any], *, filename: str = "") -> importing.Request:
    for name in _TEXTS:
        if not isinstance(fields.get(name, ""), str):
            raise invalid(f"{name} is a text.", name)
    for name in ("name", "label"):
        if len(fields.get(name, "")) > 200:
            raise invalid(f"{name} is a text of at most 200 characters.", name)
    if not fields.get("question_set"):
        raise invalid("Name the question set: its id, or id@version.", "question_set")
    k = fields.get("k")
    if k is not None and not all(isinstance(one, int) for one in (k if isinstance(k, list) else [k])):
        raise invalid("k is a whole number from 1 on, or a list of them.", "k")
    return importing.Request(**{"missing": "not_run", **fields}, filename=filename)


def _wholes(text: str, name: str, *, one: bool) -> int | list[int]:
    """A form's numbers are texts: `10`, or `1,5,10`."""
    parts = [part.strip() for part in str(text).split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts) or (one and len(parts) > 1):
        raise invalid(f"{name} is a whole number{'' if one else ', or several with commas between'}.", name)
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers
