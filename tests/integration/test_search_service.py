"""`POST search` as a service: scopes, reasons, snippets, and what it does when a provider is down."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from backend.core.errors import ConflictError, ErrorCode, NotFoundError, ValidationError
from backend.core.states import IndexState
from backend.core.types import Level, Passage
from backend.models import Index, KnowledgeBase, Source, Workspace
from backend.providers.base import ProviderError, ProviderFault
from backend.search import bm25, embedding, explain, rerank
from backend.search.embedding import EmbeddedTexts
from backend.search.rerank import RerankScores
from backend.search.types import Entry, StageRank
from backend.services import scopes, search
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)

X = (1.0, 0.0, 0.0)


@pytest.fixture(autouse=True)
def _files(settings: Any, tmp_path: Path) -> None:
    settings.CACHE_DIR = tmp_path
    bm25.forget()


@pytest.fixture(autouse=True)
def _vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "embed_queries", lambda *_, **__: EmbeddedTexts(vectors=(X,), n_calls=1, ms=2.0))


def handbook() -> Base:
    return make_base(
        Row(path="leave.md", text="Annual leave is twenty days. Ask your manager.", vector=X, collection="people"),
        Row(path="codes.md", text="Error code E-4172 means the pump is blocked.", vector=(0.0, 1.0, 0.0)),
        Row(path="rest.md", text="Time off work for holidays.", vector=(1.0, 0.2, 0.0), source="drive"),
    )


def ask(base: Base, query: str = "annual leave", **fields: Any) -> search.SearchAnswer:
    fields.setdefault("scope_request", {"knowledge_base": str(base.knowledge_base.id)})
    return search.search(workspace=base.workspace, query=query, **fields)


def paths(mode: search.ModeAnswer) -> list[str]:
    return [result.passage.path for result in mode.results]


def test_all_modes_answer_with_reasons_snippets_counts_and_times() -> None:
    answer = ask(handbook(), modes=["semantic", "keyword", "hybrid"])
    semantic, keyword, hybrid = answer.modes
    assert [mode.name for mode in answer.modes] == ["semantic", "keyword", "hybrid"]
    assert paths(semantic) == ["leave.md", "rest.md", "codes.md"]
    assert paths(keyword) == ["leave.md"]
    assert hybrid.results[0].reason == (
        "Close in meaning (rank 1) and shares words with the question (rank 1): both retrievers agree."
    )
    assert "the same thing in other words, or only the nearest there is" in hybrid.results[1].reason
    snippet = hybrid.results[0].snippet
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["Annual", "leave"]
    assert hybrid.n_results == 3
    assert set(hybrid.timings_ms) == {"embed", "meaning", "words", "passages", "fusion"}
    assert "embed" not in keyword.timings_ms
    assert answer.warnings == ()
    assert not hybrid.degraded


def test_aliases_name_the_same_modes_and_hybrid_is_the_default() -> None:
    base = handbook()
    assert [mode.mode for mode in ask(base, modes=["dense", "fulltext"]).modes] == ["semantic", "keyword"]
    assert [mode.mode for mode in ask(base).modes] == ["hybrid"]


def test_at_document_level_each_document_comes_once() -> None:
    base = make_base(*(Row(path="a", text=f"apple {i}", ordinal=i) for i in range(3)), Row(path="b", text="apple"))
    both = ask(base, "apple", modes=["keyword"], level=Level.DOCUMENT).modes[0]
    assert sorted(paths(both)) == ["a", "b"]
    assert [result.rank for result in both.results] == [1, 2]
    assert both.n_results == 4
    assert len(ask(base, "apple", modes=["keyword"], top_k=2).modes[0].results) == 2


def down(*_: Any, **__: Any) -> Any:
    raise ProviderError(ProviderFault.SERVER, "The embedder does not answer.", retryable=True)


def test_without_the_embedder_it_answers_by_keywords_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "embed_queries", down)
    answer = ask(handbook(), modes=["semantic", "keyword", "hybrid"])
    assert [paths(mode) for mode in answer.modes] == [["leave.md"]] * 3
    assert [mode.mode for mode in answer.modes] == ["semantic", "keyword", "hybrid"]
    assert [mode.degraded for mode in answer.modes] == [True, False, True]
    assert len(answer.warnings) == 2
    assert "The embedder does not answer. (PROVIDER_UNAVAILABLE)" in answer.warnings[0]


def test_a_base_of_words_only_is_searched_by_words() -> None:
    base = make_base(Row(path="a", text="apple", vector=None), embedder="none", dimensions=None)
    answer = ask(base, "apple")
    assert paths(answer.modes[0]) == ["a"]
    assert "PROVIDER_NOT_CONFIGURED" in answer.warnings[0]


def test_a_reranker_reorders_and_is_named_in_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "score_pool", lambda *_, **__: RerankScores(scores=(0.1, 0.2, 0.9), ms=5.0))
    mode = ask(handbook(), modes=["semantic_rerank"]).modes[0]
    assert paths(mode) == ["codes.md", "rest.md", "leave.md"]
    assert mode.results[0].reason.endswith("The reranker scored it 0.9 and put it at 1.")
    assert mode.results[0].score == 0.9
    assert mode.timings_ms["rerank"] == 5.0


def test_without_the_reranker_the_order_before_it_stands_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "score_pool", down)
    answer = ask(handbook(), modes=["semantic_rerank", "semantic"])
    assert paths(answer.modes[0]) == paths(answer.modes[1])
    assert [mode.degraded for mode in answer.modes] == [True, False]
    assert "semantic_rerank" in answer.warnings[0]


def test_the_bundled_models_answer_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    base = make_base(dimensions=384)
    texts = {"leave.md": "Employees get twenty days of paid vacation.", "pump.md": "Replace the seal of the pump."}
    vectors = embedding.embed_passages(base.workspace.id, "local", list(texts.values())).vectors
    base.add(*(Row(path=p, text=t, vector=v) for (p, t), v in zip(texts.items(), vectors, strict=True)))
    answer = ask(base, "How much holiday do I have?", modes=["hybrid_rerank"], reranker="local")
    assert answer.warnings == ()
    assert paths(answer.modes[0])[0] == "leave.md"
    assert "reranker" in answer.modes[0].results[0].stages


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"query": " "}, "query"), ({"top_k": 0}, "top_k"), ({"modes": ["magic"]}, "modes[0]")],
)
def test_a_request_that_means_nothing_is_refused(fields: dict[str, Any], field: str) -> None:
    base = handbook()
    with pytest.raises(ValidationError) as caught:
        ask(base, **fields)
    assert caught.value.field == field


def resolve(base: Base, **scope: Any) -> scopes.ResolvedScope:
    return scopes.resolve(base.workspace, scope)


def test_each_kind_of_scope_is_resolved_and_told_in_one_form() -> None:
    base = handbook()
    one = resolve(base, knowledge_base=str(base.knowledge_base.id), source="drive")
    assert one.scope.indexes == (base.ref,)
    assert one.knowledge_base == base.knowledge_base
    assert one.canonical == {"knowledge_base": str(base.knowledge_base.id), "source": "drive"}
    keys = [str(base.documents[path].id) for path in ("rest.md", "leave.md")]
    some = resolve(base, documents=keys)
    assert some.scope.documents == frozenset(base.documents[path].id for path in ("rest.md", "leave.md"))
    assert some.canonical == {"documents": sorted(keys)}
    assert some.knowledge_base == base.knowledge_base
    two = make_base(Row(path="x", text="x"), workspace=base.workspace, name="two")
    KnowledgeBase.objects.create(workspace=base.workspace, name="not ready")
    every = resolve(base, workspace=str(base.workspace.id), collection="people")
    assert {index.id for index in every.scope.indexes} == {base.index.id, two.index.id}
    assert every.knowledge_base is None
    assert every.scope.collection == "people"


def test_another_workspace_is_not_found() -> None:
    base, stranger = handbook(), handbook()
    for scope in (
        {"knowledge_base": str(stranger.knowledge_base.id)},
        {"workspace": str(stranger.workspace.id)},
        {"documents": [str(stranger.documents["leave.md"].id)]},
        {"knowledge_base": "no id"},
        {"documents": [str(uuid4())]},
    ):
        with pytest.raises(NotFoundError):
            resolve(base, **scope)


def test_names_that_are_nowhere_are_told_with_those_there_are() -> None:
    base = handbook()
    with pytest.raises(ValidationError) as caught:
        resolve(base, knowledge_base=str(base.knowledge_base.id), source="drvie", collection="poeple")
    assert [fault.field for fault in caught.value.faults] == ["scope.source", "scope.collection"]
    assert "There are: drive, files." in caught.value.faults[0].message
    assert "There are: people." in caught.value.faults[1].message


@pytest.mark.parametrize(
    "scope",
    [
        {},
        {"documents": []},
        {"workspace": "a", "knowledge_base": "b"},
        {"knowledge_base": "x", "colection": "y"},
        {"documents": "x"},
        {"documents": [1]},
        {"knowledge_base": 7},
    ],
)
def test_a_scope_of_the_wrong_form_is_refused(scope: dict[str, Any]) -> None:
    workspace = Workspace.objects.create(name="w")
    with pytest.raises(ValidationError):
        scopes.resolve(workspace, scope)


def test_what_holds_nothing_and_what_is_not_ready_are_told_apart() -> None:
    base = handbook()
    workspace = base.workspace
    empty = KnowledgeBase.objects.create(workspace=workspace, name="empty")

    def code(**options: Any) -> ErrorCode:
        with pytest.raises(ConflictError) as caught:
            scopes.resolve(workspace, {"knowledge_base": str(empty.id)}, **options)
        return caught.value.code

    assert code() is ErrorCode.KB_EMPTY
    assert code(wait_for_index=True) is ErrorCode.KB_EMPTY
    building = Index.objects.create(knowledge_base=empty, settings=base.index.settings, fingerprint="f")
    assert code() is ErrorCode.KB_NOT_READY
    waiting = scopes.resolve(workspace, {"knowledge_base": str(empty.id)}, wait_for_index=True)
    assert [index.id for index in waiting.scope.indexes] == [building.id]
    nothing = Workspace.objects.create(name="nothing")
    with pytest.raises(ConflictError) as caught:
        scopes.resolve(nothing, {"workspace": str(nothing.id)})
    assert caught.value.code is ErrorCode.KB_EMPTY


def test_a_configuration_names_an_index_of_its_base_only() -> None:
    base, stranger = handbook(), handbook()
    scope = {"knowledge_base": str(base.knowledge_base.id)}
    old = Index.objects.create(
        knowledge_base=base.knowledge_base,
        settings=base.index.settings,
        fingerprint="old",
        state=IndexState.RETIRED,
        ready_at=base.index.created_at,
    )
    resolved = scopes.resolve(base.workspace, scope, index_overrides=[str(old.id)])
    assert [index.id for index in resolved.scope.alternatives] == [old.id]
    with pytest.raises(NotFoundError):
        scopes.resolve(base.workspace, scope, index_overrides=[str(stranger.index.id)])
    Index.objects.filter(id=old.id).update(ready_at=None)
    with pytest.raises(ConflictError):
        scopes.resolve(base.workspace, scope, index_overrides=[str(old.id)])


def entry(**ranks: int) -> Entry:
    passage = Passage(id="a", document_id="a", path="a", source="s", text="t")
    return Entry(passage=passage, stages={name: StageRank(rank=rank, score=0.5) for name, rank in ranks.items()})


def test_each_case_has_a_sentence_of_its_own() -> None:
    both = ("semantic", "keyword")
    said = {
        explain.reason(entry(meaning=1, words=2), legs=both),
        explain.reason(entry(words=2), legs=both),
        explain.reason(entry(meaning=1), legs=both),
        explain.reason(entry(words=2), legs=("keyword",)),
        explain.reason(entry(meaning=1), legs=("semantic",)),
        explain.reason(entry(meaning=1, reranker=3), legs=("semantic",)),
    }
    assert len(said) == 6
    assert "not among the closest in meaning" not in explain.reason(entry(words=2), legs=("keyword",))


def snippet(text: str, question: str, *, language: str = "english", length: int = 80) -> explain.Snippet:
    passage = Passage(id="a", document_id="a", path="a", source="s", text=text)
    (cut,) = explain.snippets([passage], question, languages=[language], length=length)
    assert text[cut.start : cut.start + len(cut.text)] == cut.text
    return cut


def marked(cut: explain.Snippet) -> list[str]:
    return [cut.text[start:end] for start, end in cut.marks]


def test_a_snippet_shows_where_the_words_match_by_stem_and_without_accents() -> None:
    cut = snippet("word " * 100 + "Two (résumés), please. " + "more " * 100, "the resume")
    assert marked(cut) == ["résumés"]
    assert len(cut.text) <= 80
    assert not cut.text.startswith("ord")


def test_a_snippet_prefers_the_place_with_the_most_different_words() -> None:
    text = "pump pump pump pump " + "filler " * 60 + "the pump seal leaks " + "filler " * 60
    assert marked(snippet(text, "pump seal leak")) == ["pump", "seal", "leaks"]


def test_a_snippet_without_a_match_is_the_beginning() -> None:
    cut = snippet("Nothing of the kind stands here. " * 10, "pump")
    assert (cut.start, cut.marks) == (0, ())
    assert snippet("short", "the of").text == "short"
    assert snippet("x" * 500, "pump").text == "x" * 80


def test_a_snippet_marks_in_any_language_of_the_scope() -> None:
    passage = Passage(id="a", document_id="a", path="a", source="s", text="Evler ve houses")
    (cut,) = explain.snippets([passage], "ev house", languages=["english", "turkish"])
    assert marked(cut) == ["Evler", "houses"]


def test_sources_of_other_bases_do_not_count() -> None:
    base = handbook()
    other = make_base(Row(path="x", text="x", source="elsewhere"), workspace=base.workspace, name="two")
    assert Source.objects.filter(name="elsewhere", knowledge_base=other.knowledge_base).exists()
    with pytest.raises(ValidationError):
        resolve(base, knowledge_base=str(base.knowledge_base.id), source="elsewhere")
