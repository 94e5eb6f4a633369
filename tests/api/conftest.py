"""A workspace with a base and a set, a client that may do everything in it, and strangers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from rest_framework.test import APIClient

from backend.core import judging
from backend.core.types import Alternative, Expectation, Level, Outcome, Passage, Question
from backend.models import Evaluation, Run, Scope, Workspace
from backend.services import results, tokens
from backend.services.results import ResultRow
from tests.integration.search_rows import Base, Row, make_base

API = "/api/v1"
QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "question": "How long is the leave?", "expected": ["policies/leave.md"], "tags": ["leave"]},
    {"id": "q2", "question": "Who approves a trip?", "expected": ["finance/travel.md"], "tags": ["money"]},
    {"id": "q3", "question": "What does the code E42 mean?", "expected": ["product/codes.md"]},
    {"id": "q4", "question": "Where is the moon base?", "unanswerable": True},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything a test of an endpoint needs to begin with."""

    workspace: Workspace
    client: APIClient
    base: Base
    set_id: str

    @property
    def scope(self) -> dict[str, str]:
        return {"knowledge_base": str(self.base.knowledge_base.id)}

    def evaluate(self, **more: Any) -> Any:
        body = {"question_set": self.set_id, "scope": self.scope, "modes": ["keyword"], **more}
        return self.client.post(f"{API}/evaluations", body)


def client_of(workspace: Workspace, *scopes: Scope) -> APIClient:
    _, plain = tokens.create(workspace, name="test", scopes=list(scopes or Scope))
    return bearer(plain)


def bearer(plain: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return client


def make_world(name: str) -> World:
    workspace = Workspace.objects.create(name=name)
    base = make_base(
        Row(path="policies/leave.md", text="The leave is thirty days."),
        Row(path="finance/travel.md", text="The line manager approves a trip.", collection="money"),
        Row(path="product/codes.md", text="E42 means that the door is open."),
        workspace=workspace,
        name="Handbook",
        embedder="none",
        dimensions=None,
    )
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "golden", "questions": QUESTIONS})
    assert made.status_code == 201, made.json()
    return World(workspace=workspace, client=client, base=base, set_id=made.json()["id"])


@pytest.fixture
def world(db: None) -> World:
    return make_world("ours")


@pytest.fixture
def stranger(world: World) -> APIClient:
    """A client of another workspace, who may do everything there."""
    return client_of(Workspace.objects.create(name="theirs"))


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    """Submitted, in two modes; nothing has been asked yet."""
    answer = world.evaluate(modes=["keyword", "keyword_rerank"])
    assert answer.status_code == 202, answer.json()
    return Evaluation.objects.get(id=answer.json()["id"])


@pytest.fixture
def write(world: World) -> Callable[..., ResultRow]:
    """Writes a result row: the document found at each rank, as a worker would store it."""

    def write_row(
        run: Run,
        ordinal: int,
        paths: Sequence[str] = (),
        *,
        outcome: Outcome = Outcome.OK,
        code: str = "",
        milliseconds: float = 10.0,
        epoch: int = 1,
    ) -> ResultRow:
        question = QUESTIONS[ordinal]
        passages = [
            Passage(id=f"c-{path}", document_id=f"d-{path}", path=path, source="files", text=f"Text of {path}")
            for path in paths
        ]
        expected = question.get("expected", [])
        judged = judging.judge(
            passages,
            Question(
                key=question["id"],
                text=question["question"],
                expectations=tuple(Expectation(any_of=(Alternative(path=path),)) for path in expected),
            ),
            level=Level.DOCUMENT,
            threshold=1.0,
            top_k=10,
        )
        good = outcome in {Outcome.OK, Outcome.EMPTY}
        row = ResultRow(
            run_id=run.id,
            ordinal=ordinal,
            question_key=question["id"],
            outcome=outcome,
            code=code,
            reason="It failed." if code else "",
            first_rank=judging.first_rank(judged) if good else None,
            judged=judged.to_json() if good else None,
            ranking=[
                {
                    "r": rank,
                    "c": passage.id,
                    "d": passage.document_id,
                    "p": passage.path,
                    "s": "files",
                    "o": 0,
                    "k": {"words": [rank, 10.0 / rank]},
                    "t": passage.text,
                    **({"x": [0]} if passage.path in expected else {}),
                }
                for rank, passage in enumerate(passages, start=1)
            ],
            depth=100 if good else 0,
            timings={"words": milliseconds} if good else {},
        )
        assert results.write([row], epoch=epoch) == 1
        return row

    return write_row
