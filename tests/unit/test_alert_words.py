"""What an alert says of its cause, and what leaves the house."""

from dataclasses import replace

from backend.core import alerts
from backend.core.alerts import Event, LabelChange, Measured
from backend.core.comparison import CorpusChange

BEFORE = Measured(
    corpus="a", labels="b", config={"mode": "hybrid", "depth": 100}, config_fingerprint="c", definitions="1", code="2"
)


def test_the_cause_counts_what_changed_and_says_what_did_not() -> None:
    after = replace(BEFORE, corpus="x", labels="y")
    told = alerts.cause(BEFORE, after, documents=CorpusChange(n_added=214), labels=LabelChange(n_added=3, n_changed=1))
    assert told.sentences == (
        "corpus +214 documents",
        "labels +3, 1 changed questions",
        "configuration same",
    )
    same = alerts.cause(BEFORE, BEFORE, documents=None, labels=None)
    assert same.sentences == ("corpus same", "labels same", "configuration same")


def test_a_change_that_nobody_counted_is_still_a_change() -> None:
    told = alerts.cause(BEFORE, replace(BEFORE, corpus="x"), documents=None, labels=None)
    assert told.sentences[0] == "corpus changed"


def test_a_changed_configuration_names_its_settings() -> None:
    after = replace(BEFORE, config={"mode": "hybrid", "depth": 50}, config_fingerprint="d", code="3")
    told = alerts.cause(BEFORE, after, documents=None, labels=None)
    assert told.sentences[2:] == ("configuration changed (depth)", "Touchstone's version changed")
    rebuilt = alerts.cause(BEFORE, replace(BEFORE, config_fingerprint="d"), documents=None, labels=None)
    assert rebuilt.settings == ("index",)


def test_a_question_without_a_result_is_not_lost() -> None:
    before = {"q1": 1, "q2": 3, "q3": 11, "q4": 2}
    assert alerts.lost(before, {"q1": None, "q2": 2, "q3": None}, k=10) == ("q1",)
    assert alerts.lost(before, {"q1": 11, "q2": 4}, k=3) == ("q1", "q2")


def test_questions_leave_by_id_alone_unless_the_owner_allows_their_texts() -> None:
    lost = [{"id": "q1", "question": "a secret plan"}]
    alert = {"title": "broke"}
    closed = alerts.body(event=Event.OPENED, alert=alert, lost_questions=lost, with_texts=False)
    assert closed["lost"] == [{"id": "q1"}]
    assert "secret" not in alerts.to_text(closed)
    allowed = alerts.body(event=Event.OPENED, alert=alert, lost_questions=lost, with_texts=True)
    assert "q1: a secret plan" in alerts.to_text(allowed)


def test_a_long_list_of_lost_questions_is_cut_and_says_so() -> None:
    lost = [{"id": f"q{n}", "question": None} for n in range(120)]
    told = alerts.body(event=Event.OPENED, alert={"title": "broke"}, lost_questions=lost, with_texts=False)
    assert (len(told["lost"]), told["n_lost"]) == (alerts.MOST_LOST, 120)
    assert "and 70 more" in alerts.to_text(told)
