"""`question-sets/{id}/preflight`: what a set's labels find in a scope, before a run."""

from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_object
from api.evaluation_request import ScopeSerializer
from api.jobs import JOB_ACCEPTED, accepted
from api.question_sets import SET_ID
from api.schema import IDEMPOTENCY_KEY, answer, example, problems
from backend.core.resolving import FindingKind
from backend.models import Scope
from backend.queries import questions as queries
from backend.services import long_jobs, preflight, scopes
from backend.services.preflight import Severity

_FIELDS = ("scope", "version")
_EXAMPLE = {
    "version": 1,
    "n_questions": 20,
    "n_expectations": 21,
    "n_resolved": 20,
    "n_findings": 1,
    "n_errors": 1,
    "counts": {"no_document": 1},
    "findings": [
        {
            "ordinal": 4,
            "key": "q5",
            "question": "Who approves a trip?",
            "line": 5,
            "kind": "no_document",
            "severity": "error",
            "message": "No document is named so: /srv/handbook/policies/x.pdf. Did you mean policies/x.pdf?",
            "label": "/srv/handbook/policies/x.pdf",
            "nearest": ["policies/x.pdf"],
            "documents": [],
        }
    ],
}


class PreflightRequestSerializer(serializers.Serializer[Any]):
    """The scope as for an evaluation. Without `version` the latest."""

    scope = ScopeSerializer()
    version = serializers.IntegerField(required=False, min_value=1)


class FindingSerializer(serializers.Serializer[Any]):
    """`nearest`: names the label may have meant. `documents`: paths that the finding is about."""

    ordinal = serializers.IntegerField()
    key = serializers.CharField()
    question = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    kind = serializers.ChoiceField(choices=[kind.value for kind in FindingKind])
    severity = serializers.ChoiceField(choices=[severity.value for severity in Severity])
    message = serializers.CharField()
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # a field of ours, not the base class's
    nearest = serializers.ListField(child=serializers.CharField())
    documents = serializers.ListField(child=serializers.CharField())


class PreflightSerializer(serializers.Serializer[Any]):
    """`n_resolved` of `n_expectations` can be found. `counts`: all findings by kind; `findings`: the first thousand,
    errors first."""

    version = serializers.IntegerField()
    n_questions = serializers.IntegerField()
    n_expectations = serializers.IntegerField()
    n_resolved = serializers.IntegerField()
    n_findings = serializers.IntegerField()
    n_errors = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField())
    findings = FindingSerializer(many=True)


class PreflightView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="question_sets_preflight",
        summary="Check a set's labels against a scope",
        description=(
            "Labels that match nothing with the nearest names, texts that cross a chunk border, documents that are not"
            " indexed or outside the scope; repeats, leaks, passage ids. Changes nothing. The first call for a corpus"
            " reads the passages that labels look at; the next ones do not. Over 5,000 questions it is a job, whose"
            " file is the answer."
        ),
        parameters=[SET_ID, IDEMPOTENCY_KEY],
        request=PreflightRequestSerializer,
        examples=[example({"scope": {"knowledge_base": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"}})],
        responses={
            200: answer(PreflightSerializer, "The report.", example=_EXAMPLE),
            202: JOB_ACCEPTED,
            **problems(400, 404, 409, 415, 422),
        },
        tags=["question sets"],
    )
    def post(self, request: Request, set_id: str) -> Response:
        body = read_object(request, known=_FIELDS)
        number = body.get("version")
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise invalid(f"version is a whole number from 1 on, not {number!r}.", "version")
        version = queries.get_version(queries.get_set(self.workspace, set_id), number)
        scope = body.get("scope")
        if not isinstance(scope, dict):
            raise invalid("scope is an object such as {'knowledge_base': ID}.", "scope")
        if long_jobs.is_long(version.n_questions):
            scopes.resolve(self.workspace, scope)
            begin = partial(long_jobs.start_preflight, self.workspace, version, scope, created_by=self.caller.id)
            return self.once(lambda: accepted(request, begin()), body=body)
        return Response(long_jobs.preflight_as_json(preflight.run(self.workspace, version, scope)))
