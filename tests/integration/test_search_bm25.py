"""BM25 files against the formula itself, and their life on disk."""

import math
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection

from backend.search import bm25, bm25_files
from backend.search.snapshot import open_snapshot
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _files(settings: object, tmp_path: Path) -> Iterator[None]:
    settings.CACHE_DIR = tmp_path  # type: ignore[attr-defined]
    bm25.forget()
    yield
    bm25.forget()


def ask(base: Base, question: str, *, depth: int = 100, **filters: object) -> list[tuple[str, float]]:
    with open_snapshot(base.scope()) as snapshot:
        words = snapshot.lexemes_of(question, language=base.language)
        opened = bm25.open_words(base.index.id, snapshot.generations[base.index.id])
        return opened.best(words, depth=depth, **filters)  # type: ignore[arg-type]


def plain_bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """The formula, k1 1.2, b 0.75, with Lucene's idf."""
    k1, b = 1.2, 0.75
    average = sum(map(len, texts)) / len(texts)
    holding = {word: sum(word in text for text in texts) for word in set(query)}
    scores = []
    for text in texts:
        counts, norm = Counter(text), k1 * (1 - b + b * len(text) / average)
        scores.append(
            math.fsum(
                math.log(1 + (len(texts) - holding[word] + 0.5) / (holding[word] + 0.5))
                * counts[word]
                / (counts[word] + norm)
                for word in query
            )
        )
    return scores


def test_scores_are_those_of_plain_bm25() -> None:
    draw = random.Random(7)
    texts = [[f"w{min(int(draw.expovariate(0.15)), 40)}" for _ in range(draw.randint(1, 60))] for _ in range(120)]
    base = make_base(*(Row(path=f"d{i:03}.txt", text=" ".join(text)) for i, text in enumerate(texts)))
    paths = {str(key): path for key, path in base.index.chunks.values_list("id", "path")}
    for query in (["w1"], ["w3", "w9", "w30"], ["w2", "w2", "w17"], ["w0", "unknown"]):
        expected = plain_bm25(texts, query)
        found = ask(base, " ".join(query), depth=1000)
        assert {paths[chunk]: score for chunk, score in found} == {
            f"d{i:03}.txt": pytest.approx(score, rel=1e-12) for i, score in enumerate(expected) if score > 0
        }


def order_of(base: Base, found: list[tuple[str, float]]) -> list[str]:
    paths = {str(key): path for key, path in base.index.chunks.values_list("id", "path")}
    return [paths[chunk] for chunk, _ in found]


def test_equal_scores_come_by_path_in_byte_order_also_at_the_cut() -> None:
    base = make_base(*(Row(path=path, text="same words") for path in ("b", "a", "Z", "é", "c")))
    assert order_of(base, ask(base, "same")) == ["Z", "a", "b", "c", "é"]
    assert order_of(base, ask(base, "same", depth=3)) == ["Z", "a", "b"]


def test_chunks_without_any_word_are_never_fillers() -> None:
    base = make_base(Row(path="a", text="apple"), Row(path="b", text="pear"), Row(path="c", text="..."))
    assert order_of(base, ask(base, "apple", depth=10)) == ["a"]


def test_an_empty_index_an_empty_question_and_stop_words_find_nothing() -> None:
    empty = make_base(name="empty")
    assert ask(empty, "anything") == []
    wordless = make_base(Row(path="a", text="..."), workspace=empty.workspace, name="wordless")
    assert ask(wordless, "anything") == []
    english = make_base(Row(path="a", text="the cat"), workspace=empty.workspace, name="english", language="english")
    assert ask(english, "the of and") == []
    assert ask(english, "") == []
    assert order_of(english, ask(english, "CATS")) == ["a"]


def test_accents_and_case_do_not_matter() -> None:
    base = make_base(Row(path="a", text="Café Müller"), Row(path="b", text="other"))
    assert order_of(base, ask(base, "cafe muller")) == ["a"]


def test_filters_act_before_the_cut_and_leave_the_statistics_alone() -> None:
    base = make_base(
        Row(path="a", text="apple apple apple", source="x"),
        Row(path="b", text="apple pear", source="y", collection="k"),
        Row(path="c", text="apple", source="y"),
    )
    unfiltered = dict(zip(order_of(base, found := ask(base, "apple")), [s for _, s in found], strict=True))
    assert order_of(base, ask(base, "apple", depth=1)) == ["a"]
    found = ask(base, "apple", depth=1, source="y")
    assert order_of(base, found) == ["c"]
    assert found[0][1] == unfiltered["c"]
    assert order_of(base, ask(base, "apple", depth=1, collection="k")) == ["b"]
    assert order_of(base, ask(base, "apple", documents=frozenset({base.documents["b"].id}))) == ["b"]
    assert ask(base, "apple", documents=frozenset()) == []
    assert ask(base, "apple", source="nowhere") == []


def test_a_new_generation_has_a_file_of_its_own_and_the_newest_two_are_kept(tmp_path: Path) -> None:
    base = make_base(Row(path="a", text="apple"))
    assert order_of(base, ask(base, "apple")) == ["a"]
    for path in ("b", "c", "d"):
        base.add(Row(path=path, text="apple"))
        assert path in order_of(base, ask(base, "apple"))
    folder = tmp_path / "bm25" / "1" / str(base.index.id)
    assert sorted(entry.name for entry in folder.iterdir()) == ["3", "4", "lock"]


def test_a_snapshot_reads_the_file_of_its_own_generation() -> None:
    base = make_base(Row(path="a", text="apple"))
    with open_snapshot(base.scope()) as before:
        generation = before.generations[base.index.id]
        added = threading.Thread(target=_in_thread, args=(base,))
        added.start()
        added.join()
        words = before.lexemes_of("apple", language="simple")
        opened = bm25.open_words(base.index.id, generation)
        assert len(opened.best(words, depth=10)) == 1
    assert len(ask(base, "apple")) == 2


def _in_thread(base: Base) -> None:
    try:
        base.add(Row(path="b", text="apple"))
    finally:
        connection.close()


def test_an_older_file_may_serve_until_the_new_one_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_base(Row(path="a", text="apple"))
    ask(base, "apple")
    base.add(Row(path="b", text="apple"))
    monkeypatch.setattr(bm25_files, "_build", lambda *_: pytest.fail("nothing may be built"))
    with open_snapshot(base.scope(), older_words=True) as snapshot:
        opened = bm25.open_words(base.index.id, snapshot.generations[base.index.id], older=True)
        assert len(opened.best(("apple",), depth=10)) == 1


def test_builders_at_the_same_time_build_once(monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_base(*(Row(path=f"{i}", text=f"apple w{i}") for i in range(50)))
    built: list[Path] = []
    build = bm25_files._build

    def counted(index_id: UUID, target: Path) -> None:
        built.append(target)
        build(index_id, target)

    monkeypatch.setattr(bm25_files, "_build", counted)
    results: list[int] = []

    def one() -> None:
        try:
            results.append(len(ask(base, "apple")))
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [50] * 4
    assert len(built) == 1


def test_a_file_that_vanished_is_built_again_and_removal_leaves_nothing(tmp_path: Path) -> None:
    base = make_base(Row(path="a", text="apple"))
    ask(base, "apple")
    bm25_files.remove(base.index.id)
    assert list((tmp_path / "bm25" / "1").iterdir()) == []
    bm25.forget()
    assert order_of(base, ask(base, "apple")) == ["a"]


def test_an_abandoned_build_is_cleared_away(tmp_path: Path) -> None:
    base = make_base(Row(path="a", text="apple"))
    abandoned = tmp_path / "bm25" / "1" / str(base.index.id) / ".1-dead"
    abandoned.mkdir(parents=True)
    assert order_of(base, ask(base, "apple")) == ["a"]
    assert not abandoned.exists()


def test_files_of_indexes_that_are_gone_are_removed(tmp_path: Path) -> None:
    kept, gone = make_base(Row(path="a", text="apple")), make_base(Row(path="a", text="apple"))
    for base in (kept, gone):
        ask(base, "apple")
    gone.knowledge_base.delete()
    assert bm25_files.remove_unknown() == 1
    assert [entry.name for entry in (tmp_path / "bm25" / "1").iterdir()] == [str(kept.index.id)]
    assert bm25_files.remove_unknown() == 0
