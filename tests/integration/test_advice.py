"""Advice on an evaluation that was really run: its own figures and those of its other runs."""

import re

import pytest
from django.utils import timezone

from backend.core.states import EvaluationState
from backend.models import Evaluation, KnowledgeBase, LabelResolution, Run
from backend.queries.advice import has_code
from backend.services import advising, diagnoses, evaluations, question_sets
from backend.services.evaluation_requests import Request
from tests.engine import drain
from tests.integration.ingest_work import ingest, new_base

pytestmark = pytest.mark.django_db(transaction=True)

ANIMALS = re.findall(
    r"\w+", "ant bear cat dog eel fox goat hare ibis jay kiwi lion mole newt owl pig quail rat seal toad urchin vole"
)


def evaluated(base: KnowledgeBase, *, modes: list[str], n_wrong: int = 0) -> dict[str, Run]:
    """A question an animal; the last `n_wrong` expect a path of another machine."""
    items = []
    for at, animal in enumerate(ANIMALS):
        path = f"animals/{animal}.md"
        if at >= len(ANIMALS) - n_wrong:
            path = f"/srv/{path}"
        items.append({"question": f"What does the {animal} with the number {at}0 eat?", "expected": [path]})
    version = question_sets.create(base.workspace, name="golden", items=items)
    evaluation = evaluations.start(
        base.workspace,
        Request(question_set=str(version.question_set_id), scope={"knowledge_base": str(base.id)}, modes=modes),
        now=timezone.now(),
    )
    drain()
    assert Evaluation.objects.get(id=evaluation.id).state == EvaluationState.COMPLETED
    runs = Run.objects.filter(evaluation=evaluation).select_related("workspace", "evaluation__question_set_version")
    return {run.mode: run for run in runs}


def zoo(settings: dict[str, object] | None = None) -> KnowledgeBase:
    base = new_base(settings)
    texts = {f"animals/{one}.md": f"The {one} is an animal of the zoo. It has what it is given." for one in ANIMALS}
    ingest(base, {**texts, "empty.txt": ""})
    return base


def test_a_run_by_words_is_told_about_its_labels_and_nothing_it_does_not_know() -> None:
    run = evaluated(zoo(), modes=["keyword"], n_wrong=3)["keyword"]
    diagnoses.prepare(run)
    told = advising.figures(run)
    assert (told.n_scored, told.n_expectations, told.n_unresolved) == (22, 22, 3)
    assert told.unresolved[0].nearest == told.unresolved[0].label.removeprefix("/srv/")
    assert told.languages.documents == ("english",)
    assert told.languages.questions == ("english",)
    assert (told.keyword_language, told.embedder, told.embedder_is_english_only) == ("simple", "", False)
    assert (told.mean_relevant, told.reranker, told.mode) == (1.0, "", "keyword")
    assert told.semantic_recall is None
    assert told.rerank_verdict is None
    assert told.best_recall is not None
    assert told.best_recall == pytest.approx(19 / 22)
    first = advising.of(run)[0]
    assert first.id == "labels_unresolved"
    assert "3 of 22 expectations match nothing (/srv/animals/" in first.sentence
    # Preflight, causes and advice read one resolution.
    assert LabelResolution.objects.count() == 1


@pytest.mark.slow
def test_the_other_runs_of_the_evaluation_give_their_verdicts() -> None:
    runs = evaluated(zoo({}), modes=["semantic", "keyword", "hybrid", "hybrid_rerank"])
    told = advising.figures(runs["hybrid"])
    assert told.rerank_verdict is not None
    assert told.fusion_verdict is not None
    assert told.better_leg in {"semantic", "keyword"}
    assert told.semantic_recall is not None
    assert told.keyword_recall is not None
    assert told.embedder_is_english_only
    assert told.ceiling is not None
    assert told.chunks is not None
    assert told.chunks.n == len(ANIMALS)
    assert told.metrics["recall@5"] <= told.ceiling + 1e-9
    assert advising.figures(runs["hybrid_rerank"]).reranker == "local"


def test_a_run_without_numbers_has_no_advice() -> None:
    assert advising.of(Run(metrics={})) == []


def test_a_code_is_a_word_with_a_digit() -> None:
    assert has_code("What is E-1042?")
    assert has_code("revenue in 2023")
    assert not has_code("How many days?")
