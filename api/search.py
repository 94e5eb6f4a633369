"""`POST search`: one question, one or several modes, with the reasons."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_object
from api.enums import LEVELS
from api.evaluation_request import ConfigurationSerializer, ScopeSerializer
from api.run_shapes import StageSerializer
from api.schema import answer, example, problems
from backend.core.configs import MODES
from backend.core.types import Level
from backend.models import Scope
from backend.services import search
from backend.services.search import ModeAnswer, SearchAnswer, SearchResult

_FIELDS = ("query", "scope", "mode", "modes", "configurations", "reranker", "top_k", "level")


class SearchRequestSerializer(serializers.Serializer[Any]):
    """One question. Without a mode: hybrid. `modes` may be the word `all`."""

    query = serializers.CharField(max_length=search.MAX_QUERY)
    scope = ScopeSerializer()
    mode = serializers.ChoiceField(choices=list(MODES), required=False)
    modes = serializers.ListField(child=serializers.ChoiceField(choices=list(MODES)), required=False)
    configurations = ConfigurationSerializer(many=True, required=False)
    reranker = serializers.CharField(required=False)
    top_k = serializers.IntegerField(required=False, min_value=1, max_value=search.MAX_TOP_K)
    level = serializers.ChoiceField(choices=LEVELS, required=False)


class DocumentRefSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    path = serializers.CharField()
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # a field of ours, not the base class's
    collection = serializers.CharField(allow_blank=True)


class PassageSerializer(serializers.Serializer[Any]):
    """`start` and `end` are characters of the document's text."""

    id = serializers.CharField()
    ordinal = serializers.IntegerField()
    text = serializers.CharField()
    heading = serializers.CharField(allow_blank=True)
    page = serializers.IntegerField(allow_null=True)
    start = serializers.IntegerField()
    end = serializers.IntegerField()


class SnippetSerializer(serializers.Serializer[Any]):
    """A part of the passage, from its character `start`. `marks` are [start, end] in `text`: the words that matched."""

    text = serializers.CharField(allow_blank=True)
    start = serializers.IntegerField()
    marks = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))


class SearchResultSerializer(serializers.Serializer[Any]):
    """`stages`: its rank and score in `meaning`, `words`, `fused`, `reranker`; null where a stage did not rank it."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()
    document = DocumentRefSerializer()
    passage = PassageSerializer()
    snippet = SnippetSerializer()
    stages = serializers.DictField(child=StageSerializer(allow_null=True))
    reason = serializers.CharField()


class SearchFailureSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    reason = serializers.CharField()


class ModeAnswerSerializer(serializers.Serializer[Any]):
    """What one mode found. `degraded`: answered by less than was asked for, as a warning says."""

    name = serializers.CharField()
    mode = serializers.CharField()
    n_results = serializers.IntegerField()
    depth = serializers.IntegerField()
    leg_sizes = serializers.DictField(child=serializers.IntegerField())
    timings_ms = serializers.DictField(child=serializers.FloatField())
    degraded = serializers.BooleanField()
    failure = SearchFailureSerializer(allow_null=True)
    results = SearchResultSerializer(many=True)


class SearchAnswerSerializer(serializers.Serializer[Any]):
    query = serializers.CharField()
    scope = serializers.DictField()
    level = serializers.ChoiceField(choices=LEVELS)
    warnings = serializers.ListField(child=serializers.CharField())
    modes = ModeAnswerSerializer(many=True)


class SearchView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}

    @extend_schema(
        operation_id="search",
        summary="Search, with reasons",
        description=(
            "The same legs as a run. When the embedder is down this answers by keywords, with a warning; an evaluation "
            "never does."
        ),
        request=SearchRequestSerializer,
        examples=[
            example(
                {
                    "query": "How many days of parental leave do I get?",
                    "scope": {"knowledge_base": "0192f0c0-11aa-7f00-8000-000000000001"},
                    "modes": ["keyword", "hybrid"],
                    "top_k": 5,
                }
            )
        ],
        responses={200: answer(SearchAnswerSerializer, "The answer."), **problems(400, 404, 409, 415, 422, 503)},
        tags=["search"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)
        body = {name: value for name, value in body.items() if value is not None}
        found = search.search(
            workspace=self.workspace,
            scope_request=body.get("scope") or {},
            query=_text(body, "query"),
            modes=_modes(body),
            configurations=_list(body, "configurations"),
            top_k=_whole(body, "top_k", default=10),
            level=_level(body),
            reranker=_text(body, "reranker"),
        )
        return Response(_shown(found))


def _shown(found: SearchAnswer) -> dict[str, Any]:
    """A SearchAnswerSerializer's data; written out, since it is what every keystroke of a search page waits for."""
    return {
        "query": found.query,
        "scope": found.scope,
        "level": found.level.value,
        "warnings": list(found.warnings),
        "modes": [_mode(one) for one in found.modes],
    }


def _mode(found: ModeAnswer) -> dict[str, Any]:
    failure = found.failure
    return {
        "name": found.name,
        "mode": found.mode,
        "n_results": found.n_results,
        "depth": found.depth,
        "leg_sizes": dict(found.leg_sizes),
        "timings_ms": {name: round(taken, 3) for name, taken in found.timings_ms.items()},
        "degraded": found.degraded,
        "failure": None if failure is None else {"code": failure.code.value, "reason": failure.reason},
        "results": [_result(one) for one in found.results],
    }


def _result(found: SearchResult) -> dict[str, Any]:
    passage = found.passage
    return {
        "rank": found.rank,
        "score": found.score,
        "document": {
            "id": passage.document_id,
            "path": passage.path,
            "source": passage.source,
            "collection": passage.collection,
        },
        "passage": {
            "id": passage.id,
            "ordinal": passage.ordinal,
            "text": passage.text,
            "heading": passage.heading,
            "page": passage.page,
            "start": passage.start,
            "end": passage.end,
        },
        "snippet": {
            "text": found.snippet.text,
            "start": found.snippet.start,
            "marks": [list(mark) for mark in found.snippet.marks],
        },
        "stages": {
            name: {"rank": stage.rank, "score": stage.score} if (stage := found.stages.get(name)) else None
            for name in ("meaning", "words", "fused", "reranker")
        },
        "reason": found.reason,
    }


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise invalid(f"{name} is a text, not {value!r}.", name)
    return value


def _list(body: dict[str, Any], name: str) -> list[Any] | None:
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise invalid(f"{name} is a list, not {value!r}.", name)
    return value


def _whole(body: dict[str, Any], name: str, *, default: int) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(f"{name} is a whole number, not {value!r}.", name)
    return value


def _modes(body: dict[str, Any]) -> list[Any] | None:
    if body.get("modes") == "all":
        return list(MODES)
    modes = _list(body, "modes")
    if "mode" in body:
        if modes is not None:
            raise invalid("Say either mode or modes.", "mode")
        return [body["mode"]]
    return modes


def _level(body: dict[str, Any]) -> Level | None:
    value = body.get("level")
    if value is not None and value not in list(Level):  # a list: what came need not be hashable
        raise invalid(f"level is one of {', '.join(Level)}, not {value!r}.", "level")
    return None if value is None else Level(value)
