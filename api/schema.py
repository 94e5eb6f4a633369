"""What the API's description needs beside the serializers: the error answers, and the shape of a page."""

from collections.abc import Iterable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    inline_serializer,
)
from rest_framework import serializers

from api.errors import CONTENT_TYPE, TITLES

_WHEN = {
    400: "The body is no JSON, or no form.",
    401: "No token, or one that is not valid (any more).",
    403: "The token lacks the scope this needs.",
    404: "No such thing in this workspace; another workspace's is the same.",
    409: "The state of things forbids it now.",
    413: "Larger than this address takes.",
    415: "Another media type than this address takes.",
    422: "A field cannot be used; every fault is in `errors`.",
    429: "More requests than this token or user may make: wait as `Retry-After` says.",
    503: "A provider or the database does not answer now.",
}
_CODES = {
    400: ("VALIDATION", "JSON parse error - Expecting value: line 1 column 1 (char 0)"),
    401: ("UNAUTHENTICATED", "This token is not valid: it was revoked, has expired or was never given."),
    403: ("FORBIDDEN", "This needs the scope knowledge-bases:write, which your token does not have."),
    404: ("NOT_FOUND", "There is no run 0192f0c1-… in this workspace."),
    409: ("CONFLICT", "This evaluation is completed: there is nothing left to cancel."),
    413: ("EVAL_TOO_LARGE", "The request has more than 51 MiB: send less, or in parts."),
    415: ("VALIDATION", 'Unsupported media type "text/plain" in request.'),
    422: ("VALIDATION", "There is no field 'topk'. Did you mean top_k?"),
    429: ("RATE_LIMITED", "Request was throttled. Expected available in 2 seconds."),
    503: ("PROVIDER_UNAVAILABLE", "The embedder does not answer."),
}


class FaultSerializer(serializers.Serializer[Any]):
    """One of several faults."""

    code = serializers.CharField()
    detail = serializers.CharField()
    line = serializers.IntegerField(required=False)
    field = serializers.CharField(required=False)


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457. `code` is what scripts match on; `detail` is a sentence to act on."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    line = serializers.IntegerField(required=False)
    field = serializers.CharField(required=False)
    errors = FaultSerializer(many=True, required=False)  # type: ignore[assignment]  # a field of ours, as named in the RFC
    n_errors = serializers.IntegerField(required=False, help_text="How many there are.")


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """The error answers of an operation; 401, 403 and 429 are every operation's."""
    return {
        (status, CONTENT_TYPE): OpenApiResponse(
            response=ProblemSerializer,
            description=_WHEN[status],
            examples=[
                OpenApiExample(
                    TITLES[status],
                    value={
                        "type": f"urn:touchstone:error:{_CODES[status][0]}",
                        "title": TITLES[status],
                        "status": status,
                        "detail": _CODES[status][1],
                        "code": _CODES[status][0],
                        "request_id": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11",
                    },
                    media_type=CONTENT_TYPE,
                    status_codes=[str(status)],
                )
            ],
        )
        for status in sorted({401, 403, 429, *statuses})
    }


def page_of(serializer: type[serializers.Serializer[Any]], *, name: str) -> serializers.Serializer[Any]:
    """A page of a list: its rows, and where the next one is."""
    return inline_serializer(
        name=f"{name}Page",
        fields={
            "results": serializer(many=True),
            "next": serializers.URLField(allow_null=True, help_text="The next page; null: this is the last."),
        },
    )


def answer(serializer: Any, description: str, *, example: Any = None) -> OpenApiResponse:
    examples = [] if example is None else [OpenApiExample("Example", value=example, response_only=True)]
    return OpenApiResponse(response=serializer, description=description, examples=examples)


def files(media_types: Iterable[str], description: str) -> dict[tuple[int, str], OpenApiResponse]:
    """A file as the answer, in each form that there is."""
    return {
        (200, media_type.partition(";")[0]): OpenApiResponse(response=OpenApiTypes.BINARY, description=description)
        for media_type in media_types
    }


def example(value: Any, *, name: str = "Example") -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=True)


def query(name: str, description: str, *, type: Any = str, enum: Any = None) -> OpenApiParameter:  # noqa: A002
    return OpenApiParameter(name, type, OpenApiParameter.QUERY, description=description, enum=enum)


PAGING = [
    query("cursor", "Where the page begins: from `next` of the one before."),
    query("limit", "How many rows a page has at most: 1 to 500.", type=int),
]
FORCE = query("force", "Delete it although an open evaluation uses it; that one is cancelled.", type=bool)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The same key, body and address give the first answer again for 24 hours; another body is 409.",
)


def path(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description=description)
