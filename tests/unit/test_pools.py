"""What a rerank slice is handed comes back as it was."""

import json

from backend.core.matching import Targets
from backend.core.types import Alternative, Expectation, Passage
from backend.search.types import Entry, StageRank
from backend.services import pools


def _entries() -> list[Entry]:
    return [
        Entry(
            passage=Passage(
                id=f"p{at}",
                document_id=f"d{at}",
                path=f"{at}.txt",
                source="files",
                ordinal=at,
                page=at or None,
                text="ä" * at,
            ),
            stages={"meaning": StageRank(rank=at + 1, score=1 / 3 + at), "fused": StageRank(rank=at + 1, score=0.1)},
        )
        for at in range(4)
    ]


def test_a_packed_pool_comes_back_with_every_digit_and_only_the_texts_that_are_asked_for() -> None:
    targets = Targets((Expectation(any_of=(Alternative(path="2.txt"),)),))
    found, satisfied = pools.unpack(pools.pack(_entries(), targets=targets, with_text=3))
    assert [one.stages for one in found] == [one.stages for one in _entries()]
    assert [one.passage.text for one in found] == ["", "ä", "ää", ""]
    assert [one.passage.page for one in found] == [None, 1, 2, 3]
    assert satisfied == {"p0": (), "p1": (), "p2": (0,), "p3": ()}


def test_a_pool_that_an_earlier_release_inserted_is_read_too() -> None:
    targets = Targets(())
    stored = json.loads(json.dumps(pools.rows(_entries(), targets=targets, with_text=2)))
    assert pools.unpack(stored) == pools.unpack(pools.pack(_entries(), targets=targets, with_text=2))
