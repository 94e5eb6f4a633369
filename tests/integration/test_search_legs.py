"""Each leg by itself: order, ties, filters, exactness."""

import random
from pathlib import Path

import pytest
from django.db import connection

from backend.core.errors import ErrorCode, TouchstoneError
from backend.models import Chunk
from backend.search import ann, bm25, legs
from backend.search.snapshot import open_snapshot
from backend.search.types import SearchScope
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.fixture(autouse=True)
def _files(settings: object, tmp_path: Path) -> None:
    settings.CACHE_DIR = tmp_path  # type: ignore[attr-defined]
    bm25.forget()


def ask(
    base: Base,
    kind: str,
    *,
    question: str = "",
    vector: tuple[float, ...] | None = None,
    depth: int = 100,
    ef_search: int | None = None,
    scope: SearchScope | None = None,
) -> list[tuple[str, float]]:
    scope = scope or base.scope()
    with open_snapshot(scope) as snapshot:
        key = legs.LegKey(kind=kind, index_id=base.index.id, depth=depth, ef_search=ef_search)
        leg = legs.read(key, question=question, vector=vector, index=base.ref, scope=scope, snapshot=snapshot)
        passages = snapshot.passages([hit.id for hit in leg.hits])
        assert leg.more == (len(leg.hits) == depth)
        return [(passages[hit.id].path, hit.score) for hit in leg.hits]


def paths(found: list[tuple[str, float]]) -> list[str]:
    return [path for path, _ in found]


def test_the_table_that_the_queries_name_is_the_models() -> None:
    assert Chunk._meta.db_table == "backend_chunk"


def test_semantic_scores_are_cosine_similarities_and_rows_without_vector_are_skipped() -> None:
    base = make_base(
        Row(path="same", text="a", vector=(2.0, 0.0, 0.0)),
        Row(path="half", text="b", vector=(1.0, 1.0, 0.0)),
        Row(path="none", text="c", vector=None),
        Row(path="other", text="d", vector=Y),
    )
    found = ask(base, legs.SEMANTIC, vector=X)
    assert paths(found) == ["same", "half", "other"]
    assert [score for _, score in found] == [pytest.approx(s, abs=1e-6) for s in (1.0, 0.5**0.5, 0.0)]


def test_equal_distances_come_by_path_source_and_ordinal_in_byte_order() -> None:
    base = make_base(*(Row(path=path, text="x") for path in ("b", "a", "Z", "é")))
    assert paths(ask(base, legs.SEMANTIC, vector=X)) == ["Z", "a", "b", "é"]
    assert paths(ask(base, legs.SEMANTIC, vector=X, depth=2)) == ["Z", "a"]


def test_filters_act_inside_every_leg_before_its_cut() -> None:
    base = make_base(
        Row(path="a", text="apple apple", vector=X, source="one"),
        Row(path="b", text="apple pear", vector=(1.0, 1.0, 0.0), source="two", collection="k"),
        Row(path="c", text="apple", vector=(1.0, 2.0, 0.0), source="two"),
    )
    for kind in (legs.SEMANTIC, legs.BM25, legs.FTS_AND, legs.FTS_OR):
        arguments = {"question": "apple", "vector": X, "depth": 1}
        assert paths(ask(base, kind, scope=base.scope(source="one"), **arguments)) == ["a"]  # type: ignore[arg-type]
        assert paths(ask(base, kind, scope=base.scope(collection="k"), **arguments)) == ["b"]  # type: ignore[arg-type]
        only = base.scope(documents=frozenset({base.documents["c"].id}))
        assert paths(ask(base, kind, scope=only, **arguments)) == ["c"]  # type: ignore[arg-type]


def test_full_text_and_wants_every_word_and_or_wants_any() -> None:
    base = make_base(
        Row(path="both", text="the refund policy"),
        Row(path="one", text="a refund"),
        Row(path="none", text="something else"),
    )
    assert paths(ask(base, legs.FTS_AND, question="refund policy")) == ["both"]
    assert sorted(paths(ask(base, legs.FTS_OR, question="refund policy"))) == ["both", "one"]
    assert paths(ask(base, legs.FTS_AND, question="refund -policy")) == ["one"]
    # Taken as words, not as an operator: nothing is matched by what it lacks.
    assert sorted(paths(ask(base, legs.FTS_OR, question="refund -policy"))) == ["both", "one"]


@pytest.mark.parametrize(
    "question",
    ["", "   ", "'", "O'Reilly & \\ | ! ( :*", "https://a.b/c?d=e", "\x00nul", "\ud800", "-apple", "<->", "the"],
)
def test_any_question_is_a_question(question: str) -> None:
    base = make_base(Row(path="a", text="apple O'Reilly"), language="english")
    for kind in (legs.BM25, legs.FTS_AND, legs.FTS_OR):
        assert set(paths(ask(base, kind, question=question))) <= {"a"}


def test_chunks_that_only_lack_a_word_are_no_fillers() -> None:
    base = make_base(Row(path="a", text="apple"), Row(path="b", text="pear"))
    assert ask(base, legs.FTS_AND, question="-apple") == []


def test_questions_are_read_in_the_language_of_the_index_with_accents_folded() -> None:
    base = make_base(Row(path="a", text="Résumés of employees"), Row(path="b", text="x"), language="english")
    for kind in (legs.BM25, legs.FTS_AND, legs.FTS_OR):
        assert paths(ask(base, kind, question="resume")) == ["a"]


def random_base(n_chunks: int = 400) -> Base:
    draw = random.Random(3)
    return make_base(
        *(
            Row(path=f"{i:04}", text="x", vector=[draw.gauss(0, 1) for _ in range(8)], source="abc"[i % 3])
            for i in range(n_chunks)
        ),
        dimensions=8,
    )


def plan_of(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(row[0] for row in cursor.fetchall())


def test_exact_search_never_uses_the_graph_and_approximate_search_always_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = random_base()
    assert ann.ensure_ann_index(base.index) is True
    assert ann.ensure_ann_index(base.index) is False
    plans: list[str] = []
    rows = legs._rows

    def explained(sql: str, params: object) -> tuple[legs.Hit, ...]:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}", params)  # type: ignore[arg-type]
            plans.append("\n".join(row[0] for row in cursor.fetchall()))
        return rows(sql, params)  # type: ignore[arg-type]

    monkeypatch.setattr(legs, "_rows", explained)
    vector = (1.0, -0.5, 0.2, 0.1, 0.9, -1.0, 0.3, 0.4)
    exact = ask(base, legs.SEMANTIC, vector=vector, depth=10)
    near = ask(base, legs.SEMANTIC, vector=vector, depth=10, ef_search=200)
    again = ask(base, legs.SEMANTIC, vector=vector, depth=10)
    name = ann.name_of(base.index.id)
    assert [name in plan for plan in plans] == [False, True, False]
    assert paths(again) == paths(exact) == paths(near)
    assert [score for _, score in near] == [pytest.approx(score, abs=1e-6) for _, score in exact]


def test_approximate_search_fills_its_depth_under_a_filter() -> None:
    base = random_base()
    ann.ensure_ann_index(base.index)
    vector = (1.0,) * 8
    scope = base.scope(source="b")
    found = ask(base, legs.SEMANTIC, vector=vector, depth=50, ef_search=10, scope=scope)
    assert len(found) == 50
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_approximate_search_without_a_graph_says_so_and_drops_leave_none() -> None:
    base = random_base(20)
    with pytest.raises(TouchstoneError) as caught:
        ask(base, legs.SEMANTIC, vector=(1.0,) * 8, ef_search=40)
    assert caught.value.code is ErrorCode.KB_NOT_READY
    ann.ensure_ann_index(base.index)
    assert ann.is_ready(base.index.id)
    ann.drop_ann_index(base.index.id)
    assert not ann.is_ready(base.index.id)


def test_the_graph_is_partial_and_over_the_index_own_size() -> None:
    base = random_base(10)
    ann.ensure_ann_index(base.index)
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [ann.name_of(base.index.id)])
        (definition,) = cursor.fetchone()
    assert "USING hnsw" in definition
    assert "::vector(8)" in definition
    assert "vector_cosine_ops" in definition
    assert f"WHERE (index_id = '{base.index.id}'::uuid)" in definition


def test_vectors_too_large_for_a_page_are_stored_and_found() -> None:
    size = 3072
    base = make_base(
        Row(path="a", text="x", vector=[1.0] + [0.001 * i for i in range(size - 1)]),
        Row(path="b", text="x", vector=[0.0] * (size - 1) + [1.0]),
        dimensions=size,
    )
    assert paths(ask(base, legs.SEMANTIC, vector=tuple([0.0] * (size - 1) + [1.0]))) == ["b", "a"]
    ann.ensure_ann_index(base.index)
    near = ask(base, legs.SEMANTIC, vector=tuple([0.0] * (size - 1) + [1.0]), ef_search=40)
    assert paths(near) == ["b", "a"]


def test_vectors_are_kept_in_the_row() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage::text FROM pg_attribute"
            " WHERE attrelid = 'backend_chunk'::regclass AND attname = 'embedding'"
        )
        assert cursor.fetchone() == ("m",)
