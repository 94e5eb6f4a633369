"""Runs of many questions, written by the database itself: for tests of what must not grow with them."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Model
from django.utils import timezone

from backend.core import configs
from backend.core.configs import RetrievalConfig
from backend.core.metric_keys import default_keys, default_ks
from backend.core.types import Level, Outcome
from backend.models import (
    Evaluation,
    LabelResolution,
    Question,
    QuestionSet,
    QuestionSetVersion,
    Result,
    Run,
    Workspace,
)
from backend.search.types import SearchScope
from backend.services import labels, plans, run_numbers
from backend.services.run_numbers import Row
from tests.unit.judged import documents, judge_ids

TOP_K = 10
# The answer comes at rank 1, 2, … 10, or not at all.
_N_VARIANTS = TOP_K + 1


def make(workspace: Workspace, *, n: int, names: tuple[str, ...] = ("keyword", "semantic")) -> Evaluation:
    """A finished evaluation of `n` questions with a run of each of these modes; each run ranks a little otherwise."""
    found = QuestionSet.objects.create(workspace=workspace, name=f"{n} questions")
    version = QuestionSetVersion.objects.create(
        question_set=found, number=1, content_hash=f"hash of {n}", format="jsonl", level="document", n_questions=n
    )
    first = Question.objects.create(
        version=version,
        ordinal=0,
        key="q0",
        text="Question 0",
        expect=[{"any_of": [{"path": "a"}], "grade": 1.0}],
        tags=["every"],
    )
    _multiply(first, n, {"key": "'q' || i", "text": "'Question ' || i", "tags": "ARRAY['every', 'tag ' || mod(i, 10)]"})
    now = timezone.now()
    scope = SearchScope(indexes=())
    # No row of a label: each names a document that is there. That of today's corpus is never asked for.
    LabelResolution.objects.create(
        version=version, scope_hash=labels._scope_hash(scope), corpus_hash="corpus", n_expectations=n
    )
    evaluation = Evaluation.objects.create(
        workspace=workspace,
        question_set_version=version,
        set_name=f"{found.name}@1",
        n_questions=n,
        scope={"workspace": str(workspace.id)},
        plan={
            "scope": scope.to_json(),
            "level": "document",
            "threshold": 1.0,
            "top_k": TOP_K,
            "ks": list(default_ks(TOP_K)),
            "keys": [str(key) for key in default_keys(ks=default_ks(TOP_K), top_k=TOP_K, graded=False)],
            "primary_metric": "mrr@10",
        },
        state="completed",
        revision=1,
        deadline_at=now + timedelta(hours=1),
        started_at=now,
        finished_at=now,
    )
    for place, name in enumerate(names):
        _run(evaluation, name, place=place, n=n)
    return evaluation


def _run(evaluation: Evaluation, name: str, *, place: int, n: int) -> Run:
    config = RetrievalConfig(name=name, base=name)
    run = Run.objects.create(
        workspace=evaluation.workspace,
        evaluation=evaluation,
        ordinal=place,
        name=name,
        mode=name,
        config=config.stored(),
        config_fingerprint=configs.fingerprint(config.canonical()),
        set_hash="hash",
        corpus_fingerprint="corpus",
        code_version="test",
        metric_definitions="1",
        level="document",
        top_k=TOP_K,
        primary_metric="mrr@10",
        state="scored",
        finished_at=evaluation.finished_at,
    )
    variants = [_judged(rank) for rank in (*range(1, TOP_K + 1), None)]
    step = 3 + 2 * place
    told = run_numbers.compute(
        plan=plans.load(evaluation.id),
        rows=(
            Row(
                ordinal=ordinal,
                outcome=Outcome.OK,
                judged=variants[ordinal * step % _N_VARIANTS],
                timings={"words": 5.0},
                returned_something=True,
            )
            for ordinal in range(n)
        ),
    )
    run.metrics, run.counts, run.timings = told.metrics, told.counts, told.timings
    run.save(update_fields=["metrics", "counts", "timings"])
    first = Result.objects.create(
        run=run,
        ordinal=0,
        question_key="q0",
        epoch=1,
        outcome="ok",
        first_rank=1,
        judged=variants[0],
        ranking=_ranking(1),
        depth=100,
        timings={"words": 5.0},
    )
    variant = f"1 + mod(i * {step}, {_N_VARIANTS})"
    _multiply(
        first,
        n,
        {
            "question_key": "'q' || i",
            "first_rank": f"(%s::int[])[{variant}]",
            "judged": f"(%s::jsonb[])[{variant}]",
            "ranking": f"(%s::jsonb[])[{variant}]",
        },
        [*range(1, TOP_K + 1), None],
        [_json(one) for one in variants],
        [_json(_ranking(rank)) for rank in (*range(1, TOP_K + 1), None)],
    )
    return run


def _judged(rank: int | None) -> dict[str, Any]:
    ids = documents(TOP_K)
    if rank is not None:
        ids[rank - 1] = "a"
    return judge_ids(ids, {"a": 1.0}, level=Level.DOCUMENT, top_k=TOP_K).to_json()


def _ranking(rank: int | None) -> list[dict[str, Any]]:
    """The first passages, and the one that answers."""
    found = []
    for place in sorted({1, 2, 3, rank} - {None}, key=lambda one: one or 0):
        item: dict[str, Any] = {
            "r": place,
            "c": f"c{place}",
            "d": f"d{place}",
            "p": f"x{place}.md",
            "s": "files",
            "o": 0,
        }
        item |= {"k": {"words": [place, 9.0 / (place or 1)]}, "t": f"The text at {place}"}
        if place == rank:
            item |= {"p": "a", "x": [0], "l": {"words": place, "final": place}}
        found.append(item)
    return found


def _json(value: Any) -> str:
    return json.dumps(value)


def _multiply(row: Model, n: int, changes: Mapping[str, str], *arguments: Any) -> None:
    """Rows 1 to n - 1 like this one, whose ordinal is 0: `changes` are expressions of `i`, the ordinal."""
    table = row._meta.db_table
    columns = [str(field.column) for field in row._meta.concrete_fields if not field.primary_key]
    values = [changes.get(name, "i" if name == "ordinal" else f"first.{name}") for name in columns]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
            f"FROM {table} first, generate_series(1, %s) i WHERE first.id = %s",
            [*arguments, n - 1, row.pk],
        )
        cursor.execute(f"ANALYZE {table}")
