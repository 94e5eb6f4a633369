"""What matched is marked where it stands, folded as everywhere, and nothing of the text is lost."""

from hypothesis import given
from hypothesis import strategies as st

from backend.core.highlighting import Piece, pieces


def marked(text: str, kind: str, **how: object) -> list[str]:
    return [one.text for one in pieces(text, **how) if one.kind == kind]  # type: ignore[arg-type]


def test_a_label_is_marked_however_it_is_cased_and_spaced() -> None:
    assert marked("the revenue\n  GREW fast", "label", labels=["Revenue grew"]) == ["revenue\n  GREW"]
    assert marked("İSTANBUL gelirleri", "label", labels=["istanbul", "GELİRLERİ"]) == ["İSTANBUL", "gelirleri"]


def test_words_of_the_question_are_marked_as_whole_words_and_not_the_small_ones() -> None:
    assert marked("The leave, a leaves and LEAVE.", "word", question="Is it leave?") == ["leave", "LEAVE"]


def test_a_label_wins_over_a_word_inside_it() -> None:
    found = pieces("thirty days of leave", labels=["days of leave"], question="leave")
    assert found == [Piece(text="thirty "), Piece(text="days of leave", kind="label")]


def test_nothing_to_mark_leaves_one_piece_and_nothing_none() -> None:
    assert pieces("plain", labels=["", "absent"]) == [Piece(text="plain")]
    assert pieces("", labels=["x"]) == []


@given(st.text(max_size=60), st.lists(st.text(max_size=5), max_size=3), st.text(max_size=20))
def test_the_pieces_together_are_the_text(text: str, labels: list[str], question: str) -> None:
    assert "".join(one.text for one in pieces(text, labels=labels, question=question)) == text
