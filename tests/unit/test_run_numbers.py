"""A run's numbers from its rows, without a database."""

from uuid import UUID

from backend.core.types import Level, Outcome
from backend.search.types import SearchScope
from backend.services import run_numbers
from backend.services.plans import Plan
from backend.services.run_numbers import Row
from tests.unit.judged import judge_ids

PLAN = Plan(
    evaluation_id=UUID(int=0),
    workspace_id=UUID(int=0),
    version_id=None,
    runs=(),
    scope=SearchScope(indexes=()),
    level=Level.DOCUMENT,
    threshold=1.0,
    top_k=10,
    keys=("hit@10", "mrr@10", "ndcg@10"),
    primary_metric="mrr@10",
    n_questions=3,
    use_cache=False,
)


def row(ordinal: int, *found: str, ann_recall: float | None = None) -> Row:
    judged = judge_ids(list(found), {"right": 1}).to_json()
    return Row(ordinal=ordinal, outcome=Outcome.OK, judged=judged, returned_something=True, ann_recall=ann_recall)


def test_what_the_graph_finds_is_the_mean_of_the_sampled_questions_alone() -> None:
    rows = [row(0, "right", ann_recall=0.9), row(1, "right"), row(2, "wrong", ann_recall=0.7)]
    counts = run_numbers.compute(plan=PLAN, rows=rows).counts
    assert (counts["ann_recall"], counts["n_ann"]) == (0.8, 2)
    assert "ann_recall" not in run_numbers.compute(plan=PLAN, rows=[row(0, "right")]).counts


def test_runs_that_are_aggregated_together_have_the_numbers_they_have_alone() -> None:
    runs = [[row(0, "right"), row(1, "a", "right")], [row(0, "a"), row(1, "b", "c", "right")]]
    together = run_numbers.compute_all(plan=PLAN, rows_of_runs=runs)
    assert together == [run_numbers.compute(plan=PLAN, rows=rows) for rows in runs]
    assert together[0].metrics["mrr@10"]["mean"] == 0.75
