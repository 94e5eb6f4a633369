"""`runs`: the record of each configuration, and what became of each question in it."""

from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_flag, read_object, read_whole
from api.run_shapes import ResultSerializer, RunSerializer
from api.schema import FORCE, PAGING, answer, example, page_of, path, problems, query
from backend.core.configs import ALIASES, MODES
from backend.models import Scope
from backend.queries import results
from backend.queries import runs as queries
from backend.queries.lookups import as_uuid
from backend.services import run_results, runs
from backend.services.diagnoses import IMPORTED

_ID = path("run_id", "The run's id.")


class RunChangeSerializer(serializers.Serializer[Any]):
    """What can be changed about a run: what people call it, and whether it is kept."""

    label = serializers.CharField(required=False, allow_blank=True, max_length=200)  # type: ignore[assignment]  # ours
    pinned = serializers.BooleanField(required=False)


class RunsView(Endpoint):
    @extend_schema(
        operation_id="runs_list",
        summary="List runs, newest first",
        parameters=[
            query("knowledge_base", "Only runs over this base.", type=OpenApiTypes.UUID),
            query("question_set", "Only runs of this set, whatever its version.", type=OpenApiTypes.UUID),
            query("mode", "Only this mode.", enum=[*MODES, IMPORTED]),
            query("since", "Only runs made at or after this time.", type=OpenApiTypes.DATETIME),
            *PAGING,
        ],
        responses={200: answer(page_of(RunSerializer, name="Run"), "A page."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request) -> Response:
        params = request.query_params
        found = queries.of(
            self.workspace,
            knowledge_base=params.get("knowledge_base", ""),
            question_set=params.get("question_set", ""),
            mode=_mode(params.get("mode", "")),
            since=_time(params.get("since", "")),
        )
        return self.page(found, lambda rows: RunSerializer([queries.row(one) for one in rows], many=True).data)


class RunView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.EVALUATE, "DELETE": Scope.EVALUATE}

    @extend_schema(
        operation_id="runs_read",
        summary="Read a run",
        parameters=[_ID],
        responses={200: answer(RunSerializer, "The record."), **problems(404)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(RunSerializer(queries.row(queries.get_run(self.workspace, run_id))).data)

    @extend_schema(
        operation_id="runs_change",
        summary="Label or pin a run",
        parameters=[_ID],
        request=RunChangeSerializer,
        examples=[example({"label": "before the new chunking", "pinned": True})],
        responses={200: answer(RunSerializer, "The record as it is now."), **problems(400, 404, 415, 422)},
        tags=["runs"],
    )
    def patch(self, request: Request, run_id: str) -> Response:
        body = read_object(request, known=("label", "pinned"))
        given = RunChangeSerializer(data=body)
        given.is_valid(raise_exception=True)
        changed = runs.update(self.workspace, as_uuid(run_id, what="run"), **given.validated_data)
        return Response(RunSerializer(queries.row(queries.get_run(self.workspace, changed.id))).data)

    @extend_schema(
        operation_id="runs_delete",
        summary="Delete a run with its results",
        parameters=[_ID, FORCE],
        responses={204: answer(None, "It is gone."), **problems(404, 409, 422)},
        tags=["runs"],
    )
    def delete(self, request: Request, run_id: str) -> Response:
        runs.delete(self.workspace, as_uuid(run_id, what="run"), force=read_flag(request, "force"))
        return Response(status=204)


class RunResultsView(Endpoint):
    @extend_schema(
        operation_id="runs_results",
        summary="What became of each question",
        description=(
            "`found` and `missed` are derived at `k`. A missed question tells what was found instead; the first "
            "relevant passage, however deep, shows its rank in each stage, and `cause` says where it was lost."
        ),
        parameters=[
            _ID,
            query("outcome", "Only these.", enum=[one.value for one in results.Shown]),
            query("tag", "Only questions with this tag."),
            query("must_pass", "Only questions marked so.", type=bool),
            query("k", "At which rank found and missed part. Default: the run's top_k.", type=int),
            query("order", "How to sort; `-` for descending.", enum=list(results.ORDERS)),
            *PAGING,
        ],
        responses={200: answer(page_of(ResultSerializer, name="Result"), "A page."), **problems(404, 422)},
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> Response:
        run = queries.get_run(self.workspace, run_id)
        k = results.check_k(run, read_whole(request, "k"))
        found = results.of(
            run,
            k=k,
            outcome=results.outcome_of(request.query_params.get("outcome", "")),
            tag=request.query_params.get("tag", ""),
            must_pass=read_flag(request, "must_pass"),
        )
        return self.page(
            found,
            lambda rows: ResultSerializer(run_results.shown(run, rows, k), many=True).data,
            order=results.order_of(request.query_params.get("order", "")),
        )


def _mode(text: str) -> str:
    base, suffix = text.removesuffix("_rerank"), "_rerank" if text.endswith("_rerank") else ""
    mode = ALIASES.get(base, base) + suffix
    if mode and mode not in {*MODES, IMPORTED}:
        raise invalid(f"There is no mode {text!r}. There are: {', '.join([*MODES, IMPORTED])}.", "mode")
    return mode


def _time(text: str) -> datetime | None:
    """RFC 3339, or a date alone, which begins at midnight UTC."""
    if not text:
        return None
    try:
        # A `+` that was not escaped arrives as a space.
        found = parse_datetime(text.replace(" ", "+")) if "T" in text else None
        if found is None:
            day = parse_date(text)
            found = (
                None if day is None else datetime(day.year, day.month, day.day, tzinfo=timezone.get_default_timezone())
            )
    except ValueError:
        found = None
    if found is None:
        raise invalid(f"since is a time such as 2026-01-31T12:00:00Z, not {text!r}.", "since")
    return found if timezone.is_aware(found) else timezone.make_aware(found)
