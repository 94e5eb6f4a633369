"""Logging in with a password: slowed down when it fails, and telling nothing by how long it takes."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from backend.models import AuditEvent, LoginFailures, Membership, Role, Workspace
from backend.services import login_limits

pytestmark = pytest.mark.django_db
PASSWORD = "nineteen blue lanterns"


@pytest.fixture
def user() -> User:
    made = User.objects.create_user("amina", password=PASSWORD)
    Membership.objects.create(workspace=Workspace.objects.create(name="ours"), user=made, role=Role.EDITOR)
    return made


def attempt(name: str, password: str, *, address: str = "192.0.2.1", client: Client | None = None) -> Any:
    form = {"username": name, "password": password}
    return (client or Client()).post("/login", form, REMOTE_ADDR=address)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The iterations of every hash that was made."""
    made: list[int] = []
    encode = PBKDF2PasswordHasher.encode

    def counted(self: Any, password: str, salt: str, iterations: int | None = None) -> str:
        made.append(iterations or self.iterations)
        return encode(self, password, salt, 1)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", counted)
    return made


def test_the_right_password_opens_and_the_log_tells_it(user: User) -> None:
    assert attempt("amina", PASSWORD).status_code == 302
    assert AuditEvent.objects.get().action == "login"
    assert LoginFailures.objects.filter(n_failed__gt=0).count() == 0


def test_a_name_that_is_not_known_takes_the_work_of_a_wrong_password(user: User, hashed: list[int]) -> None:
    without = User.objects.create(username="by-link-only")
    without.set_unusable_password()
    without.save(update_fields=["password"])
    off = User.objects.create_user("gone", password=PASSWORD)
    User.objects.filter(pk=off.pk).update(is_active=False)
    work = {}
    for name in ("amina", "nobody", "by-link-only", "gone"):
        hashed.clear()
        answer = attempt(name, "wrong")
        assert answer.status_code == 422
        # What a weaker hash leaves undone is done besides: it is the sum that takes the time.
        work[name] = sum(hashed)
    assert len(set(work.values())) == 1, work
    assert work["amina"], "nothing was hashed"


def test_the_same_is_said_whatever_was_wrong(user: User) -> None:
    said = {attempt(name, "wrong").content.replace(name.encode(), b"") for name in ("amina", "nobody")}
    assert len({text.split(b"notice bad")[1].split(b"</p>")[0] for text in said}) == 1


def test_too_many_failures_of_a_name_from_an_address_wait_and_others_do_not(user: User) -> None:
    for _ in range(login_limits.MOST_PER_NAME_AND_ADDRESS):
        assert attempt("amina", "wrong").status_code == 422
    refused = attempt("amina", PASSWORD)
    assert refused.status_code == 429
    assert b"Too many logins failed" in refused.content
    assert PASSWORD.encode() not in refused.content
    # Its owner, from elsewhere, gets in: nobody is kept out by knowing a name.
    assert attempt("amina", PASSWORD, address="192.0.2.2").status_code == 302


def test_an_address_that_tries_many_names_waits(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "MOST_PER_ADDRESS", 3)
    for number in range(3):
        assert attempt(f"name{number}", "wrong").status_code == 422
    assert attempt("another", "wrong").status_code == 429
    assert attempt("another", "wrong", address="192.0.2.9").status_code == 422


def test_a_refused_login_is_not_looked_at(user: User, hashed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "MOST_PER_NAME_AND_ADDRESS", 1)
    attempt("amina", "wrong")
    hashed.clear()
    assert attempt("amina", PASSWORD).status_code == 429
    assert hashed == []


def test_a_forged_address_header_is_believed_only_as_far_as_there_are_proxies(user: User, settings: Any) -> None:
    form = {"username": "amina", "password": "wrong"}
    for number in range(login_limits.MOST_PER_NAME_AND_ADDRESS):
        Client().post("/login", form, REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=f"198.51.100.{number}")
    assert attempt("amina", "wrong").status_code == 429
    settings.PROXIES = 1
    answer = Client().post("/login", form, REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR="10.0.0.1, 203.0.113.5")
    assert answer.status_code == 422


def test_names_that_failed_are_not_kept_in_plain(user: User) -> None:
    attempt(PASSWORD, "oops, the wrong field")
    assert all(PASSWORD not in row.subject for row in LoginFailures.objects.all())


def test_the_first_admin_comes_by_command_and_gets_in_once(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_admin", "boss", "--workspace", "new")
    path = capsys.readouterr().out.split()[-1]
    client = Client()
    assert client.get(path).status_code == 302
    assert client.get("/").status_code == 200
    assert Client().get(path).status_code == 403
    member = Membership.objects.get(user__username="boss")
    assert (member.role, member.workspace.name) == (Role.ADMIN, "new")
    call_command("login_link", "boss")
    assert Client().get(capsys.readouterr().out.strip()).status_code == 302
    with pytest.raises(CommandError, match="no account"):
        call_command("login_link", "nobody")


def test_every_answer_carries_its_headers() -> None:
    for path in ("/login", "/api/v1/runs", "/healthz", "/nowhere", "/api/v1/nowhere"):
        headers = Client().get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"], path
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["X-Frame-Options"] == "DENY", path
        assert headers["Referrer-Policy"] == "same-origin", path
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", path
        assert "camera=()" in headers["Permissions-Policy"], path
    assert Client().get("/api/v1/runs").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("//evil.example", "///evil.example", "https://evil.example", "http:evil.example", "https:///evil.example"),
        *("/\\evil.example", "\t//evil.example", "javascript:alert(1)", "data:text/html,x", "\x00//evil.example"),
    ],
)
def test_a_login_leads_nowhere_but_to_a_page_of_ours(user: User, elsewhere: str) -> None:
    form = {"username": "amina", "password": PASSWORD, "next": elsewhere}
    assert Client().post("/login", form).headers["Location"] == "/"
    assert Client().post("/login", {**form, "next": "/runs/1?k=3"}).headers["Location"] == "/runs/1?k=3"
    told = Client().post("/login", {**form, "next": "/x\r\nSet-Cookie: a=b"}).headers
    assert "\n" not in told["Location"]
    assert "a=b" not in str(told.get("Set-Cookie", ""))


def test_a_session_that_somebody_laid_out_is_not_the_one_that_logs_in(user: User) -> None:
    """Session fixation: with a key that was made up, and with one of a session that is there."""
    there = SessionStore()
    there["seen"] = True
    there.save()
    for before in ("attackers0own0key000000000000000", str(there.session_key)):
        client, attacker = Client(), Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = attacker.cookies[settings.SESSION_COOKIE_NAME] = before
        assert attempt("amina", PASSWORD, client=client).status_code == 302
        assert client.cookies[settings.SESSION_COOKIE_NAME].value != before
        assert client.get("/").status_code == 200
        assert attacker.get("/").status_code == 302, "the key from before opens nothing"


def test_a_form_of_another_site_changes_nothing(user: User) -> None:
    Membership.objects.update(role=Role.ADMIN)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    for path in ("/members", "/tokens", "/bases/new", "/provider-keys", "/account/password", "/logout", "/workspace"):
        assert client.post(path, {"name": "x", "role": "admin"}).status_code == 403, path
    assert client.get("/").status_code == 200, "still logged in"
    assert User.objects.count() == 1


def test_an_open_session_has_no_more_tries_at_the_password_than_the_login(hashed: list[int], user: User) -> None:
    client = Client()
    client.force_login(user)
    form = {"new": "twenty green lanterns", "again": "twenty green lanterns"}
    said = [client.post("/account/password", {**form, "old": f"guess {n}"}).status_code for n in range(12)]
    assert said == [422] * 10 + [429] * 2
    assert client.post("/account/password", {**form, "old": PASSWORD}).status_code == 429
    LoginFailures.objects.all().delete()
    assert client.post("/account/password", {**form, "old": PASSWORD}).status_code == 302
    assert LoginFailures.objects.filter(n_failed__gt=0).count() == 0
