"""Local models of this process: loaded at first use, once, and never shared over a fork.

A session made before fork() loses its pool threads in the child, so a child starts with nothing loaded.
"""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from backend.providers import model_files
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.model_files import ModelFiles
from backend.providers.settings import ProviderSettings


class _Models:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # The lock too: it may have been held by a thread that the child does not have.
        self._lock = threading.Lock()
        self._loaded: dict[tuple[str, str, str], Any] = {}

    def get(self, key: tuple[str, str, str], load: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = load()
            return self._loaded[key]

    def peek(self, key: tuple[str, str, str]) -> Any:
        """What is loaded already, without the lock: for a `load` that builds on another."""
        return self._loaded[key]


_models = _Models()
os.register_at_fork(after_in_child=_models.reset)


def text_model(files: ModelFiles, settings: ProviderSettings) -> Any:
    """fastembed's TextEmbedding for the model, on one thread (two are no faster for small batches, and heavier)."""
    return _models.get(("embed", files.name, str(files.folder)), lambda: _guarded(_load_text_model, files, settings))


def cross_encoder(files: ModelFiles, settings: ProviderSettings) -> Any:
    """fastembed's TextCrossEncoder for the model."""
    return _models.get(
        ("rerank", files.name, str(files.folder)), lambda: _guarded(_load_cross_encoder, files, settings)
    )


def tokenizer(files: ModelFiles, settings: ProviderSettings) -> Any:
    """The model's tokenizer, cutting and padding nothing. Loads no weights where the files are at hand."""
    if files.folder is None and not files.bundled:
        # Known by name: the whole model is fetched, and brings its tokenizer.
        text_model(files, settings)
    return _models.get(("tokens", files.name, str(files.folder)), lambda: _guarded(_load_tokenizer, files, settings))


def _guarded(load: Callable[[ModelFiles, ProviderSettings], Any], files: ModelFiles, settings: ProviderSettings) -> Any:
    try:
        return load(files, settings)
    except ProviderError:
        raise
    # Loading fails with the classes of five libraries, some of them derived from Exception alone.
    except Exception as error:
        if files.folder is not None or files.bundled:
            raise ProviderError(
                ProviderFault.MODEL, f"The model {files.name} cannot be loaded: {_first_line(error)}"
            ) from error
        raise ProviderError(
            ProviderFault.MODEL,
            f"The model {files.name} is neither in {settings.model_folder} nor could it be downloaded "
            f"({_first_line(error)}). Where there is no internet, copy its folder (ONNX file, tokenizer.json, "
            f"tokenizer_config.json) below {settings.model_folder} and name it local:FOLDER; `local` alone needs "
            "no download.",
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def _load_text_model(files: ModelFiles, settings: ProviderSettings) -> Any:
    # Heavy: brings onnxruntime. Only workers get here.
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    folder = _folder_of(files, settings)
    model: Any
    if folder is None:
        model = _by_name(TextEmbedding, files.name, settings)
    else:
        pooling = {"cls": PoolingType.CLS, "last": PoolingType.LAST_TOKEN}.get(files.pooling, PoolingType.MEAN)
        name = f"touchstone/{files.name}"
        if not any(known["model"] == name for known in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                name,
                pooling=pooling,
                normalization=True,
                # Never used: the folder is given. fastembed asks for one all the same.
                sources=ModelSource(hf=name),
                dim=files.dimensions or 0,
                model_file=files.model_file,
            )
        model = TextEmbedding(name, specific_model_path=str(folder), **_options(settings))
    if files.max_tokens is not None:
        # The window that we tell others is the window that is used.
        model.model.tokenizer.enable_truncation(files.max_tokens)
    return model


def _load_cross_encoder(files: ModelFiles, settings: ProviderSettings) -> Any:
    # Heavy: brings onnxruntime. Only workers get here.
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    if files.folder is None:
        return _by_name(TextCrossEncoder, files.name, settings)
    name = f"touchstone/{files.name}"
    if not any(known["model"] == name for known in TextCrossEncoder.list_supported_models()):
        TextCrossEncoder.add_custom_model(name, sources=ModelSource(hf=name), model_file=files.model_file)
    return TextCrossEncoder(name, specific_model_path=str(files.folder), **_options(settings))


def _load_tokenizer(files: ModelFiles, settings: ProviderSettings) -> Any:
    # A compiled library that no reader of this module's other half needs.
    from tokenizers import Tokenizer

    folder = _folder_of(files, settings)
    if folder is not None:
        loaded = Tokenizer.from_file(str(folder / "tokenizer.json"))
    else:
        model = _models.peek(("embed", files.name, str(files.folder)))
        loaded = Tokenizer.from_str(model.model.tokenizer.to_str())
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def _folder_of(files: ModelFiles, settings: ProviderSettings) -> Any:
    return model_files.assemble(settings) if files.bundled else files.folder


def _by_name(kind: Any, name: str, settings: ProviderSettings) -> Any:
    """From the model folder if it is there, else downloaded.

    fastembed tries a download for 39 seconds even where there is no network at all, so that is looked at first.
    """
    # Comes with fastembed, which says the same as our error does, several times, on stderr.
    from loguru import logger

    logger.disable("fastembed")
    try:
        return kind(name, **_options(settings) | {"local_files_only": True})
    # It raises several classes for "not here"; whatever it was, the download below says it again.
    except Exception:
        if settings.offline or not _hub_is_reachable():
            raise
    return kind(name, **_options(settings))


def _hub_is_reachable() -> bool:
    # Comes with fastembed.
    from huggingface_hub.constants import ENDPOINT

    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    address = urlsplit(ENDPOINT)
    try:
        socket.create_connection((address.hostname or "", address.port or 443), timeout=5).close()
    except OSError:
        return False
    return True


def _options(settings: ProviderSettings) -> dict[str, Any]:
    return {
        "cache_dir": str(settings.model_folder),
        "threads": 1,
        "providers": ["CPUExecutionProvider"],
        "cuda": False,
        "local_files_only": settings.offline,
    }
