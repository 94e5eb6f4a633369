"""Text is compared in one form, whatever its case, its spaces, its line breaks or its Turkish."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.core.folding import fold


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("istanbul", "İSTANBUL"),
        ("İSTANBUL", "istanbul"),
        ("ısparta", "ISPARTA"),
        ("ISPARTA", "ısparta"),
        ("gelirleri", "GELİRLERİ"),
        ("GELİRLERİ", "2023 yılı gelirleri arttı"),
        ("strasse", "STRAẞE"),
        ("revenue grew", "Revenue\n\t  GREW"),
        ("revenue grew", "revenue\u00a0grew"),
        ("gelirleri", "gelir-\nleri"),
        ("gelirleri", "gelir-\r\n   leri"),
        ("gelirleri", "GELİR\u00ad\nLERİ"),
        ("ölçüm", "öl\u2010\nçüm"),
        ("cooperate", "co\u00adoperate"),
        ("cooperate", "co\u200boperate"),
        ("file", "ﬁle"),
        ("ａｂｃ", "abc"),
        ("café", "cafe\u0301"),
        ("résumé", "RE\u0301SUME\u0301"),
    ],
)
def test_a_label_is_found_however_the_document_writes_it(needle: str, text: str) -> None:
    assert fold(needle) in fold(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cafe", "café"),
        ("ż", "z"),
        ("well-known", "wellknown"),
        ("2019-\n2020", "20192020"),
        ("one --\ntwo", "one two"),
        ("a--\nb", "ab"),
    ],
)
def test_what_differs_stays_different(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_nothing_but_space_folds_to_nothing() -> None:
    assert fold(" \t\r\n\u00a0\u200b") == ""


@settings(deadline=None)
@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii")))
def test_the_short_way_for_ascii_gives_what_the_long_way_gives(text: str) -> None:
    # An accented word at the end sends the same text the long way round.
    assert fold(text + " é") == f"{fold(text)} é".strip()


@settings(deadline=None)
@given(st.text(st.sampled_from("aAiIıİ\u0307\u0301\u00ad\u200b\u200d-\u2010 \n\r\tz1ßﬁŞ")))
def test_folding_twice_changes_nothing_of_the_hard_characters(text: str) -> None:
    assert fold(fold(text)) == fold(text)
