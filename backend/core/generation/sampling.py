"""Which passages questions are made from: by document and collection, not by passage, or long files would dominate."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A passage as sampling needs it. `document` and `collection` are opaque names."""

    id: str
    document: str
    collection: str = ""


def in_turn(passages: Sequence[Sketch], *, seed: int) -> Iterator[Sketch]:
    """All passages, in the order in which to take them: one of each document, then a second of each, and so on.

    Collections are spread evenly by their number of documents, however long the list is that is taken. The same
    passages and seed give the same order, whatever order they come in.
    """
    by_document: dict[tuple[str, str], list[str]] = defaultdict(list)
    for passage in passages:
        by_document[passage.collection, passage.document].append(passage.id)
    for (_, document), ids in by_document.items():
        ids.sort()
        _random(seed, "passages", document).shuffle(ids)
    turns = _spread(by_document, seed=seed)
    for turn in range(max((len(ids) for ids in by_document.values()), default=0)):
        for collection, document in turns:
            ids = by_document[collection, document]
            if turn < len(ids):
                yield Sketch(id=ids[turn], document=document, collection=collection)


def _spread(documents: dict[tuple[str, str], list[str]], *, seed: int) -> list[tuple[str, str]]:
    """Documents in an order of which every beginning holds each collection in proportion."""
    by_collection: dict[str, list[str]] = defaultdict(list)
    for collection, document in sorted(documents):
        by_collection[collection].append(document)
    placed: list[tuple[float, str, str]] = []
    for collection, names in by_collection.items():
        _random(seed, "documents", collection).shuffle(names)
        placed += [((index + 0.5) / len(names), collection, name) for index, name in enumerate(names)]
    return [(collection, name) for _, collection, name in sorted(placed)]


def kinds_for(n: int, kinds: Sequence[str]) -> list[str]:
    """The kind of each of `n` questions: in turn, so that any part of them holds all kinds evenly."""
    return [kinds[index % len(kinds)] for index in range(n)]


def _random(seed: int, *parts: str) -> random.Random:
    return random.Random(":".join((str(seed), *parts)))  # noqa: S311  a sample that can be drawn again, no secret
