"""The metrics of many stored judged lists: each list that looks alike is worked out once.

No metric looks at a key, only at what each rank satisfies; of 10,000 questions with one expectation each, some ten
lists differ.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from backend.core import metric_keys
from backend.core.judging import JudgedList
from backend.core.metric_keys import MetricKey

Measured = tuple[JudgedList, Mapping[str, float | None]]
# Bounds memory where hardly any two lists look alike (some kilobytes each).
_MOST = 20_000


class Measurer:
    """`of` gives a list without its keys (each rank's is its number), and the value of each metric. Both are shared:
    not to be changed."""

    def __init__(self, keys: Sequence[MetricKey]) -> None:
        self._keys = [(str(key), key) for key in keys]
        self._seen: dict[Any, Measured] = {}

    def of(self, stored: Mapping[str, Any]) -> Measured:
        """Raises ValueError for a layout that this release does not know."""
        shape = (
            stored.get("v"),
            stored["level"],
            stored["top_k"],
            stored["threshold"],
            stored["n_judgements"],
            tuple(stored["grades"]),
            tuple([0 if isinstance(rank, str) else tuple(rank[1:]) for rank in stored["ranks"]]),
        )
        found = self._seen.get(shape)
        if found is None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            found = self._seen[shape] = self._measure(stored)
        return found

    def _measure(self, stored: Mapping[str, Any]) -> Measured:
        ranks = [
            str(number) if isinstance(rank, str) else [str(number), *rank[1:]]
            for number, rank in enumerate(stored["ranks"], start=1)
        ]
        judged = JudgedList.from_json({**stored, "ranks": ranks})
        return judged, {name: metric_keys.compute(key, judged) for name, key in self._keys}
