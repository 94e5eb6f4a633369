"""The pages of drafts without a browser: each answers, decides, and shows faults in place."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.core.generation.kinds import DraftState
from backend.models import Generation, Membership, Role
from tests.api.conftest import World
from tests.api.test_generation import drafted  # noqa: F401  a fixture

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(world: World) -> Client:
    user = User.objects.create_user("editor")
    Membership.objects.create(workspace=world.workspace, user=user, role=Role.EDITOR)
    client = Client()
    client.force_login(user)
    return client


def test_every_page_answers_for_drafts_in_any_state(editor: Client, drafted: Generation) -> None:  # noqa: F811
    review = f"/drafts/{drafted.id}/review"
    paths = ["/drafts", "/drafts/new", f"/drafts/{drafted.id}", f"/drafts/{drafted.id}/progress", review]
    paths += [f"{review}?draft={draft.id}" for draft in drafted.drafts.all()]
    assert [path for path in paths if editor.get(path).status_code != 200] == []


def test_a_decision_keeps_the_first_wording_and_what_is_accepted_becomes_a_set(
    editor: Client,
    drafted: Generation,  # noqa: F811
) -> None:
    draft = drafted.drafts.order_by("ordinal")[0]
    body = {"draft": str(draft.id), "action": "accept", "question": "How many days off are there now?", "answer": "30"}
    assert editor.post(f"/drafts/{drafted.id}/review", body).status_code == 302
    draft.refresh_from_db()
    assert (draft.state, draft.original) == (DraftState.ACCEPTED, "How many days off are there?")
    assert "/sets/" in editor.post(f"/drafts/{drafted.id}/put", {"name": "made"})["Location"]


def test_a_form_with_a_fault_is_shown_again_and_a_good_one_begins(editor: Client, world: World) -> None:
    form = {"knowledge_base": world.scope["knowledge_base"], "sample_size": "none", "seed": "0"}
    faulty = editor.post("/drafts/new", form)
    assert faulty.status_code == 422
    assert b"whole number" in faulty.content
    assert editor.post("/drafts/new", {**form, "sample_size": "5"}).status_code == 302
    assert Generation.objects.get().settings["sample_size"] == 5
