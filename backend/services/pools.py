"""A pool as compact rows: what a rerank slice is handed, and never reads from anywhere else.

Packed: PostgreSQL only keeps it and gives it back, and to take apart and put together a hundred passages as jsonb cost
it as much as the search that found them.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

from backend.core.matching import Targets
from backend.core.types import Expectation, Passage
from backend.search.types import Entry, StageRank


def pack(entries: Sequence[Entry], *, targets: Targets, with_text: int) -> str:
    """`rows`, as one text."""
    told = json.dumps(rows(entries, targets=targets, with_text=with_text), ensure_ascii=False, separators=(",", ":"))
    # The fastest level: half the time of the usual one, for a tenth more bytes.
    return base64.b64encode(zlib.compress(told.encode(), 1)).decode()


def unpack(packed: str | Sequence[Sequence[Any]]) -> tuple[tuple[Entry, ...], dict[str, tuple[int, ...]]]:
    """The entries, and by passage id which expectations each satisfies. Rows that are not packed are of a slice that
    an earlier release inserted."""
    return _entries(json.loads(zlib.decompress(base64.b64decode(packed))) if isinstance(packed, str) else packed)


def rows(entries: Sequence[Entry], *, targets: Targets, with_text: int) -> list[list[Any]]:
    """One row an entry, in rank order; only the first `with_text` keep their text (the others are not reranked, and
    what they satisfy is told beside them)."""
    return [
        [
            entry.passage.id,
            entry.passage.document_id,
            entry.passage.path,
            entry.passage.source,
            entry.passage.ordinal,
            entry.passage.heading,
            entry.passage.page,
            list(targets.satisfied_by(entry.passage)),
            {name: [stage.rank, stage.score] for name, stage in entry.stages.items()},
            entry.passage.text if place < with_text else "",
        ]
        for place, entry in enumerate(entries)
    ]


def _entries(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Entry, ...], dict[str, tuple[int, ...]]]:
    entries = tuple(
        Entry(
            passage=Passage(
                id=row[0],
                document_id=row[1],
                path=row[2],
                source=row[3],
                ordinal=row[4],
                heading=row[5],
                page=row[6],
                text=row[9],
            ),
            stages={name: StageRank(rank=value[0], score=value[1]) for name, value in row[8].items()},
        )
        for row in rows
    )
    return entries, {row[0]: tuple(row[7]) for row in rows}


def targets_from_json(grades: Sequence[float]) -> Targets:
    """A question's merged expectations by their grades alone: what satisfies them is told by the pool's rows."""
    return Targets(tuple(Expectation(any_of=(), grade=grade) for grade in grades))
