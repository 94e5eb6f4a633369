"""`workspaces`: one's own, a new one, and the end of one."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.base import Endpoint, as_json, read_flag, read_object
from api.schema import IDEMPOTENCY_KEY, answer, example, path, problems, query
from backend.core.errors import ConflictError, NotFoundError
from backend.models import Role, Scope, Workspace
from backend.queries import access
from backend.queries.lookups import as_uuid
from backend.services import workspaces
from backend.services.idempotency import Answer

_ID = path("workspace_id", "The workspace's id: that of the token, or of `X-Workspace`.")
_FORCE = query("force", "Delete it with all it holds; what runs is cancelled.", type=bool)


class WorkspaceSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    role = serializers.ChoiceField(
        [role.value for role in Role], allow_null=True, help_text="One's role in it; null: the token is nobody's."
    )


class WorkspaceListSerializer(serializers.Serializer[Any]):
    results = WorkspaceSerializer(many=True)


class WorkspaceRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)


class WorkspacesView(Endpoint):
    required_scopes: ClassVar = {"POST": Scope.ADMIN}

    @extend_schema(
        operation_id="workspaces_list",
        summary="List one's workspaces",
        description="A token opens one; somebody who is logged in may belong to several.",
        responses={200: answer(WorkspaceListSerializer, "All of them."), **problems()},
        tags=["access"],
    )
    def get(self, request: Request) -> Response:  # noqa: ARG002  the framework's signature
        who = self.caller
        if who.user is None or who.token is not None:
            return Response(WorkspaceListSerializer({"results": [shown(self, self.workspace)]}).data)
        return Response(WorkspaceListSerializer({"results": access.workspaces_of(who.user)}).data)

    @extend_schema(
        operation_id="workspaces_create",
        summary="Make a workspace",
        description="Its maker is its first admin.",
        parameters=[IDEMPOTENCY_KEY],
        request=WorkspaceRequestSerializer,
        examples=[example({"name": "Support"})],
        responses={201: answer(WorkspaceSerializer, "Made."), **problems(400, 409, 413, 415, 422)},
        tags=["access"],
    )
    def post(self, request: Request) -> Response:
        body = read_object(request, known=("name",))

        def make() -> Answer:
            user = self.caller.user
            if user is None:
                raise ConflictError("This token is nobody's: a workspace is made by somebody who becomes its admin.")
            made = workspaces.create(str(body.get("name") or ""), owner=user)
            shown = WorkspaceSerializer(
                {"id": made.id, "name": made.name, "created_at": made.created_at, "role": Role.ADMIN}
            ).data
            return Answer(
                status=201, body=as_json(shown), location=request.build_absolute_uri(f"{request.path}/{made.id}")
            )

        return self.once(make, body=body)


class WorkspaceView(Endpoint):
    required_scopes: ClassVar = {"PATCH": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="workspaces_read",
        summary="Read a workspace",
        parameters=[_ID],
        responses={200: answer(WorkspaceSerializer, "The workspace."), **problems(404)},
        tags=["access"],
    )
    def get(self, request: Request, workspace_id: str) -> Response:  # noqa: ARG002  as above
        return Response(WorkspaceSerializer(shown(self, self._own(workspace_id))).data)

    @extend_schema(
        operation_id="workspaces_change",
        summary="Rename a workspace",
        parameters=[_ID],
        request=WorkspaceRequestSerializer,
        examples=[example({"name": "Support, EMEA"})],
        responses={200: answer(WorkspaceSerializer, "As it is now."), **problems(400, 404, 409, 413, 415, 422)},
        tags=["access"],
    )
    def patch(self, request: Request, workspace_id: str) -> Response:
        own = self._own(workspace_id)
        body = read_object(request, known=("name",))
        return Response(WorkspaceSerializer(shown(self, workspaces.rename(own, str(body.get("name") or "")))).data)

    @extend_schema(
        operation_id="workspaces_delete",
        summary="Delete a workspace",
        description="What it holds goes with it, its tokens too; its audit log stays with the installation.",
        parameters=[_ID, _FORCE],
        responses={204: answer(None, "Deleted."), **problems(404, 409, 422)},
        tags=["access"],
    )
    def delete(self, request: Request, workspace_id: str) -> Response:
        workspaces.delete(self._own(workspace_id), force=read_flag(request, "force"))
        return Response(status=204)

    def _own(self, workspace_id: str) -> Workspace:
        if as_uuid(workspace_id, what="workspace") != self.workspace.id:
            raise NotFoundError("workspace", workspace_id[:60])
        return self.workspace


def shown(view: Endpoint, workspace: Workspace) -> dict[str, Any]:
    user = view.caller.user
    role = None if user is None else access.role_of(workspace, user)
    return {"id": workspace.id, "name": workspace.name, "created_at": workspace.created_at, "role": role}
