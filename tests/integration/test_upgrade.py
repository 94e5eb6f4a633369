"""The tables of the first release, with data, brought up to date: nothing is lost, and all can be read."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
FIRST = "0006_run_origin"

UPGRADE = """
import json, sys
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

first = ("backend", sys.argv[1])
executor = MigrationExecutor(connection)
others = [node for node in executor.loader.graph.leaf_nodes() if node[0] != "backend"]
executor.migrate([*others, first])
old = executor.loader.project_state([*others, first]).apps
model = lambda name: old.get_model("backend", name)
now = timezone.now()
user = old.get_model("auth", "User").objects.create(username="amina", password="!")
workspace = model("Workspace").objects.create(name="ours")
model("Membership").objects.create(workspace=workspace, user=user, role="admin")
model("Token").objects.create(
    workspace=workspace, user=user, name="old", digest="d" * 64, hint="ts_abcde", scopes=["knowledge-bases:read"]
)
base = model("KnowledgeBase").objects.create(workspace=workspace, name="handbook", settings={})
question_set = model("QuestionSet").objects.create(workspace=workspace, name="golden")
version = model("QuestionSetVersion").objects.create(
    question_set=question_set, number=1, content_hash="c" * 64, n_questions=1
)
model("Question").objects.create(version=version, ordinal=0, key="q1", text="How long is the leave?")
evaluation = model("Evaluation").objects.create(
    workspace=workspace, question_set_version=version, set_name="golden@1", state="completed", scope={}, plan={},
    n_questions=1, deadline_at=now,
)
run = model("Run").objects.create(
    workspace=workspace, evaluation=evaluation, ordinal=0, name="keyword", mode="keyword", state="scored", config={},
    config_fingerprint="f" * 64, set_hash="s" * 64, code_version="1", metric_definitions="1", level="document",
    top_k=10, primary_metric="mrr@10",
)
model("Slice").objects.create(
    workspace=workspace, evaluation=evaluation, epoch=1, kind="search", lane="search", root=True, items=[0],
    first=0, last=0,
)
model("Result").objects.create(
    run=run, ordinal=0, question_key="q1", outcome="ok", epoch=1, judged={"k": []}, ranking=[]
)
kept = [str(one.id) for one in (workspace, base, question_set, evaluation, run)]

executor = MigrationExecutor(connection)
executor.migrate(executor.loader.graph.leaf_nodes())
from backend import models
from backend.services import audit
found = [
    str(one.objects.get().id)
    for one in (models.Workspace, models.KnowledgeBase, models.QuestionSet, models.Evaluation, models.Run)
]
audit.record(models.Workspace.objects.get(), audit.Actor(id="command"), "upgraded", now=now)
print(json.dumps({
    "kept": kept,
    "found": found,
    "judged": models.Result.objects.get().judged,
    "question": models.Question.objects.get().text,
    "scopes": models.Token.objects.get().scopes,
    "events": models.AuditEvent.objects.count(),
    "unapplied": len(MigrationExecutor(connection).migration_plan(executor.loader.graph.leaf_nodes())),
}))
"""


@pytest.fixture
def empty_database(django_db_setup: None) -> Iterator[str]:
    """The address of a database beside the tests' own."""
    name = f"upgrade_{uuid.uuid4().hex[:12]}"
    told = {**connection.get_connection_params(), "dbname": "postgres", "autocommit": True}
    told = {
        key: value for key, value in told.items() if key in {"dbname", "user", "password", "host", "port", "autocommit"}
    }
    with psycopg.connect(**told) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    before, _, rest = settings.DATABASE_URL.partition("?")
    yield f"{before.rpartition('/')[0]}/{name}" + (f"?{rest}" if rest else "")
    with psycopg.connect(**told) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_the_first_releases_data_is_all_there_after_the_upgrade(empty_database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UPGRADE, FIRST],
        env={**os.environ, "DATABASE_URL": empty_database, "DJANGO_SETTINGS_MODULE": "backend.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["found"] == told["kept"]
    assert told["judged"] == {"k": []}
    assert told["question"] == "How long is the leave?"
    assert told["scopes"] == ["knowledge-bases:read"]
    assert (told["events"], told["unapplied"]) == (1, 0)
