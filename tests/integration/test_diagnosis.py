"""Each cause of loss through the real search: legs, fusion and reranking in PostgreSQL, rows written and read back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from backend.core.diagnosis import Cause, QuestionLoss
from backend.core.matching import Targets, merge
from backend.core.types import Outcome
from backend.models import Document, LabelResolution, ResolvedLabel, Run
from backend.search import bm25, pipeline, rerank
from backend.search.snapshot import open_snapshot
from backend.search.types import Ranked
from backend.services import diagnoses, evaluations, plans, question_sets, rankings, results
from backend.services.evaluation_requests import Request
from backend.services.results import ResultRow
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)

X = (1.0, 0.0, 0.0)


@pytest.fixture(autouse=True)
def _files(settings: object, tmp_path: Path) -> None:
    settings.CACHE_DIR = tmp_path  # type: ignore[attr-defined]
    bm25.forget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """`scores`: what the reranker says of a path; without an entry 0."""

    mode: str = "semantic"
    expect: Mapping[str, Any] = field(default_factory=dict)
    scope: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    level: str = ""
    top_k: int = 2


def corpus() -> Base:
    """To `apple` and X: by meaning a, b, c, d, e; by words b, c."""
    base = make_base(
        Row(path="a", text="pear", vector=X),
        Row(path="b", text="apple", vector=(1.0, 0.2, 0.0)),
        Row(path="c", text="apple and something else", vector=(1.0, 0.4, 0.0)),
        Row(path="d", text="plum", vector=(1.0, 0.6, 0.0), collection="stone"),
        Row(path="e", text="the beginning of a", vector=(1.0, 0.8, 0.0), ordinal=0),
        Row(path="e", text="sentence that was cut", vector=(1.0, 0.9, 0.0), ordinal=1),
    )
    Document.objects.filter(path="e").update(text="the beginning of a sentence that was cut")
    return base


def run_of(base: Base, setup: Setup, *, expects: Sequence[Mapping[str, Any]] | None = None) -> Run:
    """A run over one question an expectation, its rows made by the real search and written as the handlers do."""
    version = question_sets.create(
        base.workspace,
        name=f"set {timezone.now().isoformat()}",
        items=[
            {"id": f"q{at}", "question": "apple", "expect": [expect], "tags": ["fruit"] if at else []}
            for at, expect in enumerate(expects or [setup.expect])
        ],
    )
    evaluation = evaluations.start(
        base.workspace,
        Request(
            question_set=str(version.question_set_id),
            scope={"knowledge_base": str(base.knowledge_base.id), **setup.scope},
            configurations=[{"name": "it", "mode": setup.mode, "reranker": "local", **setup.settings}]
            if setup.mode.endswith("_rerank")
            else [{"name": "it", "mode": setup.mode, **setup.settings}],
            top_k=setup.top_k,
            level=setup.level,
        ),
        now=timezone.now(),
    )
    Run.objects.filter(evaluation=evaluation).update(generations={str(base.index.id): base.index.generation})
    search(evaluation.id, base, setup)
    return Run.objects.select_related("evaluation__question_set_version").get(evaluation=evaluation)


def search(evaluation_id: Any, base: Base, setup: Setup) -> None:
    plan = plans.load(evaluation_id)
    planned = plan.runs[0]
    rows: list[ResultRow] = []
    with open_snapshot(plan.scope) as snapshot:
        for ordinal, question in plans.questions(plan.version_id, list(range(plan.n_questions))).items():
            ranked = pipeline.search_question(
                question.text,
                vectors={base.index.id: X},
                configs=[planned.config],
                scope=plan.scope,
                snapshot=snapshot,
                top_k=plan.top_k,
            )["it"]
            assert isinstance(ranked, Ranked)
            entries, cut = ranked.entries, ranked.cut
            if planned.config.reranker:
                depth = planned.config.rerank_depth
                scores = [setup.scores.get(entry.passage.path, 0.0) for entry in entries[:depth]]
                floor = planned.config.min_score
                entries, cut = rerank.apply_and_cut(entries, scores, depth=depth, min_score=floor)
            rows.append(
                rankings.stored_row(
                    plan=plan,
                    planned=planned,
                    ordinal=ordinal,
                    key=question.key,
                    targets=Targets(merge(question.expectations)),
                    entries=entries,
                    cut=cut,
                    depth=ranked.depth,
                    timings={},
                )
            )
    results.write(rows, epoch=1)


def loss_of(run: Run, ordinal: int = 0, *, k: int = 1) -> QuestionLoss:
    return diagnoses.of(run, [ordinal], k=k).by_question[ordinal]


SETUPS = {
    "no such document": (Setup(expect={"path": "nowhere"}), Cause.NOT_INDEXED),
    "no such text": (Setup(expect={"content_contains": "cherry"}), Cause.NOT_INDEXED),
    "a text over a border": (Setup(expect={"content_contains": "of a sentence"}), Cause.CROSSES_BORDER),
    "another collection": (Setup(expect={"path": "a"}, scope={"collection": "stone"}), Cause.OUTSIDE_SCOPE),
    "no word in common": (Setup(mode="keyword", expect={"path": "a"}), Cause.NO_LEG_FOUND_IT),
    "not deep enough": (Setup(expect={"path": "d"}, settings={"depth": 3}), Cause.NO_LEG_FOUND_IT),
    "fusion": (Setup(mode="hybrid", expect={"path": "a"}), Cause.DEMOTED_BY_FUSION),
    "outside the pool": (
        Setup(mode="semantic_rerank", expect={"path": "c"}, settings={"rerank_depth": 2}),
        Cause.OUTSIDE_POOL,
    ),
    "the reranker": (
        Setup(mode="semantic_rerank", expect={"path": "a"}, scores={"b": 2.0, "c": 1.0}),
        Cause.DEMOTED_BY_RERANKER,
    ),
    "fusion before the reranker": (
        Setup(mode="hybrid_rerank", expect={"path": "a"}, scores={"b": 1.0}),
        Cause.DEMOTED_BY_FUSION,
    ),
    "deeper": (Setup(expect={"path": "c"}), Cause.BELOW_K),
    "deeper than top_k": (Setup(expect={"path": "d"}, settings={"depth": 4}), Cause.BELOW_K),
}


@pytest.mark.parametrize("name", SETUPS)
@pytest.mark.parametrize("level", ["document", "passage"])
def test_each_cause_is_told_through_the_real_search(name: str, level: str) -> None:
    setup, cause = SETUPS[name]
    run = run_of(corpus(), Setup(**{**{one: getattr(setup, one) for one in Setup.__slots__}, "level": level}))
    assert loss_of(run).cause is cause


FLOORS = (
    (Setup(expect={"path": "c"}, settings={"min_score": 0.95}), Cause.BELOW_K, {"meaning": 3}),
    (Setup(mode="hybrid", expect={"path": "a"}, settings={"min_score": 9}), Cause.DEMOTED_BY_FUSION, {"meaning": 1}),
    (
        Setup(mode="semantic_rerank", expect={"path": "a"}, settings={"min_score": 1}, scores={"b": 2.0}),
        Cause.DEMOTED_BY_RERANKER,
        {"meaning": 1},
    ),
    (
        Setup(mode="semantic_rerank", expect={"path": "c"}, settings={"min_score": 1, "rerank_depth": 2}),
        Cause.OUTSIDE_POOL,
        {"meaning": 3},
    ),
)


@pytest.mark.parametrize("level", ["document", "passage"])
def test_what_a_score_floor_cut_was_found_by_a_leg_and_is_in_no_list(level: str) -> None:
    base = corpus()
    for setup, cause, ranks in FLOORS:
        run = run_of(base, replace(setup, level=level))
        loss = loss_of(run)
        assert loss.cause is cause, setup
        told = loss.expectations[0].ranks
        assert ranks.items() <= told.items()
        assert "final" not in told
        kept = run.results.get()
        assert all(entry["p"] != setup.expect["path"] for entry in kept.ranking)
        assert [entry["p"] for entry in kept.cut] == [setup.expect["path"]]
        assert kept.outcome == (Outcome.OK if kept.ranking else Outcome.EMPTY)


def test_a_question_that_is_found_at_a_deeper_k_has_no_cause_there() -> None:
    run = run_of(corpus(), Setup(expect={"path": "b"}))
    assert loss_of(run, k=1).cause is Cause.BELOW_K
    assert loss_of(run, k=1).expectations[0].ranks == {"meaning": 2, "final": 2}
    assert loss_of(run, k=2).cause is None
    assert not LabelResolution.objects.filter(version=run.evaluation.question_set_version).count() > 1


def test_within_k_of_a_leg_counts_documents_at_document_level() -> None:
    """The right one is the twelfth passage by meaning, but the second document."""
    base = make_base(
        *(Row(path="long", text="apple", vector=(1.0, 0.001 * at, 0.0), ordinal=at) for at in range(11)),
        Row(path="right", text="pear", vector=(1.0, 0.3, 0.0)),
        *(Row(path=f"z{at}", text="apple apple apple", vector=(1.0, 0.4 + at, 0.0)) for at in range(3)),
    )
    run = run_of(base, Setup(mode="hybrid", expect={"path": "right"}, level="document"))
    loss = loss_of(run, k=2)
    assert loss.cause is Cause.DEMOTED_BY_FUSION
    assert loss.expectations[0].ranks["meaning"] == 2
    assert loss.expectations[0].ranks["final"] > 2


def test_right_document_wrong_passage_is_told_though_no_leg_found_the_passage() -> None:
    base = make_base(
        Row(path="right", text="apple here", ordinal=0), Row(path="right", text="the answer itself", ordinal=1)
    )
    run = run_of(base, Setup(mode="keyword", expect={"content_contains": "answer itself"}))
    loss = loss_of(run)
    assert (loss.cause, loss.wrong_passage) == (Cause.NO_LEG_FOUND_IT, True)


def test_the_summary_has_causes_by_tag_the_ceiling_and_the_lift() -> None:
    expects = [{"path": "a"}, {"path": "b"}, {"path": "nowhere"}, {"path": "d"}]
    setup = Setup(mode="semantic_rerank", settings={"rerank_depth": 3}, scores={"b": 1.0})
    told = diagnoses.summarise(run_of(corpus(), setup, expects=expects), k=1).summary
    assert (told.overall.n, told.overall.n_missed) == (4, 3)
    assert told.overall.causes == {Cause.NOT_INDEXED: 1, Cause.OUTSIDE_POOL: 1, Cause.DEMOTED_BY_RERANKER: 1}
    assert told.by_tag["fruit"].causes == {Cause.NOT_INDEXED: 1, Cause.OUTSIDE_POOL: 1}
    assert (told.recall, told.ceiling) == (0.25, 0.5)
    assert told.lift is not None
    assert (told.lift.n_up, told.lift.n_down, told.lift.n_unchanged) == (1, 1, 2)


def test_labels_are_resolved_once_for_a_corpus_and_again_when_it_changes() -> None:
    base = corpus()
    run = run_of(base, Setup(expect={"path": "nowhere"}))
    diagnoses.prepare(run)
    diagnoses.prepare(run)
    assert LabelResolution.objects.count() == 1

    base.add(Row(path="nowhere", text="now it is here", vector=None))
    found = diagnoses.of(run, [0], k=1)
    # The run is told by the corpus it saw.
    assert found.by_question[0].cause is Cause.NOT_INDEXED
    assert not found.corpus_changed


def test_a_run_whose_corpus_is_gone_says_that_its_labels_are_todays() -> None:
    base = corpus()
    run = run_of(base, Setup(expect={"path": "nowhere"}))
    base.add(Row(path="nowhere", text="now it is here", vector=None))
    found = diagnoses.of(run, [0], k=1)
    assert found.by_question[0].cause is Cause.NO_LEG_FOUND_IT
    assert found.corpus_changed


def test_a_question_without_a_figure_or_whose_labels_are_gone_has_no_loss() -> None:
    base = corpus()
    run = run_of(base, Setup(expect={"path": "nowhere"}), expects=[{"path": "nowhere"}, {"path": "d"}])
    results.write(
        [ResultRow(run_id=run.id, ordinal=5, question_key="q5", outcome=Outcome.ERROR, code="INTERNAL")], epoch=1
    )
    assert set(diagnoses.of(run, [0, 1, 5], k=1).by_question) == {0, 1}
    if run.evaluation.question_set_version is not None:
        question_sets.delete(run.evaluation.question_set_version.question_set, force=True)
    run = Run.objects.select_related("evaluation__question_set_version").get(id=run.id)
    assert ResolvedLabel.objects.count() == 0
    # What was retrieved still says where it was lost.
    assert set(diagnoses.of(run, [0, 1, 5], k=1).by_question) == {1}
