"""What holds for every list and every label."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.core.arithmetic import explain
from backend.core.judging import JudgedList, first_rank, judge
from backend.core.metric_keys import MetricKey, compute, compute_all, default_keys, default_ks
from backend.core.metrics import Gain, average_precision, hit, mrr, ndcg, recall
from backend.core.types import Alternative, Expectation, Level, Passage, Question
from tests.unit.judged import question

# No deadline: how long one example takes says how busy the machine is.
quiet = settings(deadline=None)

WORDS = ("alpha", "beta", "gamma")
whole_grades = st.integers(-1, 4).map(float)
any_grades = st.one_of(whole_grades, st.floats(-1, 5, allow_nan=False))
levels = st.sampled_from(list(Level))


def passage(number: int, source: str, words: list[str]) -> Passage:
    document = f"d{number // 3}"
    return Passage(id=f"p{number}", document_id=document, path=document, source=source, text=" ".join(words))


passages = st.builds(
    passage,
    st.integers(0, 30),
    st.sampled_from(["one", "two"]),
    st.lists(st.sampled_from(WORDS), max_size=2),
)
alternatives = st.one_of(
    st.integers(0, 10).map(lambda number: Alternative(path=f"d{number}")),
    st.integers(0, 30).map(lambda number: Alternative(passage=f"p{number}")),
    st.sampled_from(WORDS).map(lambda word: Alternative(content_contains=(word,))),
)


def expectations(grades: st.SearchStrategy[float]) -> st.SearchStrategy[Expectation]:
    return st.builds(Expectation, any_of=st.lists(alternatives, min_size=1, max_size=3).map(tuple), grade=grades)


def questions(grades: st.SearchStrategy[float] = any_grades) -> st.SearchStrategy[Question]:
    return st.lists(expectations(grades), max_size=6).map(lambda some: question(*some))


rankings = st.lists(passages, max_size=25)


def judge_at(
    ranking: list[Passage], asked: Question, *, level: Level, top_k: int = 10, threshold: float = 1.0
) -> JudgedList:
    return judge(ranking, asked, level=level, threshold=threshold, top_k=top_k)


def all_keys(top_k: int) -> tuple[MetricKey, ...]:
    exponential = tuple(MetricKey(name="ndcg", k=k, gain=Gain.EXP) for k in range(1, top_k + 1))
    return default_keys(ks=range(1, top_k + 1), top_k=top_k, graded=True) + exponential


@quiet
@given(rankings, questions(), levels, st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.0]))
def test_every_metric_is_between_0_and_1_or_none_for_all(
    ranking: list[Passage], asked: Question, level: Level, top_k: int, threshold: float
) -> None:
    judged = judge_at(ranking, asked, level=level, top_k=top_k, threshold=threshold)
    values = compute_all(all_keys(top_k), judged)
    if judged.n_relevant == 0:
        assert set(values.values()) == {None}
    else:
        assert all(value is not None and 0 <= value <= 1 for value in values.values())


@quiet
@given(rankings, questions(), levels, st.integers(1, 8))
def test_stored_lists_come_back_equal_and_give_the_same_metrics(
    ranking: list[Passage], asked: Question, level: Level, top_k: int
) -> None:
    judged = judge_at(ranking, asked, level=level, top_k=top_k)
    restored = JudgedList.from_json(judged.to_json())
    assert restored == judged
    assert compute_all(all_keys(top_k), restored) == compute_all(all_keys(top_k), judged)


@quiet
@given(rankings, questions(), levels, st.integers(1, 8))
def test_the_terms_shown_add_up_to_the_metric(
    ranking: list[Passage], asked: Question, level: Level, top_k: int
) -> None:
    judged = judge_at(ranking, asked, level=level, top_k=top_k)
    for key in all_keys(top_k):
        shown = explain(key, judged)
        assert shown.value == compute(key, judged)
        if shown.value is not None:
            assert min(sum([term.term for term in shown.terms]) / shown.denominator, 1.0) == shown.value
            assert all(term.rank <= key.k for term in shown.terms)


@quiet
@given(rankings, rankings, questions(), levels, st.integers(1, 6))
def test_results_below_top_k_change_nothing(
    ranking: list[Passage], below: list[Passage], asked: Question, level: Level, top_k: int
) -> None:
    judged = judge_at(ranking, asked, level=level, top_k=top_k)
    if len(judged.ranks) < top_k:
        return
    # At document level what counts as below begins with the first passage of the (top_k + 1)-th document.
    next_document = Passage(id="p99", document_id="d33", path="d33", source="one", text="alpha beta")
    assert judge_at([*ranking, next_document, *below], asked, level=level, top_k=top_k) == judged


@quiet
@given(rankings, questions(), levels, st.integers(1, 9))
def test_results_below_k_of_the_judged_list_change_nothing(
    ranking: list[Passage], asked: Question, level: Level, k: int
) -> None:
    judged = judge_at(ranking, asked, level=level)
    shortened = replace(judged, ranks=judged.ranks[:k])
    for key in all_keys(10):
        if key.k <= k:
            assert compute(key, judged) == compute(key, shortened)


@quiet
@given(rankings, questions(whole_grades), st.integers(1, 10))
def test_a_relevant_result_moved_above_a_non_relevant_one_never_lowers_a_metric(
    ranking: list[Passage], asked: Question, k: int
) -> None:
    distinct = list({passage.id: passage for passage in ranking}.values())
    judged = judge_at(distinct, asked, level=Level.PASSAGE, top_k=30)
    for place, (upper, lower) in enumerate(pairwise(judged.ranks)):
        if upper.relevant or not lower.relevant:
            continue
        swapped = [*distinct[:place], distinct[place + 1], distinct[place], *distinct[place + 2 :]]
        better = judge_at(swapped, asked, level=Level.PASSAGE, top_k=30)
        for metric in (mrr, average_precision, ndcg):
            before, after = metric(judged, k=k), metric(better, k=k)
            assert before is not None
            assert after is not None
            assert after >= before - 1e-12


@quiet
@given(rankings, questions(), levels)
def test_hit_and_recall_never_fall_as_k_grows(ranking: list[Passage], asked: Question, level: Level) -> None:
    judged = judge_at(ranking, asked, level=level)
    if judged.n_relevant == 0:
        return
    for metric in (hit, recall):
        values = [metric(judged, k=k) or 0.0 for k in range(1, 11)]
        assert values == sorted(values)


@quiet
@given(rankings, questions(), levels)
def test_the_first_rank_is_what_mrr_inverts(ranking: list[Passage], asked: Question, level: Level) -> None:
    judged = judge_at(ranking, asked, level=level)
    if judged.n_relevant == 0:
        return
    first = first_rank(judged)
    assert mrr(judged, k=10) == (0 if first is None else 1 / first)


@quiet
@given(rankings, questions(), levels)
def test_merging_equal_expectations_never_adds_one(ranking: list[Passage], asked: Question, level: Level) -> None:
    doubled = replace(asked, expectations=asked.expectations * 2)
    assert judge_at(ranking, doubled, level=level) == judge_at(ranking, asked, level=level)


def test_default_cuts_end_at_top_k() -> None:
    assert [default_ks(top_k) for top_k in (1, 4, 10, 50)] == [(1,), (1, 3), (1, 3, 5, 10), (1, 3, 5, 10)]
