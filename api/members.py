"""`members`: who belongs to the workspace, and as what."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, invalid, read_object
from api.schema import IDEMPOTENCY_KEY, PAGING, answer, example, page_of, path, problems
from backend.models import Membership, Role, Scope
from backend.queries import access
from backend.queries.lookups import get
from backend.services import members
from backend.services.idempotency import Answer

_ID = path("member_id", "The membership's id.")
_ROLES = [role.value for role in Role]


class MemberSerializer(serializers.ModelSerializer[Membership]):
    name = serializers.CharField(source="user.username")
    last_login_at = serializers.DateTimeField(source="user.last_login", allow_null=True)

    class Meta:
        model = Membership
        fields = ("id", "name", "role", "created_at", "last_login_at")
        read_only_fields = fields


class LoginLinkSerializer(serializers.Serializer[Any]):
    login_url = serializers.URLField(help_text="Leads in once, within three days. Shown here only.")


class NewMemberSerializer(MemberSerializer):
    login_url = serializers.URLField(
        required=False, help_text="For whoever has no password yet: leads in once, within three days. Shown here only."
    )

    class Meta(MemberSerializer.Meta):
        fields = (*MemberSerializer.Meta.fields, "login_url")  # type: ignore[assignment]  # one more


class MemberRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(_ROLES)


class RoleRequestSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(_ROLES)


class MembersView(Endpoint):
    required_scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @extend_schema(
        operation_id="members_list",
        summary="List members",
        parameters=PAGING,
        responses={200: answer(page_of(MemberSerializer, name="Member"), "A page."), **problems(422)},
        tags=["access"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        return self.page(
            access.members_of(self.workspace), lambda rows: MemberSerializer(rows, many=True).data, order=("id",)
        )

    @extend_schema(
        operation_id="members_add",
        summary="Add a member",
        description="Whoever has no account yet gets one, and a link to log in with.",
        parameters=[IDEMPOTENCY_KEY],
        request=MemberRequestSerializer,
        examples=[example({"name": "amina", "role": "editor"})],
        responses={201: answer(NewMemberSerializer, "Added."), **problems(400, 409, 413, 415, 422)},
        tags=["access"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("name", "role"))
        told: dict[str, str] = {}

        def add() -> Answer:
            name = body.get("name")
            if not isinstance(name, str):
                raise invalid("A member needs a name.", "name")
            added = members.add(self.workspace, name=name, role=str(body.get("role", "")), now=timezone.now())
            if added.login_path:
                told["login_url"] = request.build_absolute_uri(added.login_path)
            return Answer(
                status=201,
                body=as_json(MemberSerializer(added.member).data),
                location=request.build_absolute_uri(f"{request.path}/{added.member.id}"),
            )

        response = self.once(add, body=body)
        # Not in the answer that is kept: the link is a key, and kept nowhere.
        response.data = {**response.data, **told}
        return response


class MemberView(Endpoint):
    required_scopes: ClassVar = {"GET": Scope.ADMIN, "PATCH": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="members_read",
        summary="Read a member",
        parameters=[_ID],
        responses={200: answer(MemberSerializer, "The member."), **problems(404)},
        tags=["access"],
    )
    def get(self, request: Request, member_id: str) -> Response:  # noqa: ARG002  as above
        return Response(MemberSerializer(self._member(member_id)).data)

    @extend_schema(
        operation_id="members_change",
        summary="Give a member another role",
        description="The member's tokens hold no more than the role from now on.",
        parameters=[_ID],
        request=RoleRequestSerializer,
        examples=[example({"role": "viewer"})],
        responses={200: answer(MemberSerializer, "As it is now."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["access"],
    )
    def patch(self, request: Request, member_id: str) -> Response:
        member = self._member(member_id)
        body = read_object(request, known=("role",))
        return Response(MemberSerializer(members.change(member, role=str(body.get("role", "")))).data)

    @extend_schema(
        operation_id="members_remove",
        summary="Remove a member",
        description="The member's tokens of this workspace end with it.",
        parameters=[_ID],
        responses={204: answer(None, "Removed."), **problems(404, 409)},
        tags=["access"],
    )
    def delete(self, request: Request, member_id: str) -> Response:  # noqa: ARG002  as above
        members.remove(self._member(member_id), now=timezone.now())
        return Response(status=204)

    def _member(self, member_id: str) -> Membership:
        return get(access.members_of(self.workspace), member_id, what="member")


class MemberLoginLinkView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.ADMIN}

    @extend_schema(
        operation_id="members_login_link",
        summary="Make a login link for a member",
        description="For a member without a password who belongs to this workspace only.",
        parameters=[_ID],
        request=None,
        responses={201: answer(LoginLinkSerializer, "Made; shown here only."), **problems(404, 409)},
        tags=["access"],
    )
    def post(self, request: Request, member_id: str) -> Response:
        member = get(access.members_of(self.workspace), member_id, what="member")
        link = request.build_absolute_uri(members.login_link(member, now=timezone.now()))
        return Response({"login_url": link}, status=201, headers={"Cache-Control": "no-store"})
