"""What the fuzzed service holds to begin with, and bodies that it takes."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.shelf import fill

V1 = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    ids: dict[str, list[str]]
    parts: dict[str, list[str]]
    bodies: dict[str, Any]
    # What ends the world, and what ends a part that the walk needs: only others of its kind are given to it.
    never: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        return {"ids": self.ids, "parts": self.parts, "bodies": self.bodies, "never": self.never, "kept": self.kept}

    def walk(self, cluster: Cluster, statuses: dict[str, Counter[int]], operations: set[str]) -> None:
        """What chance did not bring to its success, in the order in which people go, through a world nobody touched."""
        walk = _Walk(cluster=cluster, statuses=statuses)
        base, question_set, run = self.ids[f"{V1}/knowledge-bases"][0], self.parts["set_id"][0], self.parts["run_id"][0]
        scope = {"knowledge_base": base}
        evaluation = {"question_set": question_set, "scope": scope, "modes": ["keyword"]}
        (cluster.folder / "walked").mkdir(exist_ok=True)
        folder = {"name": "walked", "kind": "folder", "folder": str(cluster.folder / "walked")}
        source = walk("POST", "/knowledge-bases/{base_id}/sources", folder, base_id=base)["id"]
        walk("GET", "/knowledge-bases/{base_id}/sources/{source_id}", base_id=base, source_id=source)
        walk("POST", "/knowledge-bases/{base_id}/sources/{source_id}/sync", base_id=base, source_id=source)
        walk(
            "POST",
            "/knowledge-bases/{base_id}/documents",
            files=[("file", ("w.txt", b"Walked.", "text/plain"))],
            base_id=base,
        )
        walk("DELETE", "/knowledge-bases/{base_id}/sources/{source_id}", base_id=base, source_id=source, force="true")
        walk("POST", "/question-sets/{set_id}/preflight", {"scope": scope}, set_id=question_set)
        walk("GET", "/runs/{run_id}/results/{question}/arithmetic", run_id=run, question="q0")
        walk("POST", "/runs/import", {"question_set": f"{question_set}@1", "name": "walked", "rankings": RANKINGS})
        member = walk("POST", "/members", {"name": "walked", "role": "viewer"})["id"]
        walk("GET", "/members/{member_id}", member_id=member)
        walk("POST", "/members/{member_id}/login-link", member_id=member)
        walk("PATCH", "/members/{member_id}", {"role": "editor"}, member_id=member)
        walk("DELETE", "/members/{member_id}", member_id=member)
        begun = walk("POST", "/evaluations", {**evaluation, "cache": False})["id"]
        walk("POST", "/evaluations/{evaluation_id}/cancel", evaluation_id=begun)
        cluster.finished(begun)
        walk("POST", "/evaluations/{evaluation_id}/retry", {"allow_changed_corpus": True}, evaluation_id=begun)
        document = cluster.get(f"knowledge-bases/{base}/documents")["results"][0]["id"]
        walk("GET", "/knowledge-bases/{base_id}/documents/{document_id}", base_id=base, document_id=document)
        walk("DELETE", "/knowledge-bases/{base_id}/documents/{document_id}", base_id=base, document_id=document)
        walk("POST", "/comparisons", {"baseline": run, "candidates": [self.parts["run_id"][1]]})
        walk("POST", "/gates/check", {"run": run, "rules": [{"rule": "floor", "metric": "mrr@10", "least": 0.0}]})
        schedule = walk("POST", "/schedules", {"name": "walked", "cron": "0 2 * * *", "evaluation": evaluation})["id"]
        walk("GET", "/schedules/{schedule_id}", schedule_id=schedule)
        walk("PATCH", "/schedules/{schedule_id}", {"cron": "0 3 * * *"}, schedule_id=schedule)
        walk("POST", "/schedules/{schedule_id}/run-now", schedule_id=schedule)
        walk("GET", "/schedules/{schedule_id}/history", schedule_id=schedule)
        walk("DELETE", "/schedules/{schedule_id}", schedule_id=schedule)
        made = json.loads(cluster.python("-c", _ROWS).splitlines()[-1])
        walk("GET", "/alerts/{alert_id}", **made)
        walk("GET", "/jobs/{job_id}/file", **made)
        walk("POST", "/jobs/{job_id}/cancel", job_id=made["cancelled_id"])
        walk("GET", "/drafts/{draft_id}", **made)
        walk("POST", "/drafts/{draft_id}/review", {"action": "accept"}, **made)
        walk("POST", "/generations/{generation_id}/question-set", {"name": "walked drafts"}, **made)
        walk("POST", "/generations/{generation_id}/cancel", **made)
        walk("POST", "/generations/{generation_id}/retry", **made)
        known = {
            **{name: values[0] for name, values in self.parts.items()},
            **made,
            "base_id": base,
            "evaluation_id": self.ids[f"{V1}/evaluations"][0],
            "question": "q0",
            "question_key": "q0",
            "ingestion_id": cluster.get(f"knowledge-bases/{base}/ingestions")["results"][0]["id"],
        }
        # Reading first, deleting last.
        rest = sorted(operations, key=lambda label: ("DELETE" in label, "GET" not in label, label))
        for label in rest:
            method, _, path = label.partition(" ")
            if label not in self.never and path.startswith(V1) and not any(one < 300 for one in statuses[label]):
                walk(method, path.removeprefix(V1), self.bodies.get(label), **known)
        for label in self.never:
            method, path = label.split(" ", 1)
            walk(method, path.removeprefix(V1), workspace_id=self.parts["workspace_id"][0], force="true")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    cluster: Cluster
    statuses: dict[str, Counter[int]]

    def __call__(self, method: str, path: str, body: Any = None, *, files: Any = None, **named: str) -> Any:
        address = path
        query = {"force": named.pop("force")} if "force" in named else {}
        for name, value in named.items():
            address = address.replace("{" + name + "}", value)
        answer = self.cluster.http.request(
            method, f"{self.cluster.url}{V1}{address}", json=body, files=files, params=query
        )
        self.statuses[f"{method} {V1}{path}"][answer.status_code] += 1
        try:
            return answer.json()
        except ValueError:
            return {}


QUESTION = {"id": "one", "question": "How long is the leave?", "expected": ["a.md"]}
RANKINGS = [{"question": f"q{number}", "ids": [f"files:orders/100{number}.txt"]} for number in range(6)]
# What would take a model or an accident to come about.
_ROWS = """
import json, django
django.setup()
from django.utils import timezone
from backend.core.alerts import AlertKind
from backend.core.states import FileRole
from backend.models import Alert, Draft, Generation, Job, JobFile, Workspace
workspace = Workspace.objects.order_by("created_at")[0]
now = timezone.now()
done = Job.objects.create(workspace=workspace, kind="export", state="completed", deadline_at=now)
JobFile.objects.create(job=done, role=FileRole.OUTPUT, name="run.csv", media_type="text/csv", size=1, data=b"x")
stopped = Job.objects.create(workspace=workspace, kind="generate", state="cancelled", deadline_at=now)
made = Generation.objects.create(workspace=workspace, job=stopped, llm="openai:x", prompt_version="1")
draft = Draft.objects.create(generation=made, ordinal=0, kind="unanswerable", state="pending", question="Why?")
alert = Alert.objects.create(workspace=workspace, kind=AlertKind.GATE, key="x", title="it broke", opened_at=now)
print(json.dumps({"alert_id": str(alert.id), "job_id": str(done.id), "cancelled_id": str(stopped.id),
    "draft_id": str(draft.id), "generation_id": str(made.id)}))
"""


def make(cluster: Cluster, name: str) -> World:
    shelf = fill(cluster, name=name, n_documents=8, n_questions=6, settings={"embedding": {"embedder": "none"}})
    scope = {"knowledge_base": shelf.knowledge_base}
    evaluation: dict[str, Any] = {"question_set": shelf.question_set, "scope": scope, "modes": ["keyword"]}
    ended = [cluster.finished(cluster.http.post("evaluations", json=evaluation).json()["id"]) for _ in range(2)]
    runs = [one["runs"][0]["id"] for one in ended]
    workspace = cluster.http.get("workspaces").json()["results"][0]["id"]
    spare = cluster.http.post("tokens", json={"name": "spare", "scopes": ["knowledge-bases:read"]}).json()["id"]
    question = {"question": "How long is the leave?", "expected": ["a.md"]}
    return World(
        ids={
            f"{V1}/knowledge-bases": [shelf.knowledge_base],
            f"{V1}/question-sets": [shelf.question_set],
            f"{V1}/evaluations": [one["id"] for one in ended],
            f"{V1}/runs": runs,
            f"{V1}/tokens": [spare],
        },
        # What no list tells.
        parts={
            "workspace_id": [workspace],
            "number": ["1"],
            # Not those by which it lives: the list would tell them too.
            "token_id": [spare],
            "member_id": [cluster.post("members", {"name": f"{name}-spare", "role": "viewer"})["id"]],
            "set_id": [shelf.question_set],
            "run_id": runs,
        },
        bodies={
            f"POST {V1}/knowledge-bases": {"name": "one more", "settings": {"embedding": {"embedder": "none"}}},
            f"PATCH {V1}/knowledge-bases/{{base_id}}": {"name": "renamed"},
            f"POST {V1}/knowledge-bases/{{base_id}}/sources": {"name": "another area"},
            f"POST {V1}/search": {"query": "leave", "scope": scope, "mode": "keyword"},
            f"POST {V1}/question-sets": {"name": "one more", "questions": [question]},
            f"POST {V1}/question-sets/{{set_id}}/versions": {"questions": [question]},
            f"POST {V1}/question-sets/{{set_id}}/questions": {"questions": [question]},
            f"POST {V1}/question-sets/{{set_id}}/preflight": {"scope": scope},
            f"POST {V1}/evaluations": evaluation,
            f"POST {V1}/evaluations/estimate": evaluation,
            f"POST {V1}/comparisons": {"baseline": runs[0], "candidates": [runs[1]]},
            f"POST {V1}/runs/{{run_id}}/rescore": {"k": 3},
            f"PATCH {V1}/runs/{{run_id}}": {"label": "fuzzed"},
            f"POST {V1}/members": {"name": "somebody", "role": "viewer"},
            f"PATCH {V1}/members/{{member_id}}": {"role": "editor"},
            f"POST {V1}/tokens": {"name": "more", "scopes": ["knowledge-bases:read"]},
            f"POST {V1}/workspaces": {"name": "one more"},
            f"PATCH {V1}/workspaces/{{workspace_id}}": {"name": "fuzzed"},
            f"POST {V1}/schedules": {"name": "nightly", "cron": "0 2 * * *", "evaluation": evaluation},
            f"POST {V1}/gates/check": {"run": runs[0], "rules": [{"rule": "floor", "metric": "mrr@10", "least": 0.0}]},
            f"POST {V1}/question-sets/generate": {
                "knowledge_base": shelf.knowledge_base,
                "llm": "openai:x",
                "sample_size": 1,
            },
            f"POST {V1}/provider-keys": {"provider": "cohere", "key": "a-key-for-nobody"},
        },
        never=[f"DELETE {V1}/workspaces/{{workspace_id}}"],
        kept=[f"DELETE {V1}/{one}" for one in ("knowledge-bases/{base_id}", "question-sets/{set_id}", "runs/{run_id}")],
    )
