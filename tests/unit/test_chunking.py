"""Chunks: exact offsets, nothing lost, nothing too long."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.core.chunking import ChunkMode, ChunkSettings, chunk
from backend.core.errors import ValidationError
from backend.core.types import ChunkSpan, ExtractedText, Mark


def words(text: str) -> list[int]:
    """A tokeniser of the simplest kind: a token for each run of three letters, and each sign."""
    return [found.start() for found in re.finditer(r"\w{1,3}|[^\w\s]", text)]


def uncovered(text: str, chunks: list[ChunkSpan]) -> list[int]:
    covered = bytearray(len(text))
    for span in chunks:
        covered[span.start : span.end] = b"\x01" * (span.end - span.start)
    return [place for place, character in enumerate(text) if not covered[place] and not re.match(r"\s", character)]


TEXTS = st.lists(
    st.sampled_from(
        [
            "word",
            "sentence. ",
            "\n\n",
            "\n",
            " ",
            "- item ",
            "a | b | c",
            "漢字。",
            "😀",
            "👩\u200d🔬",
            "é",
            "x" * 70,
            "\t",
            "…",
        ]
    )
    | st.text(max_size=30),
    max_size=120,
).map("".join)


@given(
    TEXTS,
    st.integers(50, 300),
    st.integers(0, 25),
    st.sampled_from([None, 8, 20, 60]),
    st.lists(st.integers(0, 2000), max_size=6),
)
def test_nothing_is_lost_and_nothing_is_too_long(
    text: str, size: int, overlap: int, max_tokens: int | None, places: list[int]
) -> None:
    marks = tuple(
        Mark(start=place, heading=(str(number),)) for number, place in enumerate(sorted({*places})) if place < len(text)
    )
    extracted = ExtractedText(text=text, marks=marks)
    settings = ChunkSettings(size=size, overlap=overlap, max_tokens=max_tokens)
    chunks = chunk(extracted, settings, words)
    assert uncovered(text, chunks) == []
    tokens = words(text)
    for span in chunks:
        assert 0 < span.end - span.start <= size
        assert text[span.start : span.end] == text[span.start : span.end].strip()
        assert not span.truncated
        if max_tokens is not None:
            assert sum(span.start <= place < span.end for place in tokens) <= max_tokens
    assert [span.start for span in chunks] == sorted({span.start for span in chunks})
    assert [span.end for span in chunks] == sorted({span.end for span in chunks})
    for before, after in pairwise(chunks):
        assert before.end - after.start <= overlap


def test_offsets_are_characters_also_beyond_the_basic_plane() -> None:
    text = "😀 first sentence here. " * 40
    for span in chunk(ExtractedText(text=text), ChunkSettings(size=100, overlap=0)):
        assert text[span.start : span.end].startswith("😀")
        assert text[span.start : span.end].endswith(".")


def test_a_heading_begins_a_chunk() -> None:
    first, second = "One\n\n" + "alpha " * 80, "Two\n\n" + "beta " * 80
    text = first + "\n\n" + second
    marks = (Mark(start=0, heading=("One",)), Mark(start=len(first) + 2, heading=("One", "Two")))
    chunks = chunk(ExtractedText(text=text, marks=marks), ChunkSettings())
    assert [text[span.start : span.start + 3] for span in chunks] == ["One", "Two"]
    assert [span.heading for span in chunks] == [("One",), ("One", "Two")]


def test_a_heading_with_next_to_nothing_below_it_joins_the_next_section() -> None:
    text = "Title\n\nPart\n\n" + "alpha " * 100
    marks = (Mark(start=0, heading=("Title",)), Mark(start=7, heading=("Title", "Part")))
    chunks = chunk(ExtractedText(text=text, marks=marks), ChunkSettings())
    assert [(span.start, span.heading) for span in chunks] == [(0, ("Title",))]


def test_a_page_turn_alone_cuts_nothing_and_each_chunk_knows_its_page() -> None:
    text = "\n\n".join("sentence of some length. " * 10 for _ in range(12))
    marks = tuple(Mark(start=text.index("sentence", 252 * page), page=page + 1) for page in range(12))
    chunks = chunk(ExtractedText(text=text, marks=marks), ChunkSettings(size=600, overlap=0))
    assert [span.page for span in chunks] == [1, 3, 5, 7, 9, 11]


def test_chunks_end_at_paragraphs_before_sentences_and_at_sentences_before_words() -> None:
    paragraphs = "\n\n".join("some words in a row. " * 20 for _ in range(4))
    chunks = chunk(ExtractedText(text=paragraphs), ChunkSettings(size=700, overlap=0))
    assert len(chunks) == 4
    sentences = "this is a sentence of middling length. " * 40
    for span in chunk(ExtractedText(text=sentences), ChunkSettings(size=200, overlap=0)):
        assert sentences[span.start : span.end].startswith("this")
    plain = "word " * 300
    for span in chunk(ExtractedText(text=plain), ChunkSettings(size=203, overlap=0)):
        assert plain[span.start : span.end].endswith("word")


def test_a_table_is_cut_between_rows() -> None:
    text = "\n".join(f"Acme Inc. no {number} | {number * 7} | more text here. And more" for number in range(100))
    for span in chunk(ExtractedText(text=text), ChunkSettings(size=300, overlap=0)):
        assert text[span.start : span.end].startswith("Acme")


def test_neighbours_overlap_from_the_start_of_a_sentence() -> None:
    text = " ".join(f"Sentence number {number} says this." for number in range(100))
    chunks = chunk(ExtractedText(text=text), ChunkSettings(size=400, overlap=100))
    for before, after in pairwise(chunks):
        assert 0 < before.end - after.start <= 100
        assert text[after.start :].startswith("Sentence")


def test_an_overlap_larger_than_the_window_still_comes_to_an_end() -> None:
    text = "abc " * 500
    chunks = chunk(ExtractedText(text=text), ChunkSettings(size=1200, overlap=600, max_tokens=8), words)
    assert uncovered(text, chunks) == []
    assert len(chunks) < 150


def test_a_text_without_any_break_is_cut_all_the_same_but_not_inside_an_emoji() -> None:
    text = "👩\u200d🔬" * 200
    chunks = chunk(ExtractedText(text=text), ChunkSettings(size=100, overlap=0))
    assert uncovered(text, chunks) == []
    assert {(span.end - span.start) % 3 for span in chunks} == {0}


def test_a_small_window_makes_smaller_chunks() -> None:
    text = "some words in a row. " * 200
    free = chunk(ExtractedText(text=text), ChunkSettings(overlap=0))
    tight = chunk(ExtractedText(text=text), ChunkSettings(overlap=0, max_tokens=64), words)
    assert len(tight) > 2 * len(free)


def test_an_unknown_tokeniser_leaves_the_size_in_characters() -> None:
    text = "some words in a row. " * 200
    settings = ChunkSettings(max_tokens=64)
    assert chunk(ExtractedText(text=text), settings, lambda _: None) == chunk(ExtractedText(text=text), settings)


def test_a_long_document_is_tokenised_in_parts_with_offsets_of_the_whole() -> None:
    text = "abcdef " * 60_000
    calls: list[int] = []

    def counted(part: str) -> list[int]:
        calls.append(len(part))
        return words(part)

    settings = ChunkSettings(max_tokens=32, overlap=0)
    chunks = chunk(ExtractedText(text=text), settings, counted)
    assert sum(calls) == len(text)
    assert max(calls) <= 200_000
    assert {span.end - span.start for span in chunks[:-1]} == {16 * 7 - 1}


def test_one_chunk_a_document_says_that_the_model_cuts_it() -> None:
    text = "  some words in a row. " * 20
    settings = ChunkSettings(mode=ChunkMode.DOCUMENT, max_tokens=64)
    assert chunk(ExtractedText(text=text), settings, words) == [
        ChunkSpan(start=2, end=len(text.rstrip()), truncated=True)
    ]
    (short,) = chunk(ExtractedText(text="some words"), settings, words)
    assert not short.truncated


@pytest.mark.parametrize("mode", list(ChunkMode))
@pytest.mark.parametrize("text", ["", " \n\n\t "])
def test_a_document_without_text_has_no_chunks(text: str, mode: ChunkMode) -> None:
    assert chunk(ExtractedText(text=text), ChunkSettings(mode=mode)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", 10), ("size", 10**6), ("overlap", -1), ("overlap", 601), ("max_tokens", 1), ("mode", "pages")],
)
def test_settings_that_cannot_work_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        ChunkSettings(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field


def test_five_megabytes_take_about_a_second() -> None:
    text = "\n\n".join("A sentence of words that has some length, as they do. " * 12 for _ in range(8_000))
    started = time.perf_counter()
    chunks = chunk(ExtractedText(text=text), ChunkSettings())
    elapsed = time.perf_counter() - started
    assert len(chunks) > 4_000
    assert len(text) / elapsed > 2_000_000  # 8 to 30 million a CPU second were measured; other work may share the core
