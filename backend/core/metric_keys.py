"""The names metrics are stored under. A key is the definition: `ndcg(gain=exp)@10` parses back to what was computed."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from backend.core import metrics
from backend.core.errors import ValidationError
from backend.core.judging import JudgedList
from backend.core.metrics import Gain

NAMES: Final = ("hit", "recall", "precision", "mrr", "map", "ndcg", "judged")
DEFAULT_TOP_K: Final = 10
DEFAULT_KS: Final = (1, 3, 5, 10)
# mrr is one figure, not one per cut; so is the primary metric.
HEADLINE_K: Final = 10

_KEY = re.compile(r"(?P<name>[a-z]+)(?:\((?P<options>[^()]*)\))?@(?P<k>[1-9][0-9]{0,5})", re.ASCII)

_FUNCTIONS: Final[dict[str, Callable[..., float | None]]] = {
    "hit": metrics.hit,
    "recall": metrics.recall,
    "precision": metrics.precision,
    "mrr": metrics.mrr,
    "map": metrics.average_precision,
    "judged": metrics.judged_share,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKey:
    """A metric with everything that defines it. `str()` prints it with defaults left out; `parse` reads it back."""

    name: str
    k: int
    gain: Gain = Gain.LINEAR

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValidationError(f"There is no metric {self.name!r}. There are: {', '.join(NAMES)}.", field="metric")
        if self.k < 1:
            raise ValidationError(f"k must be at least 1, not {self.k}.", field="k")
        if self.gain is not Gain.LINEAR and self.name != "ndcg":
            raise ValidationError(f"{self.name} has no gain; only ndcg has.", field="metric")

    @property
    def is_binary(self) -> bool:
        """Whether a question's value is 0 or 1, so that the mean is a rate (Wilson interval, McNemar test)."""
        return self.name == "hit"

    @staticmethod
    def parse(text: str, *, top_k: int | None = None) -> "MetricKey":
        """`name@k` or `ndcg(gain=exp)@k`. With `top_k`, a k beyond it is an error. Raises ValidationError."""
        key = _parse(text)
        if top_k is not None and key.k > top_k:
            raise ValidationError(f"{text} asks for rank {key.k}, but this ranking is cut at top_k {top_k}.", field="k")
        return key

    def __str__(self) -> str:
        return _print(self.name, self.k, self.gain)


@lru_cache(maxsize=1024)
def _print(name: str, k: int, gain: Gain) -> str:
    options = "" if gain is Gain.LINEAR else f"(gain={gain.value})"
    return f"{name}{options}@{k}"


@lru_cache(maxsize=1024)
def _parse(text: str) -> MetricKey:
    match = _KEY.fullmatch(text)
    if match is None:
        raise ValidationError(
            f"{text!r} is not a metric. Write its name and cut, such as mrr@10 or ndcg(gain=exp)@10.", field="metric"
        )
    gain = Gain.LINEAR
    if match["options"] is not None:
        name, _, value = match["options"].partition("=")
        if name != "gain" or value not in list(Gain):
            raise ValidationError(
                f"{text!r}: the one option there is, is gain=linear or gain=exp, for ndcg.", field="metric"
            )
        gain = Gain(value)
        if match["name"] in NAMES and match["name"] != "ndcg":
            raise ValidationError(f"{match['name']} has no gain; only ndcg has.", field="metric")
    return MetricKey(name=match["name"], k=int(match["k"]), gain=gain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """How deep a ranking goes and at which ranks it is measured; every k <= top_k, ascending."""

    top_k: int
    ks: tuple[int, ...]


def resolve_cutoffs(*, k: int | Sequence[int] | None = None, top_k: int | None = None) -> Cutoffs:
    """What a request's `k` (a number or a list) and `top_k` mean.

    top_k is 10, or max(10, k) when only k is given; the ks are those of 1, 3, 5, 10 that are <= top_k unless
    given. Raises ValidationError for a k beyond a given top_k, and for anything that is no whole number >= 1.
    """
    wanted = None if k is None else tuple(k) if isinstance(k, Sequence) else (k,)
    if wanted is not None and (not wanted or not all(map(_is_cut, wanted))):
        raise ValidationError("k must be a whole number from 1 on, or a list of them.", field="k")
    if top_k is None:
        top_k = max(DEFAULT_TOP_K, *(wanted or (DEFAULT_TOP_K,)))
    elif not _is_cut(top_k):
        raise ValidationError("top_k must be a whole number from 1 on.", field="top_k")
    if wanted is None:
        return Cutoffs(top_k=top_k, ks=default_ks(top_k))
    ks = tuple(sorted(set(wanted)))
    if ks[-1] > top_k:
        raise ValidationError(f"k {ks[-1]} is beyond top_k {top_k}: nothing is known about rank {ks[-1]}.", field="k")
    return Cutoffs(top_k=top_k, ks=ks)


def default_ks(top_k: int) -> tuple[int, ...]:
    """Those of 1, 3, 5 and 10 that are <= top_k."""
    return tuple(k for k in DEFAULT_KS if k <= top_k)


def default_primary(*, top_k: int, graded: bool) -> MetricKey:
    """The metric that carries the verdict unless another is named: mrr, on graded sets ndcg, at min(10, top_k)."""
    return MetricKey(name="ndcg" if graded else "mrr", k=min(HEADLINE_K, top_k))


def default_keys(*, ks: Sequence[int], top_k: int, graded: bool) -> tuple[MetricKey, ...]:
    """What a run stores: hit, recall, precision, map and ndcg at each k, mrr at min(10, top_k), judged where `graded`.

    `graded` says that the set has graded or negative judgements. The default primary metric is always among them.
    """
    names = ("hit", "recall", "precision", "map", "ndcg", *(("judged",) if graded else ()))
    keys = [MetricKey(name=name, k=k) for name in names for k in ks]
    keys.insert(3 * len(ks), MetricKey(name="mrr", k=min(HEADLINE_K, top_k)))
    primary = default_primary(top_k=top_k, graded=graded)
    if primary not in keys:
        keys.append(primary)
    return tuple(keys)


def compute(key: MetricKey, judged: JudgedList) -> float | None:
    """The value of one metric for one question; None where R = 0."""
    if key.name == "ndcg":
        return metrics.ndcg(judged, k=key.k, gain=key.gain)
    return _FUNCTIONS[key.name](judged, k=key.k)


def compute_all(keys: Iterable[MetricKey], judged: JudgedList) -> dict[str, float | None]:
    """The value of each metric for one question, under its printed key; all None where R = 0."""
    return {str(key): compute(key, judged) for key in keys}


def _is_cut(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
