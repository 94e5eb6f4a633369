"""Health, the schema and its page, and the console's first pages."""

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS

from backend.core.states import EvaluationState, Lane, RunState
from backend.models import Evaluation, Membership, Pulse, Role, Run, Workspace
from backend.queries.exports import Format
from backend.queries.set_exports import SetForm
from backend.services import workspaces
from backend.services.submissions import FIELDS
from tests.api.conftest import World

pytestmark = pytest.mark.django_db


def read(client: Client, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, path
    data = answer.getvalue()
    answer.close()
    return data


def test_the_process_says_that_it_lives() -> None:
    assert Client().get("/healthz").json()["status"] == "ok"


def test_ready_needs_a_fresh_pulse_of_every_lane() -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    checks = answer.json()["checks"]
    assert [name for name, check in checks.items() if not check["ok"]] == ["workers"]
    assert "control, search, provider" in checks["workers"]["detail"]
    for lane in Lane:
        Pulse.objects.create(name=f"{lane}@here", lane=lane, slots=1, at=timezone.now())
    assert Client().get("/readyz").json()["status"] == "ready"
    Pulse.objects.filter(lane=Lane.SEARCH).update(at=timezone.now() - timedelta(seconds=90))
    stale = Client().get("/readyz")
    assert stale.status_code == 503
    assert "search" in stale.json()["checks"]["workers"]["detail"]


def test_a_broker_that_is_away_is_named_without_its_address(settings: Any) -> None:
    settings.REDIS_URL = "redis://:secret@127.0.0.1:1/0"
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["broker"]["ok"] is False
    assert b"secret" not in answer.content


@pytest.fixture(scope="module")
def schema(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "schema.yaml"
    with GENERATOR_STATS.silence():
        call_command("spectacular", "--validate", "--fail-on-warn", file=str(path))
    return yaml.safe_load(path.read_text())


def operations(schema: Any) -> list[tuple[str, str, Any]]:
    return [(path, method, one) for path, methods in schema["paths"].items() for method, one in methods.items()]


def test_the_schema_is_made_without_a_warning(schema: Any) -> None:
    assert schema["openapi"].startswith("3.1")
    assert len(operations(schema)) >= 38


def test_what_any_query_and_any_idempotency_key_may_be_answered_is_described(schema: Any) -> None:
    """A filter may hold what no text can (422); a key may have been used for something else (409), or be none (422)."""
    for path, method, one in operations(schema):
        given = one.get("parameters", [])
        needed = {"422"} if any(each["in"] == "query" for each in given) else set()
        if any(each["name"] == "Idempotency-Key" for each in given):
            needed |= {"409", "422"}
        assert needed <= set(one["responses"]), (method, path)


@pytest.mark.parametrize(
    ("path", "forms"),
    [("runs/{run_id}/export", list(Format)), ("question-sets/{set_id}/export", list(SetForm))],
)
def test_every_form_of_a_file_is_described_under_its_media_type(
    path: str, forms: list[str], schema: Any, world: World
) -> None:
    described = set(schema["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"])
    assert described <= set(schema["paths"]["/api/v1/jobs/{job_id}/file"]["get"]["responses"]["200"]["content"]) | {
        "application/zip"
    }
    world.evaluate()
    Evaluation.objects.update(state=EvaluationState.COMPLETED)
    Run.objects.update(state=RunState.SCORED)
    address = f"/api/v1/{path}".format(run_id=Run.objects.get().id, set_id=world.set_id)
    answered = set()
    for form in forms:
        answer = world.client.get(address, {"format": form, "lossy": "true"})
        assert answer.status_code == 200, (form, answer.getvalue())
        answered.add(answer.headers["Content-Type"].partition(";")[0])
    assert answered == described


def test_every_operation_tells_its_errors_and_has_an_example(schema: Any) -> None:
    for path, method, one in operations(schema):
        if path.endswith(("/schema", "/docs")):
            continue
        assert one["summary"], path
        answers = one["responses"]
        assert {"401", "403"} <= set(answers), (path, method)
        if "{" in path:
            assert "404" in answers, (path, method)
        for status, answer in answers.items():
            if status >= "400":
                (content,) = answer["content"].items()
                assert content[0] == "application/problem+json", (path, method, status)
                assert content[1]["examples"], (path, method, status)
        if method in {"post", "patch"} and "requestBody" in one:
            bodies = one["requestBody"]["content"]
            assert "multipart/form-data" in bodies or any("examples" in body for body in bodies.values()), path


def test_the_schema_describes_every_field_of_an_evaluation(schema: Any) -> None:
    assert set(schema["components"]["schemas"]["EvaluationRequest"]["properties"]) == set(FIELDS)


def test_what_is_answered_is_what_the_schema_says(schema: Any, world: World) -> None:
    body = world.evaluate().json()
    parts = schema["components"]["schemas"]
    assert set(body) == set(parts["EvaluationDetail"]["properties"])
    assert set(body["runs"][0]) == set(parts["Run"]["properties"])


def test_the_schema_and_its_page_need_no_token_and_no_other_server() -> None:
    client = Client()
    assert client.get("/api/v1/schema").status_code == 200
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    html = page.content.decode()
    assert re.findall(r'(?:src|href)="(https?:)?//', html) == []
    assert "<script>" not in html
    assert "script-src 'self';" in page["Content-Security-Policy"]
    script = re.findall(r'<script src="([^"]+)"', html)
    assert len(script) == 3
    for source in script:
        assert read(client, source.replace("&amp;", "&")), source


@pytest.fixture
def member(world: World) -> Client:
    user = User.objects.create(username="ada")
    Membership.objects.create(workspace=world.workspace, user=user, role=Role.ADMIN)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    return client


def test_a_login_link_opens_the_console_once() -> None:
    made = workspaces.bootstrap()
    client = Client()
    assert client.head(made.login_url_path).status_code == 200
    answer = client.get(made.login_url_path)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/").status_code == 200
    again = Client().get(made.login_url_path)
    assert again.status_code == 403
    assert "used or is too old" in again.content.decode()


def test_without_a_login_the_console_says_how_to_get_in() -> None:
    answer = Client().get("/")
    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/")
    assert "touchstone up" in Client().get("/login").content.decode()


def test_a_password_opens_it_too_and_leads_nowhere_else(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    User.objects.create_user("ada", password="lovelace-1815")
    client = Client()
    wrong = client.post("/login", {"username": "ada", "password": "wrong"})
    assert wrong.status_code == 422
    assert "correct username and password" in wrong.content.decode()
    right = client.post("/login", {"username": "ada", "password": "lovelace-1815", "next": "//elsewhere.example"})
    assert (right.status_code, right["Location"]) == (302, "/")
    assert "member of no workspace" in client.get("/").content.decode()


def test_logging_out_is_a_post_with_its_token(member: Client) -> None:
    assert member.get("/logout").status_code == 405
    assert member.post("/logout").status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', member.get("/").content.decode())
    assert token is not None
    assert member.post("/logout", {"csrfmiddlewaretoken": token[1]}).status_code == 302
    assert member.get("/").status_code == 302


def test_the_start_page_shows_bases_and_what_to_do_first(member: Client) -> None:
    html = member.get("/").content.decode()
    assert "Give it documents" in html
    assert "Handbook" in html
    assert "touchstone evaluate" in html


def test_the_start_page_shows_figures_and_why_there_are_none(member: Client, world: World) -> None:
    made = world.evaluate(modes=["keyword", "semantic"], label="<b>mine</b>").json()
    Evaluation.objects.update(state=EvaluationState.COMPLETED)
    figures = {"mean": 0.75, "low": 0.5, "high": 0.875, "n": 3, "n_total": 4}
    Run.objects.filter(name="keyword").update(state=RunState.SCORED, metrics={"mrr@10": figures})
    Run.objects.filter(name="semantic").update(
        state=RunState.UNAVAILABLE, stop_code="PROVIDER_NOT_CONFIGURED", stop_reason="There is no embedder."
    )
    html = member.get("/").content.decode()
    assert "Give it documents" not in html
    assert "&lt;b&gt;mine" in html
    assert all(shown in html for shown in ("0.750", "0.500", "0.875", "3 of 4", "n/a", "There is no embedder."))
    assert made["id"] in html


def test_another_workspaces_evaluations_are_not_on_the_page(world: World) -> None:
    world.evaluate(label="ours alone")
    user = User.objects.create(username="eve")
    Membership.objects.create(workspace=Workspace.objects.create(name="theirs"), user=user, role=Role.ADMIN)
    client = Client()
    client.force_login(user)
    html = client.get("/").content.decode()
    assert "ours alone" not in html
    assert "Handbook" not in html


@pytest.mark.parametrize("path", ["/", "/login", "/nothing"])
def test_pages_allow_nothing_inline(member: Client, path: str) -> None:
    answer = member.get(path)
    policy = answer["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    html = answer.content.decode()
    assert not re.search(r"<style|<script(?! src)| style=| on\w+=", html)
    assert 'lang="en"' in html


def test_the_stylesheet_is_served_and_knows_the_dark() -> None:
    assert b"prefers-color-scheme: dark" in read(Client(), "/static/console/style.css")
