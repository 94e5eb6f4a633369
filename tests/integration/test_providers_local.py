"""The bundled model and what is built on it, with the real weights."""

import math
import os
import shutil
import time
from pathlib import Path

import pytest

from backend.providers import loaded, local_rerank, model_files, registry
from backend.providers.base import Candidate, Embedder, ProviderError, ProviderFault
from backend.providers.local_rerank import zscores
from backend.providers.settings import ProviderSettings
from tests.standins.tiny_onnx import write_cross_encoder

LEAVE = "Employees are entitled to twenty-five days of paid annual leave."
PRINTER = "Error E-1042 means that the printer has run out of magenta toner."
COFFEE = "The espresso machine on the second floor is descaled on Mondays."
TEXTS = [LEAVE, PRINTER, COFFEE, "A", LEAVE * 40]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ProviderSettings:
    return ProviderSettings(model_folder=tmp_path_factory.mktemp("models"), offline=True)


@pytest.fixture(scope="module")
def embedder(settings: ProviderSettings) -> Embedder:
    return registry.embedder("local", settings)


def dot(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_a_question_lies_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    (asked,) = embedder.embed_queries(["How much vacation do I get?"], timeout=60).vectors
    near = [dot(asked, vector) for vector in embedder.embed_documents(TEXTS[:3], timeout=60).vectors]

    assert max(range(3), key=near.__getitem__) == 0


def test_vectors_are_of_length_one_and_of_the_size_told(embedder: Embedder) -> None:
    for vector in embedder.embed_documents(TEXTS, timeout=60).vectors:
        assert len(vector) == embedder.info.dimensions == 384
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


def test_a_texts_vector_depends_neither_on_its_neighbours_nor_on_the_order(embedder: Embedder) -> None:
    together = embedder.embed_documents(TEXTS, timeout=60).vectors
    backwards = embedder.embed_documents(TEXTS[::-1], timeout=60).vectors
    alone = tuple(embedder.embed_documents([text], timeout=60).vectors[0] for text in TEXTS)

    assert together == backwards[::-1] == alone


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_documents([], timeout=60).vectors == ()


def test_the_window_is_256_tokens_and_not_the_128_of_the_tokenizers_file(embedder: Embedder) -> None:
    words = ["leave"] * 254
    base, beyond_128, beyond_256 = embedder.embed_documents(
        [" ".join(words), " ".join([*words[:200], *["toner"] * 54]), " ".join([*words, "toner"])], timeout=60
    ).vectors

    assert dot(base, beyond_128) < 0.99
    assert base == beyond_256


def test_token_offsets_are_of_characters_and_of_the_whole_text(embedder: Embedder) -> None:
    assert embedder.token_offsets("İzin günü: E-1042") is not None
    text = "  Yıllık izin, " * 100
    offsets = embedder.token_offsets(text) or []

    assert len(offsets) > 300, "nothing is cut"
    assert list(offsets) == sorted(offsets)
    assert offsets[0] == 2
    assert max(offsets) < len(text)
    assert embedder.token_offsets("one two") == [0, 4]
    assert embedder.token_offsets("") == []


def test_the_deadline_ends_a_long_call(embedder: Embedder) -> None:
    begun = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        embedder.embed_documents([LEAVE * 40] * 32, timeout=0.2)

    assert (caught.value.fault, caught.value.retryable) == (ProviderFault.TIMEOUT, True)
    assert time.monotonic() - begun < 2.5


def test_prefixes_are_added_by_the_embedder(settings: ProviderSettings, embedder: Embedder) -> None:
    prefixed = registry.embedder(
        "local",
        ProviderSettings(model_folder=settings.model_folder, query_prefix="query: ", document_prefix="passage: "),
    )

    assert prefixed.embed_queries([LEAVE], timeout=60) == embedder.embed_queries(["query: " + LEAVE], timeout=60)
    assert prefixed.embed_documents([LEAVE], timeout=60) == embedder.embed_documents(["passage: " + LEAVE], timeout=60)


def test_a_damaged_model_file_is_replaced(tmp_path: Path) -> None:
    settings = ProviderSettings(model_folder=tmp_path, offline=True)
    folder = model_files.assemble(settings)
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(b"half a download")

    assert model_files.assemble(settings) == folder
    assert (folder / "model.onnx").stat().st_size > 20_000_000
    assert [path.name for path in tmp_path.iterdir()] == [folder.name], "nothing is left behind"


def test_a_model_folder_that_cannot_be_written_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ProviderError, match="TOUCHSTONE_MODELS") as caught:
        model_files.assemble(ProviderSettings(model_folder=tmp_path / "file" / "models"))

    assert caught.value.fault is ProviderFault.MODEL


def test_a_model_by_folder_gives_the_same_vectors_and_another_name(
    settings: ProviderSettings, embedder: Embedder
) -> None:
    shutil.copytree(model_files.assemble(settings), settings.model_folder / "mine", dirs_exist_ok=True)
    mine = registry.embedder("local:mine", settings)

    assert mine.info.model.startswith("mine@")
    assert mine.info.max_tokens == 256
    assert mine.embed_documents(TEXTS, timeout=60) == embedder.embed_documents(TEXTS, timeout=60)
    assert mine.token_offsets("one two") == [0, 4]


def test_another_file_in_a_model_folder_is_another_model(settings: ProviderSettings) -> None:
    folder = settings.model_folder / "changing"
    write_cross_encoder(folder, tokenizer=model_files.assemble(settings) / "tokenizer.json")
    before = registry.describe_embedder("local:changing", settings).model
    (folder / "model.onnx").write_bytes(b"other weights")

    assert registry.describe_embedder("local:changing", settings).model != before


def test_a_folder_outside_those_allowed_is_refused(settings: ProviderSettings, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    write_cross_encoder(folder, tokenizer=model_files.assemble(settings) / "tokenizer.json")
    allowed = ProviderSettings(model_folder=settings.model_folder, extra_model_folders=(tmp_path,))

    with pytest.raises(ProviderError, match="TOUCHSTONE_MODEL_FOLDERS"):
        registry.embedder(f"local:{folder}", settings)
    with pytest.raises(ProviderError, match="TOUCHSTONE_MODEL_FOLDERS"):
        registry.embedder("local:../elsewhere", settings)
    assert registry.reranker(f"local:{folder}", allowed).info.model.startswith("elsewhere@")


def test_a_folder_without_a_model_says_what_it_lacks(settings: ProviderSettings, tmp_path: Path) -> None:
    allowed = ProviderSettings(model_folder=settings.model_folder, extra_model_folders=(tmp_path,))

    with pytest.raises(ProviderError, match=r"model\.onnx.*tokenizer\.json.*tokenizer_config\.json") as caught:
        registry.embedder(f"local:{tmp_path}", allowed)

    assert caught.value.fault is ProviderFault.MODEL


@pytest.mark.parametrize("name", ["BAAI/bge-small-en-v1.5", "no/such-model"])
def test_a_model_that_cannot_be_fetched_says_what_to_do(settings: ProviderSettings, name: str) -> None:
    with pytest.raises(ProviderError, match="local:FOLDER") as caught:
        registry.embedder(f"local:{name}", settings).embed_queries(["x"], timeout=5)
    with pytest.raises(ProviderError, match="local:FOLDER"):
        registry.reranker(f"local:{name}", settings).rerank("x", [], timeout=5)

    assert (caught.value.fault, caught.value.retryable) == (ProviderFault.MODEL, False)


def test_a_file_that_is_no_model_is_a_model_fault(settings: ProviderSettings) -> None:
    folder = settings.model_folder / "broken"
    write_cross_encoder(folder, tokenizer=model_files.assemble(settings) / "tokenizer.json")
    (folder / "model.onnx").write_bytes(b"no model at all")

    with pytest.raises(ProviderError, match="cannot be loaded") as caught:
        registry.reranker("local:broken", settings).rerank("x", [Candidate(text="y", score=1)], timeout=5)

    assert caught.value.fault is ProviderFault.MODEL


def test_a_forked_child_loads_a_model_of_its_own(embedder: Embedder) -> None:
    embedder.embed_queries(["warm"], timeout=60)
    key = ("embed", model_files.BUNDLED, "None")
    assert loaded._models.peek(key) is not None

    child = os.fork()
    if child == 0:
        # os._exit alone ends the child: pytest must not go on twice.
        try:
            empty = not loaded._models._loaded
            fine = len(embedder.embed_queries(["warm"], timeout=60).vectors[0]) == 384
            os._exit(0 if empty and fine else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


def test_the_blend_puts_the_answer_first_and_weighs_the_first_stage(settings: ProviderSettings) -> None:
    ours = registry.reranker("local", settings)
    flat = [Candidate(text=text, score=1.0) for text in (COFFEE, PRINTER, LEAVE)]
    biased = [Candidate(text=text, score=score) for text, score in ((COFFEE, 9.0), (PRINTER, 1.0), (LEAVE, 1.0))]

    by_meaning = ours.rerank("paid annual leave days", flat, timeout=60)
    with_bias = ours.rerank("paid annual leave days", biased, timeout=60)

    assert by_meaning.scores[2] == max(score for score in by_meaning.scores if score is not None)
    assert (with_bias.scores[0] or 0) > (by_meaning.scores[0] or 0)
    assert by_meaning.scale == "zscore"


def test_the_blend_is_the_same_with_and_without_its_cache(settings: ProviderSettings) -> None:
    candidates = [Candidate(text=text, score=1 / (n + 1)) for n, text in enumerate(TEXTS)]
    uncached = ProviderSettings(model_folder=settings.model_folder, token_cache_bytes=0)

    local_rerank._cache.reset()
    first = registry.reranker("local", settings).rerank("toner", candidates, timeout=60)
    again = registry.reranker("local", settings).rerank("toner", candidates, timeout=60)
    without = registry.reranker("local", uncached).rerank("toner", candidates, timeout=60)

    assert first == again == without


def test_the_passage_cache_is_bounded(settings: ProviderSettings) -> None:
    local_rerank._cache.reset()
    small = ProviderSettings(model_folder=settings.model_folder, token_cache_bytes=30_000)
    candidates = [Candidate(text=f"{LEAVE} {n}", score=1.0) for n in range(6)]

    registry.reranker("local", small).rerank("leave", candidates, timeout=60)

    assert 0 < local_rerank._cache._n_bytes <= 30_000


def test_the_blend_takes_an_empty_pool_and_empty_texts(settings: ProviderSettings) -> None:
    ours = registry.reranker("local", settings)

    assert ours.rerank("leave", [], timeout=60).scores == ()
    assert ours.rerank("", [Candidate(text="", score=1.0)], timeout=60).scores == (0.0,)


def test_zscores_are_by_the_population_deviation() -> None:
    assert zscores([1.0, 3.0]) == [-1.0, 1.0]
    assert zscores([2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    assert zscores([]) == []


def test_a_cross_encoder_from_a_folder_scores_each_pair_alone(settings: ProviderSettings) -> None:
    folder = settings.model_folder / "cross"
    write_cross_encoder(folder, tokenizer=model_files.assemble(settings) / "tokenizer.json")
    ours = registry.reranker("local:cross", settings)
    candidates = [Candidate(text=text, score=1.0) for text in TEXTS]

    together = ours.rerank("leave", candidates, timeout=60)
    alone = [ours.rerank("leave", [candidate], timeout=60).scores[0] for candidate in candidates]

    assert list(together.scores) == alone
    assert len(set(together.scores)) > 3
    assert not ours.info.pool_dependent
