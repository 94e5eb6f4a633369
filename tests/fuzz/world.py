"""What the fuzzed service holds to begin with, and bodies that it takes."""

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
    never: list[str] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        return {"ids": self.ids, "parts": self.parts, "bodies": self.bodies, "never": self.never}

    def finish(self, cluster: Cluster, statuses: dict[str, Counter[int]]) -> None:
        """The calls that would have ended the others' world."""
        for label in self.never:
            method, path = label.split(" ", 1)
            for part, values in self.parts.items():
                path = path.replace("{" + part + "}", values[0])
            answer = cluster.http.request(method, f"{cluster.url}{path}", params={"force": "true"})
            statuses[label][answer.status_code] += 1


def make(cluster: Cluster) -> World:
    shelf = fill(cluster, name="fuzzed", n_documents=8, n_questions=6, settings={"embedding": {"embedder": "none"}})
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
        parts={"workspace_id": [workspace], "number": ["1"], "token_id": [spare]},
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
            f"POST {V1}/provider-keys": {"provider": "cohere", "key": "a-key-for-nobody"},
        },
        never=[f"DELETE {V1}/workspaces/{{workspace_id}}"],
    )
