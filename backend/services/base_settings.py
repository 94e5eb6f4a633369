"""The settings of a knowledge base: checked, completed, and told apart into those that shape the Index and the rest."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from backend.core import configs
from backend.core.chunking import LARGEST_SIZE, SMALLEST_SIZE, ChunkMode
from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.providers.base import ProviderError
from backend.readers.reading import READER_VERSION
from backend.search import providers

NO_EMBEDDER = "none"
# A change to one of these builds a new Index; fusion and reranker are read at each search.
INDEX_GROUPS = ("chunking", "embedding", "keyword")
GROUPS = (*INDEX_GROUPS, "fusion", "reranker")
_MAX_PREFIX = 500

Settings = dict[str, Any]
_Told = Callable[[str, str], None]


def languages() -> tuple[str, ...]:
    """What `keyword.language` can be: the folding text-search configurations of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            r"SELECT substr(cfgname, 4) FROM pg_ts_config WHERE cfgname LIKE 'ts\_%' AND pg_ts_config_is_visible(oid)"
        )
        return tuple(sorted(row[0] for row in cursor.fetchall()))


def complete(given: Mapping[str, Any], *, workspace_id: UUID, over: Mapping[str, Any] | None = None) -> Settings:
    """All settings of a base of this workspace: those given, over those it has, over the defaults. A group given as
    null falls back to its defaults. Raises ValidationError with every fault, each with its field."""
    faults: list[Fault] = []

    def tell(message: str, field: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=f"settings.{field}"))

    known = dict(over or {})
    for unknown in sorted(set(given) - set(GROUPS), key=str):
        tell(f"There is no setting {unknown!r}. There are: {', '.join(GROUPS)}.", str(unknown))
    out: Settings = {
        "chunking": _chunking(_group(given, known, "chunking", tell), tell),
        "embedding": _embedding(_group(given, known, "embedding", tell), workspace_id, tell),
        "keyword": _keyword(_group(given, known, "keyword", tell), tell),
    }
    fusion = _group(given, known, "fusion", tell)
    if fusion:
        out["fusion"] = _fusion(fusion, faults)
    reranker = given["reranker"] if "reranker" in given else known.get("reranker")
    if reranker:
        out["reranker"] = _reranker(reranker, workspace_id, tell)
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return out


def of_index(wanted: Mapping[str, Any]) -> Settings:
    """What is immutable about an Index built under these settings."""
    return {**{group: wanted[group] for group in INDEX_GROUPS}, "reader": READER_VERSION}


def embedder_of(index_settings: Mapping[str, Any]) -> str:
    """The embedder's spec; empty when the Index is searched by words only."""
    spec = str(index_settings.get("embedding", {}).get("embedder", ""))
    return "" if spec == NO_EMBEDDER else spec


def _group(given: Mapping[str, Any], known: Mapping[str, Any], name: str, tell: _Told) -> Mapping[str, Any]:
    value = given.get(name, {})
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        tell(f"{name} is an object, not {value!r}.", name)
        return {}
    return {**known.get(name, {}), **value}


def _refuse_unknown(group: Mapping[str, Any], name: str, fields: tuple[str, ...], tell: _Told) -> None:
    for unknown in sorted(set(group) - set(fields), key=str):
        tell(f"{name} has no setting {unknown!r}. It has: {', '.join(fields)}.", f"{name}.{unknown}")


def _whole(group: Mapping[str, Any], path: str, *, default: int, low: int, high: int, tell: _Told) -> int:
    value = group.get(path.rpartition(".")[2], default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        tell(f"{path} is a whole number from {low} to {high}, not {value!r}.", path)
        return default
    return value


def _chunking(group: Mapping[str, Any], tell: _Told) -> Settings:
    _refuse_unknown(group, "chunking", ("mode", "size", "overlap"), tell)
    mode = group.get("mode", "structure")
    if mode not in list(ChunkMode):
        tell(f"chunking.mode is one of {', '.join(ChunkMode)}, not {mode!r}.", "chunking.mode")
    size = _whole(group, "chunking.size", default=1200, low=SMALLEST_SIZE, high=LARGEST_SIZE, tell=tell)
    overlap = _whole(group, "chunking.overlap", default=min(150, size // 2), low=0, high=LARGEST_SIZE, tell=tell)
    if overlap > size // 2:
        tell(f"chunking.overlap is at most half of chunking.size ({size // 2}), not {overlap}.", "chunking.overlap")
    return {"mode": mode, "size": size, "overlap": overlap}


def _embedding(group: Mapping[str, Any], workspace_id: UUID, tell: _Told) -> Settings:
    prefixes = ("query_prefix", "document_prefix")
    _refuse_unknown(group, "embedding", ("embedder", *prefixes), tell)
    spec = group.get("embedder") or settings.EMBEDDER
    out: Settings = {"embedder": spec}
    if not isinstance(spec, str):
        tell(f"embedding.embedder is a text such as 'local' or 'none', not {spec!r}.", "embedding.embedder")
    elif spec != NO_EMBEDDER:
        try:
            providers.describe_embedder(spec, workspace_id=workspace_id)
        except ProviderError as error:
            tell(error.message, "embedding.embedder")
    for name in prefixes:
        value = group.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > _MAX_PREFIX or "\x00" in value:
            tell(f"embedding.{name} is a text of at most {_MAX_PREFIX} characters.", f"embedding.{name}")
        else:
            out[name] = value
    return out


def _keyword(group: Mapping[str, Any], tell: _Told) -> Settings:
    _refuse_unknown(group, "keyword", ("language",), tell)
    language = group.get("language") or settings.FTS_LANGUAGE
    there = languages()
    if language not in there:
        tell(f"keyword.language is one of {', '.join(there)}, not {language!r}.", "keyword.language")
    return {"language": language}


def _fusion(group: Mapping[str, Any], faults: list[Fault]) -> Settings:
    """As a configuration reads it; its faults are told under our own field names."""
    try:
        (config,) = configs.parse_all(modes=None, configurations=[{"mode": "hybrid", "fusion": group}], reranker="")
    except ValidationError as error:
        for fault in error.faults:
            place = (fault.field or "").replace("configurations[0].", "")
            field = f"settings.{place}" if place.startswith("fusion") else f"settings.fusion.{place}"
            faults.append(Fault(code=fault.code, message=fault.message, field=field))
        return {}
    return config.fusion.canonical()


def _reranker(value: Any, workspace_id: UUID, tell: _Told) -> str:
    if not isinstance(value, str):
        tell(f"reranker is a text such as 'local' or 'http:NAME', not {value!r}.", "reranker")
        return ""
    try:
        providers.describe_reranker(value, workspace_id=workspace_id)
    except ProviderError as error:
        tell(error.message, "reranker")
    return value
