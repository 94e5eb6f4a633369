import os
import re
from pathlib import Path

import pytest

from backend.providers.base import ERROR_CODES, ProviderError, ProviderFault
from backend.providers.settings import ProviderSettings

RERANKER = {
    "TOUCHSTONE_RERANK_MY_BOX_URL": "http://10.0.0.5:8080/",
    "TOUCHSTONE_RERANK_MY_BOX_SHAPE": "vllm",
    "TOUCHSTONE_RERANK_MY_BOX_MODEL": "bge",
    "TOUCHSTONE_RERANK_MY_BOX_KEY": " s3cret\n",
    "TOUCHSTONE_RERANK_MY_BOX_BATCH": "16",
}


def test_an_empty_environment_gives_the_local_defaults() -> None:
    settings = ProviderSettings.from_env({})

    assert settings.model_folder == Path.cwd() / ".touchstone" / "models"
    assert not settings.offline
    assert settings.http_rerankers == ()


def test_the_model_folder_follows_the_state_folder_and_can_be_set(tmp_path: Path) -> None:
    assert ProviderSettings.from_env({"TOUCHSTONE_HOME": str(tmp_path)}).model_folder == tmp_path / "models"
    assert ProviderSettings.from_env({"TOUCHSTONE_MODELS": "/srv/m"}).model_folder == Path("/srv/m")
    extra = ProviderSettings.from_env({"TOUCHSTONE_MODEL_FOLDERS": os.pathsep.join(["/a", "", "/b"])})
    assert extra.extra_model_folders == (Path("/a"), Path("/b"))


@pytest.mark.parametrize("name", ["my-box", "MY_BOX", "my box"])
def test_a_reranker_is_found_by_its_name_however_it_is_written(name: str) -> None:
    entry = ProviderSettings.from_env(RERANKER).http_reranker(name)

    assert (entry.url, entry.shape, entry.model) == ("http://10.0.0.5:8080", "vllm", "bge")
    assert (entry.key, entry.batch_size) == ("s3cret", 16)


def test_an_unknown_reranker_names_the_variable_to_set() -> None:
    with pytest.raises(ProviderError, match="TOUCHSTONE_RERANK_OTHER_URL") as caught:
        ProviderSettings.from_env(RERANKER).http_reranker("other")

    assert caught.value.fault is ProviderFault.NOT_CONFIGURED
    assert caught.value.fatal


@pytest.mark.parametrize(
    "url", ["ftp://box", "box:8080", "http://", "http://user:pw@box", "http://box/?key=1", "http://box:0", "http://[::"]
)
def test_an_address_that_is_unusable_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ProviderError, match="TOUCHSTONE_RERANK_X_URL") as caught:
        ProviderSettings.from_env({"TOUCHSTONE_RERANK_X_URL": url}).http_reranker("x")

    assert "pw" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TOUCHSTONE_RERANK_X_SHAPE", "cohre"), ("TOUCHSTONE_RERANK_X_BATCH", "0"), ("TOUCHSTONE_RERANK_X_BATCH", "x")],
)
def test_a_misspelt_setting_is_named(variable: str, value: str) -> None:
    with pytest.raises(ProviderError, match=variable):
        ProviderSettings.from_env({"TOUCHSTONE_RERANK_X_URL": "http://b", variable: value}).http_reranker("x")


def test_keys_do_not_show_in_a_representation() -> None:
    settings = ProviderSettings.from_env(RERANKER | {"CO_API_KEY": "s3cret-cohere", "OPENAI_API_KEY": "s3cret-openai"})

    assert "s3cret" not in repr(settings)


def test_every_setting_and_every_fault_is_documented() -> None:
    root = Path(__file__).resolve().parents[2]
    source = (root / "backend" / "providers" / "settings.py").read_text()
    page = (root / "docs" / "providers.md").read_text()
    read = set(re.findall(r'env\.get\("([A-Z_]+)"\)', source))
    read |= {f"TOUCHSTONE_RERANK_NAME{part}" for part in re.findall(r"\{stem\}(_[A-Z]+)", source)}

    assert len(read) >= 12
    assert {name for name in read if name not in page} <= {"COHERE_API_KEY"}, "an alias that Cohere reads too"
    assert [fault for fault in ProviderFault if f"| `{fault}` | `{ERROR_CODES[fault]}` |" not in page] == []
