"""Which workspaces somebody is in, and which of them a session looks at: the console's pages and the API it links to
agree on it."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from backend.models import Membership

# The session's key of the workspace that was chosen last.
CHOSEN = "workspace"


def of(user: User) -> list[Membership]:
    """The first joined first. One query."""
    return list(Membership.objects.filter(user=user).select_related("workspace").order_by("created_at", "id"))


def current(memberships: Sequence[Membership], chosen: object) -> Membership:
    """The one chosen, else (it may be one that the user has left) the first. `memberships` is not empty."""
    return next((one for one in memberships if str(one.workspace_id) == chosen), memberships[0])
