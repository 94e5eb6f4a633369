"""Fifty generated cases of each cause through the real search: every one is classified right.

Each topic has passages of its own direction and word; what differs from case to case are the distances, the number of
bystanders and the order of insertion.
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from backend.core.matching import Targets, merge
from backend.models import Document, Run
from backend.search import bm25, pipeline, rerank
from backend.search.snapshot import open_snapshot
from backend.search.types import Ranked
from backend.services import diagnoses, evaluations, plans, question_sets, rankings, results
from backend.services.evaluation_requests import Request
from tests.integration.search_rows import Base, Row, make_base
from tests.integration.test_diagnosis import SETUPS, Setup

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
N_CASES = 50


@pytest.fixture(autouse=True)
def _files(settings: Any, tmp_path: Path) -> None:
    settings.CACHE_DIR = tmp_path
    bm25.forget()


def vector(topic: int, offset: float) -> tuple[float, ...]:
    """Towards the topic's own direction, `offset` away from it towards nobody's."""
    values = [0.0] * (N_CASES + 1)
    values[topic], values[N_CASES] = 1.0, offset
    return tuple(values)


def topic_rows(topic: int, chance: random.Random) -> list[Row]:
    """By meaning a, b, c, d, e in this order; by words b before c; then bystanders that share no word."""
    offsets = sorted(chance.uniform(0.05, 2.0) for _ in range(5))
    word = f"apple{topic}"
    rows = [
        Row(path=f"{topic}/a", text="pear", vector=vector(topic, 0.0)),
        Row(path=f"{topic}/b", text=word, vector=vector(topic, offsets[0])),
        Row(path=f"{topic}/c", text=f"{word} and something else", vector=vector(topic, offsets[1])),
        Row(path=f"{topic}/d", text="plum", vector=vector(topic, offsets[2]), collection="stone"),
        Row(path=f"{topic}/e", text="the beginning of a", vector=vector(topic, offsets[3]), ordinal=0),
        Row(path=f"{topic}/e", text="sentence that was cut", vector=vector(topic, offsets[4]), ordinal=1),
    ]
    rows += [
        Row(path=f"{topic}/z{at}", text="nothing of it", vector=vector(topic, chance.uniform(2.5, 9.0)))
        for at in range(chance.randrange(4))
    ]
    chance.shuffle(rows)
    return rows


def orchard(seed: int) -> Base:
    chance = random.Random(seed)
    base = make_base(*(row for topic in range(N_CASES) for row in topic_rows(topic, chance)), dimensions=N_CASES + 1)
    Document.objects.filter(path__endswith="/e").update(text="the beginning of a sentence that was cut")
    return base


def expectation(setup: Setup, topic: int) -> dict[str, Any]:
    expect = dict(setup.expect)
    if expect.get("path") not in {None, "nowhere"}:
        expect["path"] = f"{topic}/{expect['path']}"
    return expect


@pytest.mark.parametrize(("at", "name"), list(enumerate(SETUPS)))
def test_fifty_generated_cases_are_all_told_right(at: int, name: str) -> None:
    given, cause = SETUPS[name]
    setup = replace(given, level=("document", "passage")[at % 2])
    base = orchard(seed=at)
    version = question_sets.create(
        base.workspace,
        name=name,
        items=[
            {"id": f"q{topic}", "question": f"apple{topic}", "expect": [expectation(setup, topic)]}
            for topic in range(N_CASES)
        ],
    )
    configuration: dict[str, Any] = {"name": "it", "mode": setup.mode, **setup.settings}
    if setup.mode.endswith("_rerank"):
        configuration["reranker"] = "local"
    request = Request(
        question_set=str(version.question_set_id),
        scope={"knowledge_base": str(base.knowledge_base.id), **setup.scope},
        configurations=[configuration],
        top_k=setup.top_k,
        level=setup.level,
    )
    evaluation = evaluations.start(base.workspace, request, now=timezone.now())
    Run.objects.filter(evaluation=evaluation).update(generations={str(base.index.id): base.index.generation})
    search(evaluation.id, base, setup)
    run = Run.objects.select_related("evaluation__question_set_version").get(evaluation=evaluation)
    told = diagnoses.of(run, list(range(N_CASES)), k=1).by_question
    assert [told[topic].cause for topic in range(N_CASES)] == [cause] * N_CASES


def search(evaluation_id: Any, base: Base, setup: Setup) -> None:
    """As the handlers do, with vectors and rerank scores that are known."""
    plan = plans.load(evaluation_id)
    planned = plan.runs[0]
    rows = []
    with open_snapshot(plan.scope) as snapshot:
        for topic, question in plans.questions(plan.version_id, list(range(N_CASES))).items():
            ranked = pipeline.search_question(
                question.text,
                vectors={base.index.id: vector(topic, 0.0)},
                configs=[planned.config],
                scope=plan.scope,
                snapshot=snapshot,
                top_k=plan.top_k,
            )["it"]
            assert isinstance(ranked, Ranked)
            entries = ranked.entries
            if planned.config.reranker:
                depth = planned.config.rerank_depth
                scores = [
                    setup.scores.get(entry.passage.path.removeprefix(f"{topic}/"), 0.0) for entry in entries[:depth]
                ]
                entries = rerank.apply(entries, scores, depth=depth)
            rows.append(
                rankings.stored_row(
                    plan=plan,
                    planned=planned,
                    ordinal=topic,
                    key=question.key,
                    targets=Targets(merge(question.expectations)),
                    entries=entries,
                    depth=ranked.depth,
                    timings={},
                )
            )
    results.write(rows, epoch=1)
