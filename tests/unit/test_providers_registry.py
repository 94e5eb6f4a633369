import subprocess
import sys
from pathlib import Path

import pytest

from backend.providers import registry
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.prefixes import SIZES, for_model, reserved_tokens
from backend.providers.settings import ProviderSettings


@pytest.fixture
def settings(tmp_path: Path) -> ProviderSettings:
    return ProviderSettings.from_env(
        {
            "TOUCHSTONE_HOME": str(tmp_path),
            "TOUCHSTONE_OFFLINE": "1",
            "TOUCHSTONE_RERANK_BOX_URL": "http://box:8080",
        }
    )


def test_describing_a_provider_loads_no_model_library() -> None:
    code = (
        "import sys\n"
        "from backend.providers import registry\n"
        "from backend.providers.settings import ProviderSettings\n"
        "s = ProviderSettings.from_env({'TOUCHSTONE_RERANK_BOX_URL': 'http://box', 'CO_API_KEY': 'k',"
        " 'OPENAI_API_KEY': 'k'})\n"
        "for spec in ('local', 'local:BAAI/bge-small-en-v1.5', 'openai:m', 'cohere:embed-v4.0'):\n"
        "    registry.describe_embedder(spec, s)\n"
        "for spec in ('local', 'local:Xenova/ms-marco-MiniLM-L-6-v2', 'http:box', 'cohere:rerank-v3.5'):\n"
        "    registry.describe_reranker(spec, s)\n"
        "heavy = {'onnxruntime', 'fastembed', 'tokenizers', 'numpy', 'cohere', 'openai', 'django'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("spec", ["local", "LOCAL", "local:", "local:BAAI/bge-small-en-v1.5"])
def test_an_embedder_describes_itself_as_the_registry_does(spec: str, settings: ProviderSettings) -> None:
    assert registry.embedder(spec, settings).info == registry.describe_embedder(spec, settings)


@pytest.mark.parametrize("spec", ["local", "local:BAAI/bge-reranker-base", "http:box"])
def test_a_reranker_describes_itself_as_the_registry_does(spec: str, settings: ProviderSettings) -> None:
    assert registry.reranker(spec, settings).info == registry.describe_reranker(spec, settings)


def test_the_local_default_is_named_as_the_blend_it_is(settings: ProviderSettings) -> None:
    info = registry.describe_reranker("local", settings)

    assert info.label == "local blend (MaxSim + first stage)"
    assert info.pool_dependent


@pytest.mark.parametrize("spec", ["", "magic", "http:", "http", "llm:x"])
def test_an_unknown_specification_names_the_variable_to_set(spec: str, settings: ProviderSettings) -> None:
    for build, variable in (
        (registry.embedder, "TOUCHSTONE_EMBEDDER"),
        (registry.describe_embedder, "TOUCHSTONE_EMBEDDER"),
        (registry.reranker, "TOUCHSTONE_RERANKER"),
        (registry.describe_reranker, "TOUCHSTONE_RERANKER"),
    ):
        with pytest.raises(ProviderError, match=variable) as caught:
            build(spec, settings)
        assert caught.value.fault is ProviderFault.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("build", "spec", "variable"),
    [
        (registry.embedder, "openai:m", "OPENAI_API_KEY"),
        (registry.embedder, "cohere:m", "CO_API_KEY"),
        (registry.reranker, "cohere:m", "CO_API_KEY"),
        (registry.reranker, "http:other", "TOUCHSTONE_RERANK_OTHER_URL"),
    ],
)
def test_a_provider_without_its_setting_names_the_variable_to_set(
    build: object, spec: str, variable: str, settings: ProviderSettings
) -> None:
    assert callable(build)
    with pytest.raises(ProviderError, match=variable) as caught:
        build(spec, settings)

    assert caught.value.fault is ProviderFault.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-small-v2@0123", "query: ", "passage: "),
        ("nomic-ai/nomic-embed-text-v1.5-Q", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("mixedbread-ai/mxbai-embed-large-v1", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake/snowflake-arctic-embed-m", "Represent this sentence for searching relevant passages: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("thenlper/gte-base", "", ""),
        ("BAAI/bge-m3", "", ""),
        ("all-MiniLM-L6-v2-int8", "", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_each_family_of_models_gets_its_own_prefixes(model: str, query: str, document: str) -> None:
    prefixes = for_model(model)

    assert (prefixes.query, prefixes.document) == (query, document)


def test_an_instructed_model_gets_its_instruction_before_queries_only() -> None:
    prefixes = for_model("intfloat/multilingual-e5-large-instruct")

    assert prefixes.query.startswith("Instruct: ")
    assert prefixes.query.endswith("\nQuery: ")
    assert prefixes.document == ""


def test_a_prefix_can_be_overridden_even_by_nothing() -> None:
    assert for_model("e5-small", query="").query == ""
    assert for_model("e5-small", query="").document == "passage: "
    assert for_model("gte-base", document="doc: ").document == "doc: "


def test_a_changed_prefix_changes_the_description(tmp_path: Path) -> None:
    plain = ProviderSettings(model_folder=tmp_path)
    changed = ProviderSettings(model_folder=tmp_path, document_prefix="doc: ")

    assert registry.describe_embedder("local", plain) != registry.describe_embedder("local", changed)
    assert registry.describe_embedder("local", changed).reserved_tokens > reserved_tokens("")


def test_the_sizes_that_we_state_are_those_of_fastembed() -> None:
    from fastembed import TextEmbedding  # heavy: only this test needs it

    theirs = {model["model"].lower(): model for model in TextEmbedding.list_supported_models()}

    assert {name: theirs[name]["dim"] for name in SIZES} == {name: size[0] for name, size in SIZES.items()}
    for name, (_, window) in SIZES.items():
        assert f"{window} input tokens" in theirs[name]["description"]
