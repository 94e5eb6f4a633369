"""`tokens`: shown once, never with more than their maker may do, gone when told."""

from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, invalid, read_object
from api.schema import PAGING, answer, example, page_of, path, problems
from backend.core.errors import ErrorCode, TouchstoneError
from backend.models import Scope, Token
from backend.queries import access
from backend.queries.lookups import get
from backend.services import tokens

_ID = path("token_id", "The token's id.")
_FIELDS = ("name", "scopes", "expires_at", "service")


class TokenSerializer(serializers.ModelSerializer[Token]):
    """A token as it is shown later: without its text, of which `hint` is the beginning."""

    owner = serializers.CharField(
        source="user.username", default=None, allow_null=True, help_text="Null: nobody's, it belongs to the workspace."
    )

    class Meta:
        model = Token
        fields = ("id", "name", "hint", "scopes", "owner", "created_at", "expires_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class NewTokenSerializer(TokenSerializer):
    """The one answer that holds the token's text."""

    token = serializers.CharField(read_only=True, help_text="Shown here only.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]  # one more


class TokenRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
    scopes = serializers.ListField(child=serializers.ChoiceField([scope.value for scope in Scope]))
    expires_at = serializers.DateTimeField(required=False, allow_null=True, help_text="Null: not by itself.")
    service = serializers.BooleanField(
        default=False, help_text="It belongs to the workspace and outlives its maker's membership: for admins."
    )


class TokensView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.READ}
    is_audited = True

    @extend_schema(
        operation_id="tokens_list",
        summary="List tokens, newest first",
        description="One's own; an admin sees those of all members.",
        parameters=PAGING,
        responses={200: answer(page_of(TokenSerializer, name="Token"), "A page."), **problems(422)},
        tags=["access"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(_visible(self), lambda rows: TokenSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="tokens_create",
        summary="Make a token",
        description=(
            "The answer holds its text, which is nowhere kept. It can hold no scope that its maker lacks. With a token "
            "only an admin makes another one: whoever finds one must not be able to outlive its end."
        ),
        request=TokenRequestSerializer,
        examples=[example({"name": "nightly", "scopes": ["knowledge-bases:read", "knowledge-bases:evaluate"]})],
        responses={201: answer(NewTokenSerializer, "Made."), **problems(400, 413, 415, 422)},
        tags=["access"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=_FIELDS)
        who = self.caller
        is_admin = Scope.ADMIN in who.scopes
        if who.token is not None and not is_admin:
            raise TouchstoneError(
                ErrorCode.FORBIDDEN, "With a token only an admin makes tokens: log in to make one for yourself."
            )
        name, scopes, service = body.get("name"), body.get("scopes"), body.get("service", False)
        if not isinstance(name, str):
            raise invalid("A token needs a name.", "name")
        if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
            raise invalid("scopes is a list of scopes.", "scopes")
        if not isinstance(service, bool):
            raise invalid("service is true or false.", "service")
        if service and not is_admin:
            raise TouchstoneError(ErrorCode.FORBIDDEN, "Tokens of the workspace are made by its admins.")
        beyond = sorted(scope for scope in scopes if scope in set(Scope) and Scope(scope) not in who.scopes)
        if beyond:
            raise invalid(f"You cannot give what you do not have: {', '.join(beyond)}.", "scopes")
        made, plain = tokens.create(
            self.workspace,
            name=name,
            scopes=scopes,
            user=None if service else who.user,
            expires_at=_moment(body.get("expires_at")),
        )
        data = {**NewTokenSerializer(made).data, "token": plain}
        location = request.build_absolute_uri(f"{request.path}/{made.id}")
        return Response(data, status=201, headers={"Location": location, "Cache-Control": "no-store"})


class TokenView(Endpoint):
    required_scopes: ClassVar = {"DELETE": Scope.READ}
    is_audited = True

    @extend_schema(
        operation_id="tokens_read",
        summary="Read a token",
        parameters=[_ID],
        responses={200: answer(TokenSerializer, "As it is, without its text."), **problems(404)},
        tags=["access"],
    )
    def get(self, request: Request, token_id: str) -> Response:  # noqa: ARG002  as above
        return Response(TokenSerializer(get(_visible(self), token_id, what="token")).data)

    @extend_schema(
        operation_id="tokens_revoke",
        summary="Revoke a token",
        description="It opens nothing from now on, and stays listed.",
        parameters=[_ID],
        responses={204: answer(None, "Revoked, or was before."), **problems(404)},
        tags=["access"],
    )
    def delete(self, request: Request, token_id: str) -> Response:  # noqa: ARG002  as above
        tokens.revoke(get(_visible(self), token_id, what="token"), timezone.now())
        return Response(status=204)


def _visible(view: Endpoint) -> Any:
    """An admin's are all; a user's their own; those of a token that is nobody's: itself."""
    who = view.caller
    if Scope.ADMIN in who.scopes:
        return access.tokens_of(view.workspace, user=None)
    if who.user is not None:
        return access.tokens_of(view.workspace, user=who.user)
    found = access.tokens_of(view.workspace, user=None)
    return found.none() if who.token is None else found.filter(id=who.token.id)


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        found: datetime = serializers.DateTimeField().run_validation(value)
    except serializers.ValidationError:
        raise invalid("expires_at is a moment such as 2027-01-31T00:00:00Z.", "expires_at") from None
    return found
