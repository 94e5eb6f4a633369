"""The printed tables are those of the specification, to the space."""

from typing import Any

from touchstone import tables

SPECIFIED = """\
#   query                                     semantic   keyword    hybrid  hybrid_rerank
1   What did revenue do in the third quarter?      n/a      miss       n/a            n/a
2   How profitable was the company recently?       n/a         1       n/a            n/a"""
SPECIFIED_MEANS = """\
Aggregate metrics (rank of first correct chunk):
mode            hit@1   hit@3   hit@5     MRR  evaluated
semantic          n/a     n/a     n/a     n/a     0 of 2   embedder not reachable (PROVIDER_UNAVAILABLE)
keyword          0.50    0.50    0.50   0.500     2 of 2"""
QUESTIONS = ("What did revenue do in the third quarter?", "How profitable was the company recently?")


def a_run(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "state": "scored",
        "code": "",
        "reason": "",
        "level": "passage",
        "top_k": 10,
        "ks": [1, 3, 5, 10],
        "primary_metric": "mrr@10",
        "n_questions": 2,
        "corpus_changed": False,
        "cost": {},
        "origin": {},
        "counts": {"n_total": 2, "n_scored": 2, "n_eligible": 2},
        "metrics": {
            key: {"mean": 0.5, "low": 0.1, "high": 0.9, "n": 2, "n_total": 2}
            for key in ("hit@1", "hit@3", "hit@5", "hit@10", "mrr@10")
        },
        **more,
    }


def unavailable(name: str) -> dict[str, Any]:
    return a_run(
        name,
        state="unavailable",
        code="PROVIDER_UNAVAILABLE",
        reason="embedder not reachable.",
        metrics={},
        counts={"n_total": 2, "n_scored": 0, "n_error": 2, "n_eligible": 2},
    )


def a_result(ordinal: int, **more: Any) -> dict[str, Any]:
    return {
        "ordinal": ordinal,
        "key": f"q{ordinal}",
        "question": QUESTIONS[ordinal % 2],
        "outcome": "ok",
        "code": "",
        "reason": "",
        "found": True,
        "first_rank": 1,
        **more,
    }


def failed(ordinal: int, code: str = "PROVIDER_UNAVAILABLE", reason: str = "down") -> dict[str, Any]:
    return a_result(ordinal, outcome="error", code=code, reason=reason, found=None, first_rank=None)


def missed(ordinal: int) -> dict[str, Any]:
    return a_result(ordinal, found=False, first_rank=None)


def test_the_question_table_is_the_specified_one() -> None:
    runs = [unavailable("semantic"), a_run("keyword"), unavailable("hybrid"), unavailable("hybrid_rerank")]
    down = [failed(0), failed(1)]
    assert tables.questions(runs, [down, [missed(0), a_result(1)], down, down]) == SPECIFIED


def test_the_table_of_means_is_the_specified_one() -> None:
    assert tables.aggregate([unavailable("semantic"), a_run("keyword")]) == SPECIFIED_MEANS


def test_hits_beyond_top_k_are_left_out_and_a_document_is_called_one() -> None:
    run = a_run(
        "keyword",
        level="document",
        top_k=4,
        ks=[1, 3],
        primary_metric="mrr@4",
        metrics={key: {"mean": 0.25, "low": 0, "high": 1, "n": 2, "n_total": 2} for key in ("hit@1", "hit@3", "mrr@4")},
    )
    lines = tables.aggregate([run]).splitlines()
    assert lines[0] == "Aggregate metrics (rank of first correct document):"
    assert lines[1].split() == ["mode", "hit@1", "hit@3", "MRR", "evaluated"]
    assert lines[2].split() == ["keyword", "0.25", "0.25", "0.250", "2", "of", "2"]


def test_an_error_is_a_word_in_its_cell_and_a_code_below_the_table() -> None:
    run = a_run("keyword")
    lines = tables.questions([run], [[failed(0, "PROVIDER_TIMEOUT", "took 60 s"), a_result(1)]]).splitlines()
    assert lines[1].endswith("   error")
    assert lines[-1] == "keyword: 1 × PROVIDER_TIMEOUT (#1)  took 60 s"


def test_errors_of_one_code_and_reason_are_told_once_with_their_questions() -> None:
    rows = [failed(ordinal, "DEADLINE", "late") for ordinal in range(12)]
    lines = tables.questions([a_run("keyword")], [rows]).splitlines()
    assert lines[-1] == "keyword: 12 × DEADLINE (#1, #2, #3, #4, #5, #6, #7, #8, …)  late"


def test_a_question_that_expects_nothing_is_neither_missed_nor_found() -> None:
    shown = tables.questions([a_run("keyword")], [[a_result(0, found=None, first_rank=None), a_result(1)]])
    assert "miss" not in shown
    assert "it is in no figure" in shown


def test_a_stopped_run_says_which_questions_were_not_asked() -> None:
    rows = [a_result(0), a_result(1, outcome="not_run", found=None, code="PROVIDER_AUTH", reason="bad key")]
    shown = tables.questions([a_run("keyword")], [rows])
    assert "not run" in shown
    assert "1 × PROVIDER_AUTH (#2)  bad key" in shown


def test_long_questions_and_wide_letters_keep_the_columns_in_line() -> None:
    long = "x" * 200
    rows = [a_result(0, question=long), a_result(1, question="日本語の質問"), a_result(2, question="a\nb\tc")]
    lines = tables.questions([a_run("keyword")], [rows]).splitlines()
    assert lines[1].startswith(f"1   {'x' * 59}…")
    assert lines[3].startswith("3   a b c ")
    assert len(lines[2]) == len(lines[1]) - len("日本語の質問"), "six letters take twelve columns"


def test_a_primary_metric_of_another_kind_has_a_column_of_its_own() -> None:
    metrics = {**a_run("keyword")["metrics"], "ndcg@10": {"mean": 0.1234, "low": 0, "high": 1, "n": 2, "n_total": 2}}
    shown = tables.aggregate([a_run("keyword", primary_metric="ndcg@10", metrics=metrics)])
    assert "ndcg@10" in shown
    assert "0.123" in shown


def test_questions_of_a_deleted_set_are_named_by_their_keys() -> None:
    assert "1   q0 " in tables.questions([a_run("keyword")], [[a_result(0, question=None)]])


def test_a_grid_is_as_wide_as_its_widest_cells() -> None:
    assert tables.grid(["a", "n"], [["xyz", 1], ["x", 22]], right=[1]) == "a     n\nxyz   1\nx    22"


def test_results_of_earlier_runs_are_told_as_such_with_what_asks_again() -> None:
    again = " nothing has changed since. Ask again with --no-cache."
    one = a_run("keyword", cost={"reused": 2.0}, origin={"reused_from": "r1"})
    other = a_run("hybrid", cost={"reused": 1.0, "embed_calls": 1.0}, origin={"reused_from": "r2"})
    assert tables.taken_over([a_run("keyword")]) == ""
    assert tables.taken_over([one]) == "2 of 2 results were taken over from run r1:" + again
    assert tables.taken_over([one, other]) == "3 of 4 results were taken over from runs r1, r2:" + again
