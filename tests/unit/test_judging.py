"""Rankings become judged lists: collapse, then cut; each expectation credited once."""

import json

import pytest

from backend.core.errors import ValidationError
from backend.core.judging import JudgedList, first_rank, judge
from backend.core.matching import Targets, merge
from backend.core.metrics import ndcg
from backend.core.types import Alternative, Expectation, Level, Passage
from tests.unit.judged import expects, judge_ids, passage, question

CONTENT = question(Expectation(any_of=(Alternative(content_contains=("needle",)),)))


def document_keys(judged: JudgedList) -> list[str]:
    return [rank.key for rank in judged.ranks]


def test_passages_collapse_to_documents_before_the_cut() -> None:
    ranking = [passage("a1", document="a"), passage("a2", document="a"), passage("b1", document="b")]
    judged = judge(ranking, question(expects("b")), level=Level.DOCUMENT, threshold=1, top_k=2)
    assert document_keys(judged) == ["a", "b"]
    assert first_rank(judged) == 2


def test_at_passage_level_the_same_ranking_is_only_cut() -> None:
    ranking = [passage("a1", document="a"), passage("a2", document="a"), passage("b1", document="b")]
    judged = judge(ranking, question(expects("b")), level=Level.PASSAGE, threshold=1, top_k=2)
    assert document_keys(judged) == ["a1", "a2"]
    assert first_rank(judged) is None


def test_a_documents_later_passage_is_evidence_for_its_first_place() -> None:
    ranking = [
        passage("a1", document="a"),
        passage("b1", document="b"),
        passage("a2", document="a", text="the needle"),
    ]
    judged = judge(ranking, CONTENT, level=Level.DOCUMENT, threshold=1, top_k=2)
    assert first_rank(judged) == 1


def test_evidence_ends_at_the_first_passage_of_the_document_after_top_k() -> None:
    ranking = [
        passage("a1", document="a"),
        passage("b1", document="b"),
        passage("c1", document="c"),
        passage("a2", document="a", text="the needle"),
    ]
    judged = judge(ranking, CONTENT, level=Level.DOCUMENT, threshold=1, top_k=2)
    assert document_keys(judged) == ["a", "b"]
    assert first_rank(judged) is None


def test_what_repeats_closes_up() -> None:
    judged = judge_ids(["a", "a", "b", "a", "c"], {"c": 1}, level=Level.PASSAGE, top_k=3)
    assert document_keys(judged) == ["a", "b", "c"]


def test_rank_order_is_never_changed() -> None:
    assert document_keys(judge_ids(["z", "a", "m"], {"a": 1})) == ["z", "a", "m"]


def test_an_expectation_is_credited_at_its_first_place_alone() -> None:
    judged = judge_ids(["a", "b"], [expects("a", "b", grade=2)])
    assert [(rank.relevant, rank.new, rank.gain) for rank in judged.ranks] == [(True, (0,), 2), (True, (), 0)]


def test_a_rank_earns_the_highest_grade_of_what_is_new_there() -> None:
    judged = judge_ids(["a"], [expects("a", "x", grade=1), expects("a", grade=3), expects("a", "y", grade=2)])
    assert judged.ranks[0].new == (0, 1, 2)
    assert judged.ranks[0].gain == 3


def test_equal_expectations_become_one_with_the_highest_grade() -> None:
    merged = merge([expects("a", "b", grade=1), expects("c"), expects("b", "a", grade=3)])
    assert [(one.any_of[0].path, one.grade) for one in merged] == [("a", 3), ("c", 1)]
    judged = judge_ids(["a"], [expects("a"), expects("a")])
    assert judged.n_relevant == 1


def test_labels_that_differ_only_in_folding_are_equal() -> None:
    one = Expectation(any_of=(Alternative(document="Rapor.pdf", content_contains=("GELİRLERİ", "kâr")),))
    other = Expectation(any_of=(Alternative(document="rapor.pdf", content_contains=("kâr", "gelirleri")),))
    assert len(merge([one, other])) == 1


def test_paths_that_differ_in_case_are_two_expectations() -> None:
    assert len(merge([expects("A"), expects("a")])) == 2


def test_grades_of_0_and_below_are_judgements_after_the_expectations() -> None:
    merged = merge([expects("bad", grade=-1), expects("a"), expects("none", grade=0), expects("b", grade=2)])
    assert [one.grade for one in merged] == [1, 2, -1, 0]
    judged = judge_ids(["bad", "b"], [expects("bad", grade=-1), expects("a"), expects("b", grade=2)])
    assert (judged.n_expectations, judged.n_judgements, judged.n_relevant) == (2, 1, 2)
    assert [(rank.judged, rank.relevant, rank.new) for rank in judged.ranks] == [
        (True, False, ()),
        (True, True, (1,)),
    ]


def test_only_graded_or_negative_judgements_make_judged_share_worth_showing() -> None:
    assert not judge_ids([], {"a": 1, "b": 1}).has_judgements
    assert judge_ids([], {"a": 1, "b": 0}).has_judgements
    assert judge_ids([], {"a": 2}).has_judgements


def test_the_stored_form_is_json_and_short() -> None:
    judged = judge_ids(["a", "x", "b", "zero"], {"a": 3, "b": 0.5, "zero": 0}, threshold=1)
    stored = json.dumps(judged.to_json(), separators=(",", ":"))
    assert '"ranks":[["a",3,0],"x",["b",2,1],["zero",2]]' in stored
    assert JudgedList.from_json(json.loads(stored)) == judged


def test_a_stored_form_of_another_release_is_refused() -> None:
    with pytest.raises(ValueError, match="layout 2"):
        JudgedList.from_json({"v": 2})


def test_a_top_k_below_1_is_refused() -> None:
    with pytest.raises(ValidationError):
        judge_ids(["a"], {"a": 1}, top_k=0)


def test_labels_resolved_elsewhere_replace_the_matching_of_text() -> None:
    held = {"p2": (0,)}
    judged = judge(
        [passage("p1", text="needle"), passage("p2")],
        CONTENT,
        level=Level.PASSAGE,
        threshold=1,
        top_k=10,
        satisfied=lambda one: held.get(one.id, ()),
    )
    assert first_rank(judged) == 2


def test_one_questions_targets_judge_every_mode_alike() -> None:
    ranking = [passage("p1"), passage("p2", text="NEEDLE")]
    targets = Targets(merge(CONTENT.expectations))
    for _ in range(2):
        judged = judge(ranking, targets, level=Level.PASSAGE, threshold=1, top_k=10)
        assert judged == judge(ranking, CONTENT, level=Level.PASSAGE, threshold=1, top_k=10)


def test_a_judged_list_is_small_to_store_whatever_the_number_of_negative_judgements() -> None:
    grades = {f"d{number}": 0.0 for number in range(500)} | {"a": 1.0}
    judged = judge_ids(["a"], grades)
    assert judged.n_judgements == 500
    assert len(json.dumps(judged.to_json())) < 200
    assert ndcg(judged, k=10) == 1


def test_ids_are_opaque() -> None:
    for name in ("https://example.org/a b?c=1#d", "policies/leave.pdf", "🙂/👩‍👩‍👧.md", "a:b:c", "x\\y", " "):
        ranking = [Passage(id="1", document_id="9", path=name, source="s", text="")]
        judged = judge(ranking, question(expects(name)), level=Level.DOCUMENT, threshold=1, top_k=1)
        assert first_rank(judged) == 1
