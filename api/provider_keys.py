"""`provider-keys`: a workspace's own keys. What was given is never shown again, to nobody."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.models import ProviderKey, Scope
from backend.queries import access
from backend.services import provider_keys
from backend.services.idempotency import Answer
from backend.services.provider_keys import Given

_FIELDS = ("provider", "key", "base_url", "shape", "model")
_PROVIDER = path("provider", "`openai`, `cohere` or `http:NAME`.")


class ProviderKeySerializer(serializers.ModelSerializer[ProviderKey]):
    """Without the key. `fingerprint` tells two keys apart: a hash over workspace and key."""

    class Meta:
        model = ProviderKey
        fields = ("provider", "fingerprint", "base_url", "shape", "model", "created_at", "changed_at")
        read_only_fields = fields


class ProviderKeyRequestSerializer(serializers.Serializer[Any]):
    provider = serializers.CharField(help_text="`openai`, `cohere`, or `http:NAME` for a rerank server.")
    key = serializers.CharField(write_only=True, help_text="Of a rerank server it may be empty.")
    base_url = serializers.URLField(
        required=False, help_text="An address of one's own: https, and not of the inside. Left out: the installation's."
    )
    shape = serializers.CharField(required=False, help_text="Of a rerank server: tei, jina, vllm, llamacpp or cohere.")
    model = serializers.CharField(required=False, help_text="Of a rerank server.")


class ProviderKeysView(Endpoint):
    required_scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @extend_schema(
        operation_id="provider_keys_list",
        summary="List the workspace's provider keys",
        description="Which there are; not what they are.",
        parameters=PAGING,
        responses={200: answer(page_of(ProviderKeySerializer, name="ProviderKey"), "A page."), **problems(422)},
        tags=["access"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(
            access.keys_of(self.workspace), lambda rows: ProviderKeySerializer(rows, many=True).data, order=("id",)
        )

    @extend_schema(
        operation_id="provider_keys_keep",
        summary="Give a provider's key",
        description="It is used in place of the installation's from now on, and of the one given before.",
        parameters=[IDEMPOTENCY_KEY],
        request=ProviderKeyRequestSerializer,
        examples=[example({"provider": "cohere", "key": "the-key"})],
        responses={201: answer(ProviderKeySerializer, "Kept, sealed."), **problems(400, 409, 413, 415, 422)},
        tags=["access"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)
        for name in _FIELDS:
            if not isinstance(body.get(name, ""), str):
                # The value is not told: it may be a key in the wrong form.
                raise invalid(f"{name} is a text.", name)
        given = Given(**{name: str(body.get(name, "")) for name in _FIELDS})

        def keep() -> Answer:
            row = provider_keys.keep(self.workspace, given, now=timezone.now())
            return Answer(
                status=201,
                body=as_json(ProviderKeySerializer(row).data),
                location=request.build_absolute_uri(f"{request.path}/{row.provider}"),
            )

        return self.once(keep, body=body)


class ProviderKeyView(Endpoint):
    required_scopes: ClassVar = {"GET": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="provider_keys_read",
        summary="Read about a provider's key",
        parameters=[_PROVIDER],
        responses={200: answer(ProviderKeySerializer, "Without the key."), **problems(404)},
        tags=["access"],
    )
    def get(self, request: Request, provider: str) -> Response:  # noqa: ARG002  as above
        return Response(ProviderKeySerializer(access.key_of(self.workspace, provider)).data)

    @extend_schema(
        operation_id="provider_keys_remove",
        summary="Take a provider's key away",
        description="The installation's is used from now on, where it has one.",
        parameters=[_PROVIDER],
        responses={204: answer(None, "Gone."), **problems(404)},
        tags=["access"],
    )
    def delete(self, request: Request, provider: str) -> Response:  # noqa: ARG002  as above
        provider_keys.remove(self.workspace, provider)
        return Response(status=204)
