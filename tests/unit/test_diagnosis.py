"""Each cause of loss on fifty made-up questions, and the rules beside them."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.core.diagnosis import (
    Asked,
    Cause,
    Diagnosed,
    Expected,
    Lift,
    Move,
    QuestionLoss,
    RankedPassage,
    StagePassage,
    ceiling,
    diagnose,
    level_ranks,
    move,
    summarise,
)
from backend.core.resolving import FindingKind, LabelState
from backend.core.types import Level

N_CASES = 50
RIGHT = frozenset({"right"})
Lists = dict[str, list[str]]


def ranked(
    lists: Lists,
    *,
    final: str,
    level: Level = Level.PASSAGE,
    holding: frozenset[str] = RIGHT,
    top_k: int,
) -> list[RankedPassage]:
    """The passages of the stage lists, in the order of the final one. `right/2` is a passage of document `right`."""
    order = lists[final]
    stages = [
        {stage: names.index(name) + 1 for stage, names in lists.items() if stage != "final" and name in names}
        for name in order
    ]
    passages = [
        StagePassage(document=name.split("/")[0], stages=places) for name, places in zip(order, stages, strict=True)
    ]
    levels = level_ranks(passages, level=level, top_k=top_k)
    return [
        RankedPassage(
            document=passage.document,
            satisfied=(0,) if order[place] in holding else (),
            level=levels[place],
            places=stages[place],
        )
        for place, passage in enumerate(passages)
    ]


def others(chance: random.Random, *, least: int) -> list[str]:
    return [f"d{number}" for number in chance.sample(range(1000), least + chance.randint(0, 30))]


def placed(names: list[str], *, at: int) -> list[str]:
    """With the right one at this rank."""
    return [*names[: at - 1], "right", *names[at - 1 :]]


def not_indexed(chance: random.Random, k: int) -> QuestionLoss | None:
    state = chance.choice([LabelState.NO_DOCUMENT, LabelState.NO_TEXT, LabelState.NO_PASSAGE, LabelState.NOT_INDEXED])
    return unretrieved(chance, k, state=state)


def crosses_border(chance: random.Random, k: int) -> QuestionLoss | None:
    return unretrieved(chance, k, state=LabelState.CROSSES_BORDER)


def outside_scope(chance: random.Random, k: int) -> QuestionLoss | None:
    return unretrieved(chance, k, state=LabelState.OUTSIDE_SCOPE)


def no_leg_found_it(chance: random.Random, k: int) -> QuestionLoss | None:
    return unretrieved(chance, k, state=LabelState.RESOLVED)


def not_returned(chance: random.Random, k: int) -> QuestionLoss | None:
    return unretrieved(chance, k, state=LabelState.RESOLVED, imported=True)


def unretrieved(chance: random.Random, k: int, *, state: LabelState, imported: bool = False) -> QuestionLoss | None:
    names = others(chance, least=0)
    lists = {"final": names} if imported else {"meaning": names, "fused": names}
    passages = ranked(lists, final="final" if imported else "fused", top_k=max(k, 10))
    asked = Asked(k=k, rerank_depth=None if imported else chance.choice([None, 50]), imported=imported)
    return diagnose(passages, [Expected(index=0, state=state)], asked=asked)


def demoted_by_fusion(chance: random.Random, k: int) -> QuestionLoss | None:
    names = others(chance, least=60)
    deep = chance.randint(k + 1, 60)
    lists = {
        "meaning": placed(names, at=chance.randint(1, k)),
        "words": list(reversed(names)),
        "fused": placed(names, at=deep),
    }
    if chance.random() < 0.5:
        lists["meaning"], lists["words"] = lists["words"], lists["meaning"]
    reranked = chance.random() < 0.5
    if reranked:
        # Also where the reranker could not mend it: the first cause on the way is told.
        lists["final"] = placed(names, at=chance.randint(k + 1, 60))
    passages = ranked(lists, final="final" if reranked else "fused", top_k=max(k, 10))
    asked = Asked(k=k, rerank_depth=chance.choice([20, 50]) if reranked else None)
    return diagnose(passages, [Expected(index=0)], asked=asked)


def outside_pool(chance: random.Random, k: int) -> QuestionLoss | None:
    names = others(chance, least=90)
    depth = chance.randint(k, 60)
    rank = chance.randint(depth + 1, 90)
    hybrid = chance.random() < 0.5
    first = placed(names, at=rank)
    lists = {"meaning": placed(names, at=chance.randint(k + 1, 90)), "fused": first} if hybrid else {"words": first}
    lists["final"] = placed(chance.sample(names, len(names)), at=rank)
    passages = ranked(lists, final="final", top_k=max(k, 10))
    return diagnose(passages, [Expected(index=0)], asked=Asked(k=k, rerank_depth=depth))


def demoted_by_reranker(chance: random.Random, k: int) -> QuestionLoss | None:
    names = others(chance, least=60)
    first = placed(names, at=chance.randint(1, k))
    lists = {"meaning": placed(names, at=chance.randint(1, 60)), "fused": first}
    if chance.random() < 0.3:
        lists = {"meaning": first}
    lists["final"] = placed(names, at=chance.randint(k + 1, 50))
    passages = ranked(lists, final="final", top_k=max(k, 10))
    return diagnose(passages, [Expected(index=0)], asked=Asked(k=k, rerank_depth=50))


def below_k(chance: random.Random, k: int) -> QuestionLoss | None:
    names = others(chance, least=60)
    lists = {"meaning": placed(names, at=chance.randint(k + 1, 49))}
    if chance.random() < 0.5:
        lists["fused"] = placed(names, at=chance.randint(k + 1, 49))
    final = "fused" if "fused" in lists else "meaning"
    depth = None
    if chance.random() < 0.5:
        depth, final = 50, "final"
        lists["final"] = placed(names, at=chance.randint(k + 1, 50))
    passages = ranked(lists, final=final, top_k=max(k, 10))
    return diagnose(passages, [Expected(index=0)], asked=Asked(k=k, rerank_depth=depth))


MADE: dict[Cause, Callable[[random.Random, int], QuestionLoss | None]] = {
    Cause.NOT_INDEXED: not_indexed,
    Cause.CROSSES_BORDER: crosses_border,
    Cause.OUTSIDE_SCOPE: outside_scope,
    Cause.NO_LEG_FOUND_IT: no_leg_found_it,
    Cause.NOT_RETURNED: not_returned,
    Cause.DEMOTED_BY_FUSION: demoted_by_fusion,
    Cause.OUTSIDE_POOL: outside_pool,
    Cause.DEMOTED_BY_RERANKER: demoted_by_reranker,
    Cause.BELOW_K: below_k,
}


def test_every_cause_has_made_up_questions() -> None:
    assert set(MADE) == set(Cause)


@pytest.mark.parametrize("cause", list(Cause))
def test_fifty_questions_of_each_cause_are_told_apart(cause: Cause) -> None:
    chance = random.Random(f"seed {cause}")
    told = [MADE[cause](chance, chance.choice([1, 3, 5, 10])) for _ in range(N_CASES)]
    assert [None if loss is None else loss.cause for loss in told] == [cause] * N_CASES


def test_a_question_that_is_found_has_no_cause_though_one_of_its_expectations_is_missing() -> None:
    passages = ranked({"meaning": ["right", "a"]}, final="meaning", top_k=10)
    loss = diagnose(passages, [Expected(index=0), Expected(index=1)], asked=Asked(k=1))
    assert loss is not None
    assert loss.cause is None
    assert [one.cause for one in loss.expectations] == [None, Cause.NO_LEG_FOUND_IT]


def test_a_question_takes_the_cause_of_the_expectation_that_came_furthest() -> None:
    passages = ranked({"meaning": ["a", "b", "right"]}, final="meaning", top_k=10)
    expected = [
        Expected(index=1, state=LabelState.CROSSES_BORDER),
        Expected(index=0),
        Expected(index=2),
        Expected(index=3, state=LabelState.NO_DOCUMENT),
    ]
    loss = diagnose(passages, expected, asked=Asked(k=2))
    assert loss is not None
    assert loss.cause is Cause.BELOW_K
    assert [one.cause for one in loss.expectations] == [
        Cause.CROSSES_BORDER,
        Cause.BELOW_K,
        Cause.NO_LEG_FOUND_IT,
        Cause.NOT_INDEXED,
    ]
    assert loss.expectations[1].ranks == {"meaning": 3, "final": 3}


def test_nothing_to_find_is_nothing_lost() -> None:
    assert diagnose([], [], asked=Asked(k=1)) is None


def test_an_imported_ranking_that_has_it_deeper_says_so() -> None:
    passages = ranked({"final": ["a", "b", "right"]}, final="final", top_k=10)
    loss = diagnose(passages, [Expected(index=0)], asked=Asked(k=2, imported=True))
    assert loss is not None
    assert loss.cause is Cause.BELOW_K


def test_what_a_score_floor_cut_after_the_reranker_was_demoted_by_it() -> None:
    cut = RankedPassage(document="right", satisfied=(0,), level={"meaning": 1}, places={"meaning": 1})
    loss = diagnose([cut], [Expected(index=0)], asked=Asked(k=3, rerank_depth=50))
    assert loss is not None
    assert loss.cause is Cause.DEMOTED_BY_RERANKER


def test_at_document_level_a_leg_within_k_counts_documents_not_passages() -> None:
    meaning = [f"long/{n}" for n in range(12)] + ["right/0", "a", "b"]
    fused = ["a", "b", "c", *meaning[:12], "right/0"]
    lists = {"meaning": meaning, "fused": fused}
    holding = frozenset({"right/0"})
    by_document = ranked(lists, final="fused", level=Level.DOCUMENT, holding=holding, top_k=3)
    loss = diagnose(by_document, [Expected(index=0)], asked=Asked(k=3))
    assert loss is not None
    assert loss.cause is Cause.DEMOTED_BY_FUSION  # the second document by meaning, the fifth after fusion
    assert loss.expectations[0].ranks == {"meaning": 2, "fused": 5, "final": 5}
    by_passage = ranked(lists, final="fused", holding=holding, top_k=3)
    loss = diagnose(by_passage, [Expected(index=0)], asked=Asked(k=3))
    assert loss is not None
    assert loss.cause is Cause.BELOW_K


def test_the_pool_of_a_reranker_is_counted_in_passages_at_any_level() -> None:
    first = [f"long/{n}" for n in range(10)] + ["right/0"]
    lists = {"meaning": first, "final": ["long/0", *first[1:]]}
    passages = ranked(lists, final="final", level=Level.DOCUMENT, holding=frozenset({"right/0"}), top_k=3)
    loss = diagnose(passages, [Expected(index=0)], asked=Asked(k=1, rerank_depth=10))
    assert loss is not None
    assert loss.cause is Cause.OUTSIDE_POOL


def test_evidence_past_the_last_document_gives_the_rank_it_came_at() -> None:
    names = ["right/0", "a", "b", "right/1", "c"]
    passages = [StagePassage(document=name.split("/")[0], stages={"meaning": at}) for at, name in enumerate(names, 1)]
    ranks = level_ranks(passages, level=Level.DOCUMENT, top_k=2)
    assert [ranks[place]["final"] for place in range(5)] == [1, 2, 3, 3, 4]
    ranks = level_ranks(passages, level=Level.DOCUMENT, top_k=3)
    assert [ranks[place]["final"] for place in range(5)] == [1, 2, 3, 1, 4]


def test_right_document_wrong_passage_is_told_beside_the_cause() -> None:
    names = ["right/0", "a", "b", "right/1"]
    passages = ranked({"meaning": names}, final="meaning", holding=frozenset({"right/1"}), top_k=10)
    loss = diagnose(passages, [Expected(index=0)], asked=Asked(k=2))
    assert loss is not None
    assert (loss.cause, loss.wrong_passage) == (Cause.BELOW_K, True)

    elsewhere = ranked({"meaning": ["a", "b", "right/0", "right/1"]}, final="meaning", top_k=10)
    loss = diagnose(elsewhere, [Expected(index=0, documents=frozenset({"right"}))], asked=Asked(k=2))
    assert loss is not None
    assert (loss.cause, loss.wrong_passage) == (Cause.NO_LEG_FOUND_IT, False)


def test_right_document_is_known_from_the_labels_where_no_leg_found_the_passage() -> None:
    passages = ranked({"meaning": ["right/0", "a"]}, final="meaning", holding=frozenset(), top_k=10)
    loss = diagnose(passages, [Expected(index=0, documents=frozenset({"right"}))], asked=Asked(k=1))
    assert loss is not None
    assert (loss.cause, loss.wrong_passage) == (Cause.NO_LEG_FOUND_IT, True)


def passage(document: str, *satisfied: int, place: int, final: int | None = None) -> tuple[str, RankedPassage]:
    level = {"meaning": place} if final is None else {"meaning": place, "final": final}
    return f"{document}#{place}", RankedPassage(
        document=document, satisfied=satisfied, level=level, places={"meaning": place}
    )


def test_the_ceiling_is_the_recall_of_the_pool_in_perfect_order() -> None:
    pool = [passage("a", 0, place=40), passage("b", 1, place=51), passage("c", place=1)]
    assert ceiling(pool, [0, 1], level=Level.PASSAGE, k=1, depth=50) == 0.5
    assert ceiling(pool, [0, 1], level=Level.PASSAGE, k=1, depth=60) == 0.5  # two keys, one rank
    assert ceiling(pool, [0, 1], level=Level.PASSAGE, k=2, depth=60) == 1.0
    assert ceiling([], [0], level=Level.PASSAGE, k=5, depth=50) == 0.0
    assert ceiling(pool, [], level=Level.PASSAGE, k=5, depth=50) is None


def test_one_key_may_hold_several_expectations_and_a_document_unites_its_passages() -> None:
    pool = [passage("a", 0, place=1), passage("a", 1, place=2), passage("b", 2, place=3)]
    assert ceiling(pool, [0, 1, 2], level=Level.DOCUMENT, k=1, depth=50) == pytest.approx(2 / 3)
    assert ceiling(pool, [0, 1, 2], level=Level.PASSAGE, k=1, depth=50) == pytest.approx(1 / 3)


def test_the_ceiling_never_lies_below_what_was_reached() -> None:
    chance = random.Random(5)
    for _ in range(100):
        names = [f"d{chance.randint(0, 9)}" for _ in range(20)]
        pool = [
            passage(name, *chance.sample(range(5), chance.randint(0, 2)), place=at) for at, name in enumerate(names, 1)
        ]
        k = chance.randint(1, 10)
        reached = {index for _, one in pool[:k] for index in one.satisfied}
        best = ceiling(pool, range(5), level=Level.PASSAGE, k=k, depth=20)
        assert best is not None
        if k >= 5:
            assert best >= len(reached) / 5


def test_the_reranker_moved_it_up_down_or_not_at_all() -> None:
    up = [passage("a", 0, place=5, final=1)[1]]
    down = [passage("a", 0, place=1, final=2)[1], passage("b", place=2, final=1)[1]]
    gone = [passage("a", 0, place=1)[1]]
    assert [move(one, [0]) for one in (up, down, gone, [])] == [Move.UP, Move.DOWN, Move.DOWN, Move.UNCHANGED]
    assert move(up, [1]) is Move.UNCHANGED


def test_the_summary_counts_each_question_once_and_under_each_of_its_tags() -> None:
    def lost(cause: Cause | None, *tags: str, moved: Move | None = None) -> Diagnosed:
        return Diagnosed(
            loss=QuestionLoss(cause=cause, expectations=()), tags=tags, ceiling=1.0, recall=0.5, move=moved
        )

    told = summarise(
        [
            lost(Cause.BELOW_K, "hr", "codes", moved=Move.UP),
            lost(Cause.NOT_INDEXED, "hr", moved=Move.UNCHANGED),
            lost(None, "hr", "hr", moved=Move.DOWN),
            lost(Cause.BELOW_K),
        ],
        k=5,
    )
    assert (told.overall.n, told.overall.n_missed) == (4, 3)
    assert told.overall.causes == {Cause.NOT_INDEXED: 1, Cause.BELOW_K: 2}
    assert told.untagged is not None
    assert (told.untagged.n, told.untagged.n_missed) == (1, 1)
    assert (told.by_tag["hr"].n, told.by_tag["codes"].n) == (3, 1)
    assert told.by_tag["codes"].causes == {Cause.BELOW_K: 1}
    assert (told.ceiling, told.recall) == (1.0, 0.5)
    assert told.lift == Lift(n_up=1, n_down=1, n_unchanged=1)
    assert summarise([], k=5).lift is None
    assert summarise([], k=5).untagged is None


def test_every_cause_and_finding_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text()
    named = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert set(named) == {*FindingKind, *Cause}
