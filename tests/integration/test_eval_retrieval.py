"""`manage.py eval_retrieval`, through the real queue; slices are worked on while the command waits."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from backend.management import following
from backend.models import Evaluation, Pulse, QuestionSet, Workspace
from tests import engine
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)
QUESTIONS = [
    {"question": "What did revenue do in the third quarter?", "expected": ["finance/nowhere.md"]},
    {"question": "profitable company", "expected": ["finance/profit.md"]},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def base() -> Base:
    """Without an embedder: `keyword` alone can run."""
    return make_base(
        Row(path="finance/profit.md", text="The company was profitable.", vector=None),
        Row(path="finance/costs.md", text="What the office costs.", vector=None),
        embedder="none",
        dimensions=None,
    )


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden.jsonl"
    path.write_text("\n".join(map(json.dumps, QUESTIONS)))
    return path


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run the command; whenever it would sleep, all open work is done instead."""
    monkeypatch.setattr(following, "pause", engine.drain)

    def run(*arguments: object) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        code: Any = 0
        try:
            with redirect_stdout(out):
                call_command("eval_retrieval", *map(str, arguments), stdout=out, stderr=err)
        except SystemExit as ended:
            code = ended.code
        except CommandError as error:
            # What the parser refuses; from a shell that is an exit code of 2.
            code = 2
            err.write(str(error))
        return Ended(code=int(code or 0), out=out.getvalue(), err=err.getvalue())

    return run


def workers_live() -> None:
    for lane in ("control", "search", "provider"):
        Pulse.objects.update_or_create(name=lane, defaults={"at": timezone.now(), "lane": lane})


def test_a_mode_that_cannot_run_is_n_a_and_the_others_still_run(
    base: Base, golden: Path, evaluate: Callable[..., Ended]
) -> None:
    workers_live()
    ended = evaluate(golden, "--knowledge-base", base.knowledge_base.id)
    cells, means = ended.out.split("Aggregate metrics")
    rows = [line.split()[-4:] for line in cells.strip().splitlines()]
    assert rows == [
        ["semantic", "keyword", "hybrid", "hybrid_rerank"],
        ["n/a", "miss", "n/a", "n/a"],
        ["n/a", "1", "n/a", "n/a"],
    ]
    lines = {line.split()[0]: line.split() for line in means.splitlines()[2:] if line}
    assert lines["keyword"][1:8] == ["0.50", "0.50", "0.50", "0.500", "2", "of", "2"]
    assert lines["semantic"][1:8] == ["n/a", "n/a", "n/a", "n/a", "0", "of", "2"]
    assert lines["semantic"][-1].startswith("(PROVIDER_")
    assert "rank of first correct document" in means
    assert ended.code == 4, "nothing but coverage is missing"


def test_the_table_says_what_the_records_say(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    workers_live()
    arguments = (golden, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword")
    told = json.loads(evaluate(*arguments, "--json").out)
    run = told["runs"][0]
    assert (told["state"], run["metrics"]["hit@1"]["mean"], run["headline"]["n_total"]) == ("completed", 0.5, 2)
    assert [row["first_rank"] for row in run["results"]] == [None, 1]
    following_it = evaluate("--follow", told["id"])
    assert following_it.code == 0
    assert "0.500     2 of 2" in following_it.out


def test_labels_that_nothing_can_satisfy_are_told_of_and_the_figures_stay(
    base: Base, tmp_path: Path, evaluate: Callable[..., Ended]
) -> None:
    workers_live()
    misnamed = tmp_path / "misnamed.jsonl"
    misnamed.write_text(json.dumps({"question": "profitable company", "expected": ["/srv/finance/profit.md"]}))
    ended = evaluate(misnamed, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword")
    assert ended.code == 0
    assert "0.000     1 of 1" in ended.out
    assert "1 of 1 expectation can be met by no search here" in ended.err
    assert "line 1: No document is named so: /srv/finance/profit.md. Did you mean finance/profit.md?" in ended.err


def test_a_file_that_has_not_changed_makes_no_new_version(
    base: Base, golden: Path, evaluate: Callable[..., Ended]
) -> None:
    workers_live()
    for _ in range(2):
        assert evaluate(golden, "--workspace", base.workspace.id, "--modes", "keyword").code == 0
    golden.write_text(json.dumps(QUESTIONS[1]))
    document = base.documents["finance/profit.md"]
    assert evaluate(golden, "--documents", document.id, "--modes", "keyword").code == 0
    assert [one.versions.count() for one in QuestionSet.objects.filter(name="golden")] == [2]


def test_rules_decide_the_exit_code(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    workers_live()
    arguments = (golden, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword")
    assert evaluate(*arguments, "--fail-under", "hit@2=0.5", "--fail-under", "keyword:mrr@10=0.5").code == 0
    broke = evaluate(*arguments, "--fail-under", "mrr@10=0.51")
    assert (broke.code, "rule broken: keyword: mrr@10 is 0.500" in broke.err) == (3, True)
    not_run = evaluate(golden, "--knowledge-base", base.knowledge_base.id, "--fail-under", "semantic:mrr@10=0")
    assert (not_run.code, "semantic: mrr@10 is n/a" in not_run.err) == (3, True)
    there = Evaluation.objects.order_by("-id")[0]
    for asked in (arguments, ("--follow", there.id)):
        refused = evaluate(*asked, "--fail-under", "fulltext:mrr@10=0.5")
        assert (refused.code, "The rule on 'fulltext' has no run" in refused.err) == (2, True)
    assert Evaluation.objects.order_by("-id")[0].id == there.id, "nothing was started"


def test_every_fault_of_a_file_is_told_by_line_and_nothing_is_started(
    base: Base, tmp_path: Path, evaluate: Callable[..., Ended]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": "", "expected": ["a"]}\nnot json\n{"question": "a", "expected": []}\n')
    ended = evaluate(bad, "--knowledge-base", base.knowledge_base.id)
    assert ended.code == 1
    assert [f"line {number}: " in ended.err for number in (1, 2, 3)] == [True, True, True]
    assert not Evaluation.objects.exists()


@pytest.mark.parametrize(
    "more",
    [["--modes", "telepathy"], ["--top-k", "0"], ["--fail-under", "mrr=1"], ["--no-wait", "--fail-under", "mrr@10=1"]],
)
def test_wrong_usage_is_2(base: Base, golden: Path, evaluate: Callable[..., Ended], more: list[str]) -> None:
    assert evaluate(golden, "--knowledge-base", base.knowledge_base.id, *more).code == 2
    assert not Evaluation.objects.exists()


def test_without_a_scope_the_bases_there_are_named(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    ended = evaluate(golden)
    assert ended.code == 2
    assert str(base.knowledge_base.id) in ended.err


def test_an_unknown_id_could_not_run(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    assert evaluate(golden, "--knowledge-base", uuid4()).code == 1
    assert evaluate(golden, "--documents", uuid4()).code == 1
    assert evaluate("no-such-file.jsonl", "--knowledge-base", base.knowledge_base.id).code == 1


def test_an_unknown_source_names_those_there_are(base: Base, evaluate: Callable[..., Ended]) -> None:
    ended = evaluate("drive:golden.jsonl", "--knowledge-base", base.knowledge_base.id)
    assert (ended.code, "It has: files." in ended.err) == (1, True)


def test_workers_that_show_no_life_are_told_of_instead_of_hanging_silently(
    base: Base, golden: Path, evaluate: Callable[..., Ended]
) -> None:
    workers_live()
    Pulse.objects.filter(name="search").update(at=timezone.now() - timedelta(minutes=2))
    ended = evaluate(golden, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword")
    assert ended.code == 0
    assert "No worker has shown life in the last minute (search)" in ended.err


def test_ctrl_c_leaves_the_evaluation_running_and_says_how_to_follow_it(
    base: Base, golden: Path, evaluate: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_live()

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "pause", interrupted)
    ended = evaluate(golden, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword")
    evaluation = Evaluation.objects.get()
    assert ended.code == 130
    assert f"eval_retrieval --follow {evaluation.id}" in ended.err
    assert evaluation.state not in {"cancelling", "cancelled"}


def test_without_waiting_it_is_only_submitted(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    workers_live()
    ended = evaluate(golden, "--knowledge-base", base.knowledge_base.id, "--no-wait", "--modes", "keyword")
    assert ended.code == 0
    assert str(UUID(ended.out.split()[-1])) == str(Evaluation.objects.get().id)


def test_another_workspaces_set_is_not_found(base: Base, golden: Path, evaluate: Callable[..., Ended]) -> None:
    workers_live()
    assert evaluate(golden, "--knowledge-base", base.knowledge_base.id, "--modes", "keyword").code == 0
    other = make_base(
        Row(path="a.md", text="a", vector=None),
        workspace=Workspace.objects.create(name="theirs"),
        embedder="none",
        dimensions=None,
    )
    ours = QuestionSet.objects.get()
    assert evaluate(ours.id, "--knowledge-base", other.knowledge_base.id).code == 1


def test_sweep_says_what_it_repaired() -> None:
    out = io.StringIO()
    call_command("sweep", "--json", stdout=out)
    assert json.loads(out.getvalue())["n_expired"] == 0
    out = io.StringIO()
    call_command("sweep", stdout=out)
    assert out.getvalue().startswith("Nothing to repair.")
