"""What satisfies an expectation: exact names first, folded text, never an empty label."""

import pytest

from backend.core.matching import KnownPaths, Targets, merge, satisfies
from backend.core.types import Alternative, Expectation, Passage


def held(text: str = "", *, path: str = "reports/Q3 Report.pdf", source: str = "files", key: str = "p1") -> Passage:
    return Passage(id=key, document_id="d", path=path, source=source, text=text)


@pytest.mark.parametrize(
    "alternative",
    [
        Alternative(path="reports/Q3 Report.pdf"),
        Alternative(path="reports/Q3 Report.pdf", source="files"),
        Alternative(document="q3 report"),
        Alternative(document="REPORTS/"),
        Alternative(content_contains=("nothing", "revenue grew")),
        Alternative(document="report.pdf", content_contains=("GELİRLERİ",)),
        Alternative(passage="p1"),
        Alternative(passage="gone", text="Revenue\ngrew"),
        Alternative(text="revenue grew"),
        Alternative(passage="p1", text="not here any more"),
        Alternative(passage="p1", text=""),
    ],
)
def test_a_passage_satisfies(alternative: Alternative) -> None:
    assert satisfies(held("In 2023 revenue GREW; gelirleri arttı."), alternative)


@pytest.mark.parametrize(
    "alternative",
    [
        Alternative(path="reports/q3 report.pdf"),
        Alternative(path="Q3 Report.pdf"),
        Alternative(path="reports/Q3 Report.pdf", source="web"),
        Alternative(document="q4"),
        Alternative(document="revenue"),
        Alternative(content_contains=("q3 report",)),
        Alternative(document="report.pdf", content_contains=("loss",)),
        Alternative(document="q4", content_contains=("revenue",)),
        Alternative(path="other.pdf", content_contains=("revenue",)),
        Alternative(passage="P1"),
        Alternative(),
        Alternative(document=""),
        Alternative(document="\u200b"),
        Alternative(content_contains=("",)),
        Alternative(content_contains=(" \n",)),
        Alternative(path="reports/Q3 Report.pdf", content_contains=("",)),
        Alternative(text=""),
    ],
)
def test_a_passage_does_not_satisfy(alternative: Alternative) -> None:
    assert not satisfies(held("In 2023 revenue GREW; gelirleri arttı."), alternative)


def test_a_path_is_folded_only_where_no_known_path_is_equal_and_one_alone_folds_alike() -> None:
    known = KnownPaths([("files", "A.pdf"), ("files", "a.pdf"), ("files", "İzin.pdf"), ("web", "İzin.pdf")])
    assert known.path("a.pdf") == "a.pdf"
    assert known.path("Ａ.pdf") is None
    assert known.path("izin.PDF") == "İzin.pdf"
    assert known.path("izin.PDF", source="web") == "İzin.pdf"
    assert known.path("izin.PDF", source="mail") is None
    assert satisfies(held(path="İzin.pdf"), Alternative(path="izin.pdf"), known=known)
    assert not satisfies(held(path="A.pdf"), Alternative(path="a.pdf"), known=known)


def test_a_source_narrows_what_a_folded_path_may_mean() -> None:
    known = KnownPaths([("files", "A.pdf"), ("web", "a.pdf")])
    assert known.path("Ａ.pdf") is None
    assert known.path("Ａ.pdf", source="web") == "a.pdf"
    assert known.path("A.pdf", source="web") == "a.pdf"


def test_a_passage_id_is_folded_only_where_that_is_unique() -> None:
    known = KnownPaths([], passages=["0AF1", "x", "X"])
    assert known.passage("0af1") == "0AF1"
    assert known.passage("x") == "x"
    assert known.passage("ｘ") is None
    assert satisfies(held(key="0AF1"), Alternative(passage="0af1"), known=known)


def test_targets_give_the_index_of_every_expectation_satisfied() -> None:
    targets = Targets(
        merge(
            [
                Expectation(any_of=(Alternative(path="a.md"),)),
                Expectation(any_of=(Alternative(path="b.md"), Alternative(content_contains=("beta",)))),
                Expectation(any_of=(Alternative(path="a.md", content_contains=("alpha",)),)),
                Expectation(any_of=(Alternative(path="a.md", source="web"),)),
            ]
        )
    )
    assert targets.satisfied_by(held("", path="a.md", key="1")) == (0,)
    assert targets.satisfied_by(held("alpha beta", path="a.md", key="2")) == (0, 1, 2)
    assert targets.satisfied_by(held("", path="a.md", source="web", key="3")) == (0, 3)
    assert targets.satisfied_by(held("", path="c.md", key="4")) == ()
