"""One question in many configurations: shared legs, deepening, failures that stay where they belong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from backend.core.configs import RetrievalConfig, parse_all
from backend.core.errors import ErrorCode
from backend.core.fusion import rrf
from backend.core.ties import Candidate
from backend.search import bm25, bm25_files, legs, pipeline
from backend.search.snapshot import open_snapshot
from backend.search.types import Failure, IndexRef, Ranked, SearchScope
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)

X = (1.0, 0.0, 0.0)


@pytest.fixture(autouse=True)
def _files(settings: object, tmp_path: Path) -> None:
    settings.CACHE_DIR = tmp_path  # type: ignore[attr-defined]
    bm25.forget()


def configs(*modes: str, **fields: Any) -> tuple[RetrievalConfig, ...]:
    return parse_all(
        modes=None, configurations=[{"mode": mode, "name": mode, **fields} for mode in modes], reranker="local"
    )


def ask(
    *bases: Base,
    modes: tuple[RetrievalConfig, ...],
    question: str = "apple",
    vector: Any = X,
    top_k: int = 10,
    scope: SearchScope | None = None,
) -> dict[str, Ranked | Failure]:
    scope = scope or SearchScope(indexes=tuple(base.ref for base in bases))
    vectors = {index.id: vector for index in scope.all_indexes} if vector is not None else {}
    with open_snapshot(scope) as snapshot:
        return pipeline.search_question(
            question, vectors=vectors, configs=modes, scope=scope, snapshot=snapshot, top_k=top_k
        )


def ranked(answer: Ranked | Failure) -> Ranked:
    assert isinstance(answer, Ranked)
    return answer


def paths(answer: Ranked | Failure) -> list[str]:
    return [entry.passage.path for entry in ranked(answer).entries]


def three() -> Base:
    """By meaning a, b, c; by words c, b."""
    return make_base(
        Row(path="a", text="pear", vector=X),
        Row(path="b", text="apple and more and more", vector=(1.0, 0.5, 0.0)),
        Row(path="c", text="apple", vector=(1.0, 2.0, 0.0)),
    )


def counted(monkeypatch: pytest.MonkeyPatch) -> list[legs.LegKey]:
    read: Callable[..., legs.Leg] = legs.read
    keys: list[legs.LegKey] = []

    def counting(key: legs.LegKey, **arguments: Any) -> legs.Leg:
        keys.append(key)
        return read(key, **arguments)

    monkeypatch.setattr(legs, "read", counting)
    return keys


def test_each_mode_ranks_by_its_legs_and_tells_every_stage() -> None:
    base = three()
    found = ask(base, modes=configs("semantic", "keyword", "hybrid"))
    assert paths(found["semantic"]) == ["a", "b", "c"]
    assert paths(found["keyword"]) == ["c", "b"]
    hybrid = ranked(found["hybrid"])
    expected = rrf(
        [[Candidate(id=p, score=0, path=p) for p in "abc"], [Candidate(id=p, score=0, path=p) for p in "cb"]]
    )
    assert paths(hybrid) == [candidate.id for candidate in expected]
    assert [entry.stages["fused"].score for entry in hybrid.entries] == [each.score for each in expected]
    by_path = {entry.passage.path: entry.stages for entry in hybrid.entries}
    assert {name: stage.rank for name, stage in by_path["c"].items()} == {"meaning": 3, "words": 1, "fused": 1}
    assert set(by_path["a"]) == {"meaning", "fused"}
    assert ranked(found["semantic"]).entries[0].score == pytest.approx(1.0)
    assert hybrid.leg_sizes == {"meaning": 3, "words": 2}
    assert set(hybrid.timings_ms) == {"meaning", "words", "passages", "fusion"}
    assert hybrid.depth == 100


def test_with_equal_vectors_only_the_words_decide() -> None:
    base = make_base(Row(path="a", text="pear"), Row(path="b", text="apple"), Row(path="c", text="plum"))
    assert paths(ask(base, modes=configs("hybrid"))["hybrid"]) == ["b", "a", "c"]


def test_each_distinct_leg_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    base = three()
    keys = counted(monkeypatch)
    ask(base, modes=configs("semantic", "keyword", "hybrid", "hybrid_rerank"))
    assert sorted(key.kind for key in keys) == ["bm25", "semantic"]


def test_a_rerank_mode_gives_its_first_stage_uncut() -> None:
    base = three()
    (config,) = configs("hybrid_rerank", min_score=1000)
    found = ask(base, modes=(config, *configs("hybrid")))
    assert paths(found["hybrid_rerank"]) == paths(found["hybrid"])


def test_min_score_cuts_by_the_last_stage() -> None:
    base = three()
    assert paths(ask(base, modes=configs("semantic", min_score=0.8))["semantic"]) == ["a", "b"]
    assert paths(ask(base, modes=configs("hybrid", min_score=0.0325))["hybrid"]) == []


def many_chunks_of_one_document() -> Base:
    return make_base(
        *(Row(path="long", text="apple", ordinal=i, vector=X) for i in range(30)),
        *(Row(path=f"z{i}", text="apple and something", vector=(1.0, 1.0, 0.0)) for i in range(5)),
    )


def test_too_few_documents_are_read_for_again_four_times_as_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    base = many_chunks_of_one_document()
    keys = counted(monkeypatch)
    for mode in ("semantic", "keyword", "hybrid"):
        keys.clear()
        (config,) = configs(mode, depth=5)
        answer = ranked(ask(base, modes=(config,), top_k=3)[mode])
        assert answer.depth == 80
        assert len({entry.passage.document_id for entry in answer.entries}) == 6
        assert {key.depth for key in keys} == {5, 20, 80}


def test_reading_deeper_ends_with_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    base = three()
    keys = counted(monkeypatch)
    answer = ranked(ask(base, modes=configs("hybrid", depth=3), top_k=10)["hybrid"])
    # The words end at two hits and are not read again; the meaning filled its depth and is.
    assert answer.depth == 12
    assert [(key.kind, key.depth) for key in keys] == [("semantic", 3), ("bm25", 3), ("semantic", 12)]


def test_a_missing_vector_fails_those_that_need_one_and_no_other() -> None:
    base = three()
    down = Failure(code=ErrorCode.PROVIDER_UNAVAILABLE, reason="embedder not reachable")
    found = ask(base, modes=configs("semantic", "keyword", "hybrid"), vector=down)
    assert found["semantic"] == found["hybrid"] == down
    assert paths(found["keyword"]) == ["c", "b"]
    found = ask(base, modes=configs("semantic", "keyword"), vector=None)
    assert isinstance(found["semantic"], Failure)
    assert paths(found["keyword"]) == ["c", "b"]


def test_a_base_without_embedder_and_a_vector_of_the_wrong_size_are_fatal() -> None:
    wordy = make_base(Row(path="a", text="apple", vector=None), embedder="", dimensions=None)
    found = ask(wordy, modes=configs("semantic", "keyword"), vector=None)
    assert found["semantic"] == pipeline.no_embedder()
    assert paths(found["keyword"]) == ["a"]
    wrong = ask(three(), modes=configs("semantic"), vector=(1.0, 0.0))["semantic"]
    assert isinstance(wrong, Failure)
    assert wrong.fatal


def refused_by_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


def unreadable() -> None:
    raise OSError("disk full")


@pytest.mark.parametrize(("keyword", "fault"), [("fts", refused_by_postgresql), ("bm25", unreadable)])
def test_a_leg_that_cannot_be_read_fails_only_those_that_use_it(
    monkeypatch: pytest.MonkeyPatch, keyword: str, fault: Callable[[], None]
) -> None:
    base = three()
    read = legs.read

    def broken(key: legs.LegKey, **arguments: Any) -> legs.Leg:
        if key.stage == "words":
            fault()
        return read(key, **arguments)

    monkeypatch.setattr(legs, "read", broken)
    # The broken leg comes first: the transaction must still serve the other.
    found = ask(base, modes=configs("keyword", "hybrid", "semantic", keyword=keyword))
    assert paths(found["semantic"]) == ["a", "b", "c"]
    for name in ("keyword", "hybrid"):
        failure = found[name]
        assert isinstance(failure, Failure)
        assert failure.code is ErrorCode.INTERNAL
        assert "words" in failure.reason


def test_a_failed_build_of_the_bm25_file_leaves_the_other_leg(monkeypatch: pytest.MonkeyPatch) -> None:
    base = three()
    monkeypatch.setattr(bm25_files, "_LEXEMES", "SELECT 1 / 0, %s")
    found = ask(base, modes=configs("keyword", "semantic"))
    assert isinstance(found["keyword"], Failure)
    assert paths(found["semantic"]) == ["a", "b", "c"]
    assert not list(bm25_files._folder(base.index.id).glob("[.0-9]*"))


def test_several_indexes_are_fused_by_their_ranks() -> None:
    one = make_base(Row(path="a1", text="apple", vector=X), Row(path="a2", text="apple pie", vector=(1.0, 0.1, 0.0)))
    two = make_base(
        Row(path="b1", text="apple tart", vector=(1.0, 3.0, 0.0)),
        Row(path="b2", text="apple tart cake", vector=(1.0, 4.0, 0.0)),
        workspace=one.workspace,
        name="two",
    )
    found = ask(one, two, modes=configs("semantic", "keyword", "hybrid"))
    for name in ("semantic", "keyword", "hybrid"):
        answer = ranked(found[name])
        assert paths(answer) == ["a1", "b1", "a2", "b2"]
        assert answer.entries[0].stages["fused"].score == pytest.approx(1 / 61)
        assert sum(answer.leg_sizes.values()) == (8 if name == "hybrid" else 4)


def test_a_configuration_can_name_another_index_of_the_base() -> None:
    live = three()
    other = make_base(Row(path="other", text="apple", vector=X), workspace=live.workspace, name="other")
    stand_in = IndexRef(
        id=other.ref.id, knowledge_base_id=live.ref.knowledge_base_id, embedder="local", language="simple", dimensions=3
    )
    scope = SearchScope(indexes=(live.ref,), alternatives=(stand_in,))
    (named,) = configs("keyword", index=str(other.index.id))
    found = ask(modes=(named, *configs("semantic")), scope=scope)
    assert paths(found["keyword"]) == ["other"]
    assert paths(found["semantic"]) == ["a", "b", "c"]
    (unknown,) = configs("keyword", index=str(uuid4()))
    failure = ask(modes=(unknown,), scope=scope)["keyword"]
    assert isinstance(failure, Failure)
    assert failure.code is ErrorCode.NOT_FOUND


def test_many_questions_get_what_each_would_get_alone() -> None:
    base = three()
    modes = configs("semantic", "keyword", "hybrid")
    questions = [(7, "apple"), (3, "pear"), (9, "nothing of this")]
    vectors = {ordinal: {base.index.id: X} for ordinal, _ in questions}
    with open_snapshot(base.scope()) as snapshot:
        together = pipeline.search_many(
            questions, vectors=vectors, configs=modes, scope=base.scope(), snapshot=snapshot, top_k=10
        )
    assert list(together) == [7, 3, 9]
    for ordinal, text in questions:
        alone = ask(base, modes=modes, question=text)
        for name in alone:
            assert ranked(together[ordinal][name]).entries == ranked(alone[name]).entries
    assert paths(together[9]["keyword"]) == []


def test_a_snapshot_is_read_only_and_opens_its_own_transaction() -> None:
    base = three()
    with open_snapshot(base.scope()) as snapshot, connection.cursor() as cursor:
        assert snapshot.generations == {base.index.id: 1}
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("on",)
    with transaction.atomic(), pytest.raises(RuntimeError), open_snapshot(base.scope()):
        pass


def test_a_scope_comes_back_from_json() -> None:
    ref = IndexRef(
        id=uuid4(),
        knowledge_base_id=uuid4(),
        embedder="local",
        language="simple",
        dimensions=3,
        settings={"embedding": {"embedder": "local", "query_prefix": "q: "}},
    )
    for scope in (
        SearchScope(indexes=(ref,)),
        SearchScope(indexes=(ref,), documents=frozenset({uuid4(), uuid4()}), source="s", alternatives=(ref,)),
    ):
        assert SearchScope.from_json(scope.to_json()) == scope
    assert ref.query_prefix == "q: "
    assert ref.document_prefix is None


def test_a_sample_tells_how_much_of_exact_search_the_approximate_leg_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    base = three()
    read: Callable[..., legs.Leg] = legs.read

    def near(key: legs.LegKey, **arguments: Any) -> legs.Leg:
        """A graph that misses the nearest passage."""
        exact = read(replace(key, ef_search=None), **arguments)
        return exact if key.ef_search is None else replace(exact, hits=exact.hits[1:])

    monkeypatch.setattr(legs, "read", near)
    modes = (*configs("semantic", "hybrid", exact=False), *configs("keyword"))
    scope = SearchScope(indexes=(base.ref,))
    asked: dict[str, Any] = {"vectors": {base.index.id: X}, "configs": modes, "scope": scope, "top_k": 2}
    with open_snapshot(scope) as snapshot:
        told = pipeline.search_question("apple", snapshot=snapshot, measure_ann=True, **asked)
        plain = pipeline.search_question("apple", snapshot=snapshot, **asked)
    assert {name: ranked(one).ann_recall for name, one in told.items()} == {
        "semantic": 0.5,
        "hybrid": 0.5,
        "keyword": None,
    }
    assert all(ranked(one).ann_recall is None for one in plain.values())
    assert paths(told["semantic"]) == paths(plain["semantic"]) == ["b", "c"], "what is measured changes no ranking"
