"""`gates`: rules that a run has to keep, checked at once, by schedule, or over what is past."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.gate_shapes import (
    CheckedSerializer,
    CheckRequestSerializer,
    CheckSerializer,
    DryRunRequestSerializer,
    DryRunSerializer,
    GateChangeSerializer,
    GateRequestSerializer,
    GateSerializer,
)
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.core.reports.gate import to_junit, to_markdown
from backend.models import Gate, Schedule, Scope
from backend.queries import gates as queries
from backend.queries import schedules as schedule_queries
from backend.services import gate_reports, gates
from backend.services.gates import Checked
from backend.services.idempotency import Answer

_ID = path("gate_id", "The gate's id.")
_FIELDS = ("name", "rules", "schedule", "enabled")
_FORMS = {"junit": to_junit, "markdown": to_markdown}
_EXAMPLE = {
    "name": "merge",
    "rules": [
        {"rule": "floor", "metric": "mrr@10", "least": 0.7},
        {"rule": "significant_drop"},
        {"rule": "must_pass"},
        {"rule": "latency", "most": 800, "run": "hybrid"},
    ],
}


class GatesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.SCHEDULES}

    @extend_schema(
        operation_id="gates_list",
        summary="List gates, newest first",
        parameters=PAGING,
        responses={200: answer(page_of(GateSerializer, name="Gate"), "A page."), **problems(422)},
        tags=["gates"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(queries.of(self.workspace), lambda rows: GateSerializer(queries.rows(rows), many=True).data)

    @extend_schema(
        operation_id="gates_create",
        summary="Make a gate",
        parameters=[IDEMPOTENCY_KEY],
        request=GateRequestSerializer,
        examples=[example(_EXAMPLE)],
        responses={201: answer(GateSerializer, "The gate."), **problems(400, 404, 409, 415, 422)},
        tags=["gates"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)

        def make() -> Answer:
            values = self._values(body)
            gate = gates.create(
                self.workspace,
                name=values.get("name", ""),
                rules=values.get("rules"),
                schedule=values.get("schedule"),
                enabled=values.get("enabled", True),
            )
            location = request.build_absolute_uri(f"/api/v1/gates/{gate.id}")
            return Answer(status=201, body=as_json(_shown(gate)), location=location)

        return self.once(make, body=body)

    def _values(self, body: dict[str, Any]) -> dict[str, Any]:
        if not body.get("name"):
            raise invalid("name is a text of 1 to 200 characters.", "name")
        return _read(self, body)


class GateView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.SCHEDULES, "DELETE": Scope.SCHEDULES}

    @extend_schema(
        operation_id="gates_read",
        summary="Read a gate",
        parameters=[_ID],
        responses={200: answer(GateSerializer, "The gate."), **problems(404)},
        tags=["gates"],
    )
    def get(self, request: Request, gate_id: str) -> Response:  # noqa: ARG002  the framework's signature
        return Response(_shown(queries.get_gate(self.workspace, gate_id)))

    @extend_schema(
        operation_id="gates_change",
        summary="Change a gate",
        description="What it said before stays as it was.",
        parameters=[_ID],
        request=GateChangeSerializer,
        examples=[example({"enabled": False})],
        responses={200: answer(GateSerializer, "The gate as it is now."), **problems(400, 404, 409, 415, 422)},
        tags=["gates"],
    )
    def patch(self, request: Request, gate_id: str) -> Response:
        gate = queries.get_gate(self.workspace, gate_id)
        changes = _read(self, read_object(request, known=_FIELDS))
        gates.update(gate, changes=changes)
        return Response(_shown(queries.get_gate(self.workspace, gate_id)))

    @extend_schema(
        operation_id="gates_delete",
        summary="Delete a gate with what it said",
        parameters=[_ID],
        responses={204: answer(None, "It is gone."), **problems(404)},
        tags=["gates"],
    )
    def delete(self, request: Request, gate_id: str) -> Response:  # noqa: ARG002  the framework's signature
        gates.delete(queries.get_gate(self.workspace, gate_id), now=timezone.now())
        return Response(status=204)


class GateChecksView(Endpoint):
    @extend_schema(
        operation_id="gates_checks",
        summary="What a gate said, the latest first",
        parameters=[_ID, *PAGING],
        responses={200: answer(page_of(CheckSerializer, name="GateCheck"), "A page."), **problems(404, 422)},
        tags=["gates"],
    )
    def get(self, request: Request, gate_id: str) -> Response:  # noqa: ARG002  the framework's signature
        found = queries.checks_of(queries.get_gate(self.workspace, gate_id))
        return self.page(found, lambda rows: CheckSerializer([queries.check_row(one) for one in rows], many=True).data)


class GateCheckView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="gates_check",
        summary="Check a run or an evaluation",
        description=(
            "By a gate or by rules sent along; nothing is stored and nobody is told. A rule that cannot be shown to be "
            "kept is not kept: questions without a result, changed labels and a missing baseline fail the gate."
        ),
        request=CheckRequestSerializer,
        examples=[
            example(
                {
                    "evaluation": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11",
                    "rules": _EXAMPLE["rules"],
                    "include": ["markdown"],
                }
            )
        ],
        responses={200: answer(CheckedSerializer, "What it says."), **problems(400, 404, 415, 422)},
        tags=["gates"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("run", "evaluation", "gate", "rules", "baseline", "include"))
        for name in ("run", "evaluation", "gate", "baseline"):
            if not isinstance(body.get(name, ""), str):
                raise invalid(f"{name} is an id.", name)
        if bool(body.get("run")) == bool(body.get("evaluation")):
            raise invalid("Name a run or an evaluation.", "evaluation")
        if bool(body.get("gate")) == ("rules" in body):
            raise invalid("Name a gate, or send rules.", "rules")
        include = body.get("include", [])
        if not isinstance(include, list) or not all(one in _FORMS for one in include):
            raise invalid(f"include is a list of {', '.join(_FORMS)}.", "include")
        gate = queries.get_gate(self.workspace, body["gate"]) if body.get("gate") else None
        rules = gates.rules_of(gate) if gate is not None else gates.parse(body["rules"])
        runs = gates.find(self.workspace, run=body.get("run", ""), evaluation=body.get("evaluation", ""))
        checked = gates.check(self.workspace, runs, rules, baseline=body.get("baseline", ""))
        told = gate_reports.of(checked, name=gate.name if gate is not None else "")
        return Response({**_checked(checked), **{one: _FORMS[one](told) for one in include}})


class GateDryRunView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="gates_dry_run",
        summary="What a gate would have said of past evaluations",
        description="Compared with the baselines in force today. Nothing is stored and nobody is told.",
        parameters=[_ID],
        request=DryRunRequestSerializer,
        examples=[example({"limit": 10})],
        responses={200: answer(DryRunSerializer, "Newest first."), **problems(400, 404, 415, 422)},
        tags=["gates"],
    )
    def post(self, request: Request, gate_id: str) -> Response:
        gate = queries.get_gate(self.workspace, gate_id)
        given = DryRunRequestSerializer(data=read_object(request, known=("limit", "question_set")))
        given.is_valid(raise_exception=True)
        values = given.validated_data
        past = gates.dry_run(gate, limit=values.get("limit", 20), question_set=values.get("question_set"))
        return Response({"checks": [_checked(one) for one in past]})


def _read(view: Endpoint, body: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, each of its kind; a schedule by id, of this workspace."""
    values = dict(body)
    if "name" in values and (not isinstance(values["name"], str) or not 0 < len(values["name"]) <= gates.MAX_NAME):
        raise invalid(f"name is a text of 1 to {gates.MAX_NAME} characters.", "name")
    if "enabled" in values and not isinstance(values["enabled"], bool):
        raise invalid("enabled is true or false.", "enabled")
    if values.get("schedule") is not None:
        values["schedule"] = _schedule(view, values["schedule"])
    return values


def _schedule(view: Endpoint, key: Any) -> Schedule:
    if not isinstance(key, str):
        raise invalid("schedule is an id, or null.", "schedule")
    return schedule_queries.get_schedule(view.workspace, key)


def _shown(gate: Gate) -> Any:
    return GateSerializer(queries.rows([queries.of(gate.workspace).get(id=gate.id)])[0]).data


def _checked(checked: Checked) -> dict[str, Any]:
    """A CheckedSerializer's data."""
    report = gates.report_json(checked.report)
    return {
        **report,
        "exit_code": checked.report.exit_code,
        "evaluation": str(checked.evaluation.id),
        "runs": [
            {
                "run": str(one.run.id),
                "name": one.run.name,
                "baseline": None if one.baseline is None else str(one.baseline.id),
                "k": one.k,
                "lost": [{"id": lost.id, "question": lost.question} for lost in one.lost],
            }
            for one in checked.runs
        ],
    }
