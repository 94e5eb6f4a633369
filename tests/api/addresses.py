"""Every address there is, and what stands for each part of one."""

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from backend.core.alerts import AlertKind, TargetKind
from backend.core.states import FileRole, JobKind
from backend.models import (
    Alert,
    AlertTarget,
    Baseline,
    Document,
    Draft,
    Gate,
    Generation,
    Ingestion,
    JobFile,
    Membership,
    ProviderKey,
    Role,
    Run,
    Schedule,
    Source,
    Token,
)
from backend.services import jobs
from tests.api.conftest import World

_PART = re.compile(r"<(?:\w+:)?(\w+)>")


def routes() -> dict[str, Any]:
    """Each route as Django prints it, with what answers it. Those of the packages we mount are ours to answer for."""
    return dict(_walk(get_resolver().url_patterns, ""))


def parts(route: str) -> list[str]:
    return _PART.findall(route)


def ids_of(world: World) -> dict[str, str]:
    """What stands for each part of an address, all of it this workspace's."""
    evaluation = world.evaluate().json()
    base = world.base.knowledge_base
    index = base.live_index
    assert index is not None
    ingestion = Ingestion.objects.create(workspace=world.workspace, knowledge_base=base, index=index)
    job = jobs.start(world.workspace, JobKind.EXPORT, {})
    JobFile.objects.create(job=job, role=FileRole.OUTPUT, name="run.csv", media_type="text/csv", size=1, data=b"x")
    return {
        "base_id": str(base.id),
        "source_id": str(Source.objects.filter(knowledge_base=base)[0].id),
        "document_id": str(Document.objects.filter(knowledge_base=base)[0].id),
        "ingestion_id": str(ingestion.id),
        "set_id": world.set_id,
        "question_key": "q1",
        "number": "1",
        "evaluation_id": evaluation["id"],
        "run_id": str(Run.objects.filter(workspace=world.workspace)[0].id),
        "question": "q1",
        "ordinal": "0",
        **_generated(world),
        "name": "recall_at_k",
        "form": "svg",
        "secret": "never-given",
        "workspace_id": str(world.workspace.id),
        "token_id": str(Token.objects.filter(workspace=world.workspace)[0].id),
        "member_id": str(_member(world).id),
        "provider": _key(world).provider,
        "job_id": str(job.id),
        **_watched(world, evaluation["id"]),
    }


def _generated(world: World) -> dict[str, str]:
    made = Generation.objects.create(workspace=world.workspace, llm="local", prompt_version="1")
    draft = Draft.objects.create(generation=made, ordinal=0, kind="fact", state="pending", question="Why?")
    return {"generation_id": str(made.id), "draft_id": str(draft.id)}


def _watched(world: World, evaluation_id: str) -> dict[str, str]:
    """What runs by itself: a schedule with a gate and an alert, a baseline, and who is told."""
    run = Run.objects.get(evaluation_id=evaluation_id)
    schedule = Schedule.objects.create(
        workspace=world.workspace, name="nightly", request={}, cron="0 2 * * *", time_zone="UTC", grace_seconds=3600
    )
    gate = Gate.objects.create(workspace=world.workspace, name="merge", rules=[{"rule": "must_pass"}])
    baseline = Baseline.objects.create(
        workspace=world.workspace,
        # Of another evaluation's run: this one's are tried again and deleted.
        run=Run.objects.get(evaluation_id=world.evaluate().json()["id"]),
        subject="x",
        name=run.name,
        set_name="golden@1",
        set_hash=run.set_hash,
        metric_definitions="1",
        code_version="1",
        primary_metric=run.primary_metric,
        approved_by="somebody",
        approved_at=timezone.now(),
        # In force it would keep what it stands on from being deleted.
        retired_at=timezone.now(),
    )
    alert = Alert.objects.create(
        workspace=world.workspace, kind=AlertKind.GATE, key="x", title="it broke", opened_at=timezone.now()
    )
    target = AlertTarget.objects.create(
        workspace=world.workspace, name="hook", kind=TargetKind.WEBHOOK, address="https://example.org/hook"
    )
    return {
        "schedule_id": str(schedule.id),
        "gate_id": str(gate.id),
        "baseline_id": str(baseline.id),
        "alert_id": str(alert.id),
        "target_id": str(target.id),
    }


def _member(world: World) -> Membership:
    user = User.objects.create(username=f"somebody@{world.workspace.name}")
    return Membership.objects.create(workspace=world.workspace, user=user, role=Role.VIEWER)


def _key(world: World) -> ProviderKey:
    now = timezone.now()
    return ProviderKey.objects.create(
        workspace=world.workspace, provider="http:near", sealed="x", fingerprint="x", created_at=now, changed_at=now
    )


def filled(route: str, ids: dict[str, str]) -> str:
    """The route with the ids in it."""
    unknown = set(parts(route)) - set(ids)
    assert not unknown, f"say in tests/api/addresses.py, ids_of, what stands for {unknown} in {route}"
    return "/" + _PART.sub(lambda match: ids[match[1]], route)


def body_for(path: str, world: World) -> dict[str, Any]:
    """One that the address would take from its own workspace, where that is easily said."""
    if path.endswith("/preflight"):
        return {"scope": world.scope}
    if path.endswith(("/questions", "/versions")):
        return {"questions": [{"question": "x", "expected": ["a.md"]}]}
    if path.endswith("/sources"):
        return {"name": "area"}
    if path.startswith("/drafts/") and path.endswith("/review"):
        return {"draft": str(Draft.objects.filter(generation_id=path.split("/")[2])[0].id)}
    if path == "/workspace":
        return {"workspace": str(world.workspace.id)}
    return {}


def _walk(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[tuple[str, Any]]:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _walk(one.url_patterns, route)
        else:
            yield route, one.callback
