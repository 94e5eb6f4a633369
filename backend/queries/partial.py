"""A run's metrics before it is over, from the rows that are there."""

import json
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from backend.core import summaries
from backend.core.measuring import Measurer
from backend.core.metric_keys import MetricKey

# Above this many rows a poll tells counts only: the numbers would cost more than they say.
MOST_ROWS = 2000
_SEED = 20_240_101
# Numbers that took longer than the first are shown again until so many times what they took has passed: polls, however
# many, spend a fiftieth of a processor on them.
_CHEAP_SECONDS, _TIMES = 0.05, 50
_MOST_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    n_rows: int
    until: float
    numbers: dict[UUID, dict[str, Any]]


_kept: "OrderedDict[tuple[UUID, int], _Kept]" = OrderedDict()
_lock = threading.Lock()


def lately(
    evaluation_id: UUID,
    *,
    n_rows: int,
    run_ids: Sequence[UUID],
    keys: Iterable[str],
    version_id: UUID | None,
    epoch: int,
) -> tuple[dict[UUID, dict[str, Any]], bool]:
    """`metrics`, or those of a moment ago where they are costly; and whether they are of the `n_rows` there are now."""
    with _lock:
        found = _kept.get((evaluation_id, epoch))
    if found is not None and (found.n_rows == n_rows or time.monotonic() < found.until):
        return found.numbers, found.n_rows == n_rows
    before = time.thread_time()
    numbers = metrics(run_ids, keys=keys, version_id=version_id, epoch=epoch)
    took = time.thread_time() - before
    if took > _CHEAP_SECONDS:
        with _lock:
            _kept[evaluation_id, epoch] = _Kept(n_rows=n_rows, until=time.monotonic() + _TIMES * took, numbers=numbers)
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return numbers, True


def metrics(
    run_ids: Sequence[UUID], *, keys: Iterable[str], version_id: UUID | None, epoch: int
) -> dict[UUID, dict[str, Any]]:
    """Per run: key -> {mean, low, high, n, n_total} over the questions scored so far; one query.

    `n_total` counts those that could be scored among the questions with a row, errors included.
    """
    parsed = [MetricKey.parse(key) for key in keys]
    measurer = Measurer(parsed)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT x.run_id, x.judged::text, x.outcome IN ('ok', 'empty')
            FROM backend_result x
            LEFT JOIN backend_question q ON q.version_id = %s AND q.ordinal = x.ordinal
            WHERE x.run_id = ANY(%s) AND (x.outcome IN ('ok', 'empty') OR x.epoch >= %s)
              AND NOT COALESCE(q.unanswerable, false)
            """,
            [version_id, list(run_ids), epoch],
        )
        rows = cursor.fetchall()
    values: dict[UUID, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    n_eligible: dict[UUID, int] = defaultdict(int)
    for run_id, stored, is_good in rows:
        judged, measured = (None, {}) if stored is None else measurer.of(json.loads(stored))
        # Without a judged list nothing says that the question has no expectation: it counts as one that has.
        n_eligible[run_id] += judged is None or judged.n_relevant > 0
        if is_good and judged is not None and judged.n_relevant:
            for name, value in measured.items():
                values[run_id][name].append(value)
    # All runs together: their intervals cost as much as those of one.
    found = list(values)
    told = summaries.summarise_groups(
        [({key: values[run_id][str(key)] for key in parsed}, n_eligible[run_id]) for run_id in found], seed=_SEED
    )
    return {
        run_id: {str(key): asdict(summary) for key, summary in of_run.items()}
        for run_id, of_run in zip(found, told, strict=True)
    }
