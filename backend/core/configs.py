"""A retrieval configuration: how one ranked list is made. Parsed from requests, frozen in the plan, fingerprinted.

Settings that a mode does not use are left out of its canonical form, so two configurations that search alike have
one fingerprint.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backend.core.errors import ErrorCode, Fault, ValidationError

LEGS_OF: dict[str, tuple[str, ...]] = {
    "semantic": ("semantic",),
    "keyword": ("keyword",),
    "hybrid": ("semantic", "keyword"),
}
ALIASES = {"dense": "semantic", "fulltext": "keyword"}
MODES = tuple(f"{base}{suffix}" for suffix in ("", "_rerank") for base in LEGS_OF)
DEFAULT_MODES = ("hybrid_rerank", "hybrid")
FORMULAS = ("rrf", "convex")
MAX_DEPTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """How the legs of `hybrid` become one list: RRF (Cormack et al. 2009), or a convex combination of min-max
    normalised scores. `weights` are in the order (semantic, keyword)."""

    formula: str = "rrf"
    constant: float = 60.0
    rank_base: int = 1
    weights: tuple[float, float] = (1.0, 1.0)

    def canonical(self) -> dict[str, Any]:
        if self.formula == "convex":
            return {"formula": "convex", "weights": list(self.weights)}
        return {
            "formula": "rrf",
            "constant": self.constant,
            "rank_base": self.rank_base,
            "weights": list(self.weights),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalConfig:
    """`base` is semantic, keyword or hybrid; `reranker` is a spec (`local`, `http:NAME`…) or empty. `index` names an
    Index other than the base's live one. `min_score` cuts the final list by its last stage's score."""

    name: str
    base: str
    keyword: str = "bm25"
    fts: str = "and"
    index: str = ""
    depth: int = 100
    exact: bool = True
    ef_search: int | None = None
    fusion: Fusion = Fusion()
    reranker: str = ""
    rerank_depth: int = 50
    min_score: float | None = None

    @property
    def mode(self) -> str:
        return f"{self.base}_rerank" if self.reranker else self.base

    @property
    def legs(self) -> tuple[str, ...]:
        # An imported ranking has none that we know of.
        return LEGS_OF.get(self.base, ())

    @property
    def needs_vector(self) -> bool:
        return "semantic" in self.legs

    @property
    def keyword_leg(self) -> str:
        """The keyword leg's full name: `bm25`, `fts(and)` or `fts(or)`."""
        return self.keyword if self.keyword == "bm25" else f"fts({self.fts})"

    def canonical(self) -> dict[str, Any]:
        """What fixes the ranking, and nothing else: plain JSON values, the name left out."""
        out: dict[str, Any] = {"mode": self.mode, "depth": self.depth}
        if self.index:
            out["index"] = self.index
        if "semantic" in self.legs:
            out["exact"] = self.exact
            if not self.exact:
                out["ef_search"] = self.ef_search
        if "keyword" in self.legs:
            out["keyword"] = self.keyword_leg
        if self.base == "hybrid":
            out["fusion"] = self.fusion.canonical()
        if self.reranker:
            out["reranker"] = self.reranker
            out["rerank_depth"] = self.rerank_depth
        if self.min_score is not None:
            out["min_score"] = self.min_score
        return out

    def stored(self) -> dict[str, Any]:
        """The canonical form with the name: what a plan and a run keep, and `from_stored` reads."""
        return {"name": self.name, **self.canonical()}


def fingerprint(value: Any) -> str:
    """SHA-256 over canonical JSON (sorted keys, no spaces)."""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(data.encode()).hexdigest()


def from_stored(stored: Mapping[str, Any]) -> RetrievalConfig:
    """The inverse of `stored()`."""
    mode = str(stored["mode"])
    keyword = str(stored.get("keyword", "bm25"))
    fusion = stored.get("fusion") or {}
    weights = fusion.get("weights", [1.0, 1.0])
    return RetrievalConfig(
        name=str(stored["name"]),
        base=mode.removesuffix("_rerank"),
        keyword="bm25" if keyword == "bm25" else "fts",
        fts="or" if keyword == "fts(or)" else "and",
        index=str(stored.get("index", "")),
        depth=int(stored["depth"]),
        exact=bool(stored.get("exact", True)),
        ef_search=stored.get("ef_search"),
        fusion=Fusion(
            formula=fusion.get("formula", "rrf"),
            constant=float(fusion.get("constant", 60.0)),
            rank_base=int(fusion.get("rank_base", 1)),
            weights=(float(weights[0]), float(weights[1])),
        ),
        reranker=str(stored.get("reranker", "")),
        rerank_depth=int(stored.get("rerank_depth", 50)),
        min_score=stored.get("min_score"),
    )


def parse_all(
    *,
    modes: Sequence[Any] | None,
    configurations: Sequence[Any] | None,
    reranker: str,
    base_fusion: Mapping[str, Any] | None = None,
    default_modes: Sequence[str] = DEFAULT_MODES,
    exact: bool = True,
) -> tuple[RetrievalConfig, ...]:
    """The configurations of a request: its `modes` by their defaults, and its `configurations` field by field.

    `reranker` is what a `_rerank` mode uses when its configuration names none, `exact` how vectors are searched where
    it does not say. Raises ValidationError with every fault. Names are unique; a mode's name is the mode.
    """
    faults: list[Fault] = []
    configs: list[RetrievalConfig] = []
    if not modes and not configurations:
        modes = list(default_modes)
    items = [(f"modes[{index}]", {"mode": mode}) for index, mode in enumerate(modes or ())]
    items += [(f"configurations[{index}]", item) for index, item in enumerate(configurations or ())]
    for where, item in items:
        _collect(item, where=where, reranker=reranker, fusion=base_fusion, exact=exact, into=configs, faults=faults)
    seen: dict[str, int] = {}
    for config in configs:
        seen[config.name] = seen.get(config.name, 0) + 1
    faults += [
        Fault(code=ErrorCode.VALIDATION, message=f"Two configurations are named {name!r}.", field="configurations")
        for name, count in seen.items()
        if count > 1
    ]
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return tuple(configs)


_FIELDS = frozenset(
    {
        "name",
        "mode",
        "keyword",
        "fts",
        "index",
        "depth",
        "exact",
        "ef_search",
        "fusion",
        "reranker",
        "rerank_depth",
        "min_score",
    }
)


def _collect(
    item: Any,
    *,
    where: str,
    reranker: str,
    fusion: Mapping[str, Any] | None,
    exact: bool,
    into: list[RetrievalConfig],
    faults: list[Fault],
) -> None:
    def fault(message: str, field: str = "") -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=f"{where}.{field}" if field else where))

    if not isinstance(item, Mapping):
        fault(f"A configuration is an object with a mode, not {type(item).__name__}.")
        return
    before = len(faults)
    for unknown in sorted(set(item) - _FIELDS):
        fault(f"There is no setting {unknown!r}. There are: {', '.join(sorted(_FIELDS))}.", str(unknown))
    raw_mode = str(item.get("mode", "hybrid"))
    base, _, suffix = raw_mode.partition("_rerank")
    base = ALIASES.get(base, base)
    reranked = raw_mode.endswith("_rerank")
    if base not in LEGS_OF or suffix:
        fault(
            f"There is no mode {raw_mode!r}. There are: {', '.join(MODES)}.",
            "" if where.startswith("modes") else "mode",
        )
        return
    config = RetrievalConfig(name=str(item.get("name") or f"{base}{'_rerank' if reranked else ''}"), base=base)
    given = str(item.get("reranker") or "")
    if reranked:
        config = replace(config, reranker=given or reranker)
    elif given:
        config = replace(config, reranker=given, name=str(item.get("name") or f"{base}_rerank"))
    config = replace(
        config,
        keyword=_choice(item, "keyword", ("bm25", "fts"), "bm25", fault),
        fts=_choice(item, "fts", ("and", "or"), "and", fault),
        index=str(item.get("index") or ""),
        depth=_whole(item, "depth", 100, 1, MAX_DEPTH, fault),
        rerank_depth=_whole(item, "rerank_depth", 50, 1, MAX_DEPTH, fault),
        exact=_flag(item, "exact", exact, fault),
        ef_search=_whole(item, "ef_search", 100, 1, 1000, fault) if item.get("ef_search") is not None else None,
        fusion=_fusion(item.get("fusion", fusion), fault),
        min_score=_number(item, "min_score", fault),
    )
    if config.ef_search is not None and config.exact:
        fault("ef_search is a setting of approximate search: say exact: false as well.", "ef_search")
    if not config.exact and config.ef_search is None:
        config = replace(config, ef_search=100)
    if len(faults) == before:
        into.append(config)


def _choice(item: Mapping[str, Any], name: str, allowed: tuple[str, ...], default: str, fault: Any) -> str:
    value = item.get(name, default)
    if value not in allowed:
        fault(f"{name} is one of {', '.join(allowed)}, not {value!r}.", name)
        return default
    return str(value)


def _whole(item: Mapping[str, Any], name: str, default: int, low: int, high: int, fault: Any) -> int:
    value = item.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        fault(f"{name} is a whole number from {low} to {high}, not {value!r}.", name)
        return default
    return value


def _flag(item: Mapping[str, Any], name: str, default: bool, fault: Any) -> bool:  # noqa: FBT001  a private helper
    value = item.get(name, default)
    if not isinstance(value, bool):
        fault(f"{name} is true or false, not {value!r}.", name)
        return default
    return value


def _number(item: Mapping[str, Any], name: str, fault: Any) -> float | None:
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        fault(f"{name} is a number, not {value!r}.", name)
        return None
    return float(value)


def _fusion(value: Any, fault: Any) -> Fusion:
    if value is None:
        return Fusion()
    if not isinstance(value, Mapping):
        fault(f"fusion is an object such as {{'formula': 'rrf', 'constant': 60}}, not {value!r}.", "fusion")
        return Fusion()
    for unknown in sorted(set(value) - {"formula", "constant", "rank_base", "weights"}):
        fault(f"fusion has no setting {unknown!r}: formula, constant, rank_base, weights.", f"fusion.{unknown}")
    weights = value.get("weights", [1.0, 1.0])
    if isinstance(weights, Mapping):
        weights = [weights.get("semantic", 1.0), weights.get("keyword", 1.0)]
    if (
        not isinstance(weights, list | tuple)
        or len(weights) != 2
        or any(isinstance(w, bool) or not isinstance(w, int | float) or not 0 <= w < math.inf for w in weights)
        or not any(weights)
    ):
        fault("fusion.weights are two numbers >= 0, semantic and keyword, not both 0.", "fusion.weights")
        weights = [1.0, 1.0]
    constant = value.get("constant", 60.0)
    if isinstance(constant, bool) or not isinstance(constant, int | float) or not 0 < constant < math.inf:
        fault("fusion.constant is a number above 0.", "fusion.constant")
        constant = 60.0
    return Fusion(
        formula=_choice(value, "formula", FORMULAS, "rrf", fault),
        constant=float(constant),
        rank_base=_whole(value, "rank_base", 1, 0, 1, fault),
        weights=(float(weights[0]), float(weights[1])),
    )
