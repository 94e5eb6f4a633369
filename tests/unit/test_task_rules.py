"""F42: what makes losses harmless is not undone by a setting or by a convenience of Celery's."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from backend.checks import (
    doorbells_outlive_the_tasks,
    leases_outlast_their_heartbeat,
    provider_calls_end_within_a_slice,
)

ROOT = Path(__file__).resolve().parents[2]
# Each loses or repeats work on Redis, or keeps state where a flush takes it.
CALLS = {
    "retry",
    "chord",
    "chain",
    "group",
    "chunks",
    "apply_async",
    "delay",
    "delay_on_commit",
    "AsyncResult",
    "revoke",
}
KEYWORDS = {"countdown", "eta", "rate_limit", "priority", "link", "link_error", "autoretry_for", "max_retries"}
CELERY_FILES = [*sorted((ROOT / "workers").rglob("*.py")), ROOT / "backend/dispatch.py", ROOT / "backend/celery_app.py"]


def forbidden(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in CALLS:
            yield f"line {node.lineno}: {name}()"
        yield from (f"line {node.lineno}: {word.arg}=" for word in node.keywords if word.arg in KEYWORDS)


@pytest.mark.parametrize("path", CELERY_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_message_is_never_delayed_chained_or_tried_again_by_celery(path: Path) -> None:
    assert list(forbidden(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("line", ["task.retry(countdown=3)", "chord(x)(y)", "app.send_task('x', eta=1)"])
def test_the_rule_finds_what_it_forbids(line: str) -> None:
    assert list(forbidden(ast.parse(line)))


def test_nothing_but_the_database_remembers_what_is_done() -> None:
    assert not getattr(settings, "CELERY_RESULT_BACKEND", None)
    assert settings.CELERY_TASK_IGNORE_RESULT
    assert settings.CELERY_ACCEPT_CONTENT == ["json"]
    assert settings.CELERY_TASK_SERIALIZER == settings.CELERY_RESULT_SERIALIZER == "json"
    assert settings.CELERY_TASK_ACKS_LATE
    assert not settings.CELERY_TASK_REJECT_ON_WORKER_LOST
    assert settings.CELERY_WORKER_PREFETCH_MULTIPLIER == 1
    assert not settings.CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS


def test_the_settings_as_they_are_pass_the_guard() -> None:
    assert settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"] > 2 * settings.CELERY_TASK_TIME_LIMIT
    assert settings.CELERY_TASK_SOFT_TIME_LIMIT > settings.SLICE_DEADLINE_SECONDS
    assert (
        doorbells_outlive_the_tasks() == leases_outlast_their_heartbeat() == provider_calls_end_within_a_slice() == []
    )


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("CELERY_BROKER_TRANSPORT_OPTIONS", {"visibility_timeout": 60}, doorbells_outlive_the_tasks),
        ("SLICE_HEARTBEAT_SECONDS", 1e6, leases_outlast_their_heartbeat),
        ("PROVIDER_TIMEOUT_SECONDS", 1e6, provider_calls_end_within_a_slice),
    ],
)
def test_a_setting_that_would_repeat_work_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, check: object
) -> None:
    monkeypatch.setattr(settings, name, value)
    (fault,) = check()  # type: ignore[operator]
    assert fault.is_serious()
