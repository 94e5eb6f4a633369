"""Labels against a corpus: what they name, what they miss, and the names they may have meant."""

import random
from collections.abc import Sequence

import pytest

from backend.core.folding import fold
from backend.core.matching import Targets, merge
from backend.core.resolving import (
    DocumentFact,
    FindingKind,
    LabelState,
    Names,
    ResolvedExpectation,
    Resolver,
    check_questions,
    label_of,
)
from backend.core.resolving.needles import Needles
from backend.core.types import Alternative, Expectation, Passage, Question

DOCUMENTS = [
    DocumentFact(id="leave", path="policies/leave.pdf", source="files"),
    DocumentFact(id="travel", path="policies/travel.pdf", source="files"),
    DocumentFact(id="old", path="archive/leave.pdf", source="files", in_scope=False),
    DocumentFact(id="scan", path="scans/scan.pdf", source="files", indexed=False, code="DOCUMENT_NO_TEXT"),
]
PASSAGES = {
    "p1": ("leave", "Everyone has 25 days of paid leave."),
    "p2": ("leave", "Ask your line manager. GELİRLERİ arttı."),
    "p3": ("travel", "Trips are approved by the line manager."),
    "p4": ("old", "In 1999 there were 20 days."),
}
TEXTS = {"leave": "Everyone has 25 days of paid leave. Ask your line manager. GELİRLERİ arttı."}


def resolve(*alternatives: Alternative, documents: Sequence[DocumentFact] = DOCUMENTS) -> ResolvedExpectation:
    """One question with one expectation of these alternatives."""
    question = Question(key="q", text="?", expectations=(Expectation(any_of=alternatives),))
    resolver = Resolver([question], documents)
    ids = resolver.passage_ids
    resolver.know_passages({key: document for key, (document, _) in PASSAGES.items() if key in ids})
    wanted = resolver.open_documents()
    resolver.read_passages(
        (document, text, key) for key, (document, text) in PASSAGES.items() if wanted is None or document in wanted
    )
    wanted = resolver.open_documents()
    resolver.read_texts((key, text) for key, text in TEXTS.items() if wanted is None or key in wanted)
    return resolver.of(0)[0]


@pytest.mark.parametrize(
    ("alternative", "state"),
    [
        (Alternative(path="policies/leave.pdf"), LabelState.RESOLVED),
        (Alternative(path="POLICIES/Leave.pdf"), LabelState.RESOLVED),
        (Alternative(path="policies/leave.pdf", source="files"), LabelState.RESOLVED),
        (Alternative(path="policies/leave.pdf", source="drive"), LabelState.NO_DOCUMENT),
        (Alternative(path="leave.pdf"), LabelState.NO_DOCUMENT),
        (Alternative(path="archive/leave.pdf"), LabelState.OUTSIDE_SCOPE),
        (Alternative(path="scans/scan.pdf"), LabelState.NOT_INDEXED),
        (Alternative(document="Leave"), LabelState.RESOLVED),
        (Alternative(document="sick"), LabelState.NO_DOCUMENT),
        (Alternative(document="archive/"), LabelState.OUTSIDE_SCOPE),
        (Alternative(content_contains=("gelirleri",)), LabelState.RESOLVED),
        (Alternative(content_contains=("nowhere at all", "LINE  manager")), LabelState.RESOLVED),
        (Alternative(content_contains=("paid leave. ask your",)), LabelState.CROSSES_BORDER),
        (Alternative(content_contains=("unlimited holidays",)), LabelState.NO_TEXT),
        (Alternative(content_contains=("20 days",)), LabelState.OUTSIDE_SCOPE),
        (Alternative(document="travel", content_contains=("25 days",)), LabelState.NO_TEXT),
        (Alternative(document="scan", content_contains=("25 days",)), LabelState.NOT_INDEXED),
        (Alternative(document="sick", content_contains=("25 days",)), LabelState.NO_DOCUMENT),
        (Alternative(passage="p3"), LabelState.RESOLVED),
        (Alternative(passage="p9"), LabelState.NO_PASSAGE),
        (Alternative(passage="p9", text="approved by the line manager"), LabelState.RESOLVED),
        (Alternative(passage="p9", text="approved by nobody"), LabelState.NO_TEXT),
        (Alternative(content_contains=("days",), text="paid leave"), LabelState.RESOLVED),
        (Alternative(content_contains=("trips",), text="paid leave"), LabelState.NO_TEXT),
    ],
)
def test_a_label_is_what_the_corpus_makes_of_it(alternative: Alternative, state: LabelState) -> None:
    assert resolve(alternative).state is state


def test_an_expectation_has_the_state_of_its_best_alternative() -> None:
    told = resolve(Alternative(path="nowhere.pdf"), Alternative(path="archive/leave.pdf"))
    assert told.state is LabelState.OUTSIDE_SCOPE
    assert told.documents == ("old",)
    told = resolve(Alternative(path="nowhere.pdf"), Alternative(content_contains=("paid leave. ask your",)))
    assert (told.state, told.documents) == (LabelState.CROSSES_BORDER, ("leave",))


def test_a_text_tells_every_document_and_passage_that_holds_it() -> None:
    told = resolve(Alternative(content_contains=("line manager", "manager")))
    assert told.documents == ("leave", "travel")
    assert told.n_passages == 2  # a passage with both texts is one passage


def test_a_text_that_another_document_holds_is_told_with_it() -> None:
    told = resolve(
        Alternative(document="travel", content_contains=("25 days",)), Alternative(content_contains=("unheard of",))
    )
    assert (told.state, told.alternative.document, told.elsewhere) == (LabelState.NO_TEXT, "travel", "leave")


def test_only_documents_that_a_text_may_be_in_are_read() -> None:
    question = Question(
        key="q",
        text="?",
        expectations=(Expectation(any_of=(Alternative(document="travel", content_contains=("trips",)),)),),
    )
    resolver = Resolver([question], DOCUMENTS)
    assert resolver.open_documents() == ["travel"]
    resolver.read_passages([("travel", "Trips are approved.", "p")])
    assert resolver.open_documents() == []


def test_a_set_of_paths_reads_no_text_at_all() -> None:
    question = Question(key="q", text="?", expectations=(Expectation(any_of=(Alternative(path="a"),)),))
    assert Resolver([question], DOCUMENTS).open_documents() == []


def test_resolving_agrees_with_judging_on_random_labels() -> None:
    chance = random.Random(3)
    words = ["leave", "LINE", "manager", "days", "25", "paid", "Ask", "archive", "policies", "pdf", "gelirleri"]
    paths = {one.id: one.path for one in DOCUMENTS}
    passages = [
        Passage(id=key, document_id=document, path=paths[document], source="files", text=text)
        for key, (document, text) in PASSAGES.items()
    ]
    for _ in range(500):
        alternative = Alternative(
            document=chance.choice([None, None, chance.choice(words)]),
            content_contains=tuple(
                " ".join(chance.choices(words, k=chance.randint(1, 2))) for _ in range(chance.randint(0, 2))
            ),
            passage=chance.choice([None, None, None, "p1", "p7"]),
            text=chance.choice([None, None, "25 days", "line manager", "nothing"]),
        )
        if alternative == Alternative():
            continue
        targets = Targets(merge([Expectation(any_of=(alternative,))]))
        holds = any(targets.satisfied_by(one) for one in passages)
        assert (resolve(alternative).state in {LabelState.RESOLVED, LabelState.OUTSIDE_SCOPE}) is holds, alternative


def test_needles_are_found_wherever_they_are() -> None:
    chance = random.Random(1)
    for _ in range(200):
        texts = ["".join(chance.choices("ab ışç😀", k=chance.randint(0, 60))) for _ in range(chance.randint(0, 6))]
        wanted = {"".join(chance.choices("ab ışç😀", k=chance.randint(1, 20))) for _ in range(20)}
        wanted |= {text[3 : 3 + chance.randint(1, 40)] for text in texts if len(text) > 10}
        found = sorted(Needles(wanted).scan(texts))
        assert found == sorted((at, one) for at, text in enumerate(texts) for one in wanted if one in text)


def test_no_needle_reaches_from_one_text_into_the_next() -> None:
    assert list(Needles(["ab cd", "abcd", "b\x00c"]).scan(["ab", "cd"])) == []


NAMES = [
    ("files", "policies/x.pdf"),
    ("files", "policies/Leave of absence.md"),
    ("files", "archive/x.pdf"),
    ("files", "guides/onboarding.docx"),
    ("drive", "plans/2024.xlsx"),
]


@pytest.mark.parametrize(
    ("label", "first"),
    [
        ("/srv/handbook/policies/x.pdf", "policies/x.pdf"),
        ("C:\\docs\\policies\\X.PDF", "policies/x.pdf"),
        ("./policies/x.pdf", "policies/x.pdf"),
        ("file:///srv/policies/leave%20of%20absence.md", "policies/Leave of absence.md"),
        ("archive/old/x.pdf", "archive/x.pdf"),
        ("onboarding.docx", "guides/onboarding.docx"),
        ("guides/onboarding.pdf", "guides/onboarding.docx"),
        ("guides/onbaording.docx", "guides/onboarding.docx"),
        ("leave of absense", "policies/Leave of absence.md"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(label: str, first: str) -> None:
    assert Names(NAMES).of(label)[0] == first


def test_a_path_of_another_source_is_told_with_that_source() -> None:
    assert Names(NAMES).of("plans/2024.xlsx", source="files")[0] == "drive:plans/2024.xlsx"


def test_nothing_near_is_nothing_told() -> None:
    assert Names(NAMES).of("zzzzzzzz") == ()
    assert Names([]).of("x") == ()


def question(text: str, *alternatives: Alternative, key: str = "q", unanswerable: bool = False) -> Question:
    expectations = tuple(Expectation(any_of=(one,)) for one in alternatives)
    return Question(key=key, text=text, expectations=expectations, unanswerable=unanswerable)


def kinds(*questions: Question) -> list[tuple[int, FindingKind]]:
    return [(one.ordinal, one.kind) for one in check_questions(questions)]


def test_repeats_are_told() -> None:
    a, b = Alternative(path="a"), Alternative(path="b")
    first, same, other = question("How many?", a, key="1"), question("how  MANY?", a, key="2"), question("How many?", b)
    told = list(check_questions([first, same, other]))
    assert [(one.ordinal, one.kind) for one in told] == [
        (1, FindingKind.QUESTION_TWICE),
        (2, FindingKind.QUESTION_TWICE),
    ]
    assert "as 1, with the same expectations" in told[0].message
    assert "with other expectations" in told[1].message
    assert kinds(question("Twice?", a, a)) == [(0, FindingKind.EXPECTATION_TWICE)]


def test_passage_ids_and_contradictions_are_told() -> None:
    assert kinds(question("?", Alternative(passage="p1"))) == [(0, FindingKind.PASSAGE_ID)]
    assert kinds(question("?", Alternative(path="a"), unanswerable=True)) == [
        (0, FindingKind.UNANSWERABLE_WITH_EXPECTATIONS)
    ]
    assert kinds(question("?", unanswerable=True)) == []


def test_a_question_that_names_its_answer_leaks() -> None:
    name = Alternative(path="policies/parental-leave-policy.pdf")
    assert kinds(question("What does the Parental Leave Policy say?", name)) == [(0, FindingKind.LEAK)]
    assert kinds(question("How long is parental leave?", name)) == []
    content = Alternative(content_contains=("Everyone has 25 days, no more.",))
    assert kinds(question("Is it true that everyone has 25 days, no more?", content)) == [(0, FindingKind.LEAK)]
    assert kinds(question("Everyone has 25 days", content)) == [(0, FindingKind.LEAK)]
    assert kinds(question("What is error E-1042?", Alternative(content_contains=("E-1042",)))) == []


def test_a_label_is_shown_as_it_was_written() -> None:
    assert label_of(Alternative(path="a.pdf", source="drive")) == "drive:a.pdf"
    assert label_of(Alternative(document="report", content_contains=("a", "b"))) == "document 'report', text 'a' or 'b'"
    assert label_of(Alternative(passage="p1", text="snippet")) == "passage p1"


def test_folding_is_that_of_judging() -> None:
    assert fold("GELİRLERİ") == "gelirleri"
