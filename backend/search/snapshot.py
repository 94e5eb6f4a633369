"""One view of the database for everything that a search reads: generations, legs, passages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from uuid import UUID

from django.db import connection, transaction

from backend.core.types import Passage
from backend.models.knowledge import Index
from backend.search import lexemes
from backend.search.types import SearchScope

# Passages kept for the questions that follow in the same snapshot; past this many they are read again.
_KEPT_PASSAGES = 20_000

_PASSAGES = """
SELECT id::text, document_id::text, path, source_name, text, ordinal, collection, heading, page, start, "end"
FROM backend_chunk WHERE id = ANY(%s::uuid[])
"""


class Snapshot:
    """`generations` are those of the scope's Indexes; an Index that is gone has none.

    `older_words`: the BM25 file of an earlier generation will do where that of this one is not built yet.
    """

    def __init__(self, *, generations: Mapping[UUID, int], older_words: bool = False) -> None:
        self.generations = MappingProxyType(dict(generations))
        self.older_words = older_words
        self._lexemes: dict[tuple[str, str], tuple[str, ...]] = {}
        self._passages: dict[str, Passage] = {}

    def lexemes_of(self, text: str, *, language: str) -> tuple[str, ...]:
        """The question's lexemes, each as often as it occurs; empty for stop words only."""
        self.read_lexemes([text], language=language)
        return self._lexemes[language, text]

    def read_lexemes(self, texts: Iterable[str], *, language: str) -> None:
        """Reads those of many questions in one query: worth calling ahead of a batch."""
        missing = [text for text in dict.fromkeys(texts) if (language, text) not in self._lexemes]
        if missing:
            with transaction.atomic():
                found = lexemes.of_texts(missing, language=language)
            for text, words in zip(missing, found, strict=True):
                self._lexemes[language, text] = words

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages by id, in one query; those that are gone (an older BM25 file named them) are left out."""
        if len(self._passages) > _KEPT_PASSAGES:
            self._passages.clear()
        missing = [key for key in dict.fromkeys(ids) if key not in self._passages]
        if missing:
            with connection.cursor() as cursor:
                cursor.execute(_PASSAGES, [missing])
                for row in cursor.fetchall():
                    passage = _passage(row)
                    self._passages[passage.id] = passage
        return {key: self._passages[key] for key in ids if key in self._passages}


@contextmanager
def open_snapshot(scope: SearchScope, *, older_words: bool = False) -> Iterator[Snapshot]:
    """A read-only REPEATABLE READ transaction over the scope. Opens a transaction of its own: never inside another.

    It must not stay open during a provider call: what is read in it holds back the database's cleaning.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        wanted = [index.id for index in scope.all_indexes]
        generations = dict(Index.objects.filter(id__in=wanted).values_list("id", "generation"))
        yield Snapshot(generations=generations, older_words=older_words)


def _passage(row: tuple[object, ...]) -> Passage:
    key, document, path, source, text, ordinal, collection, heading, page, start, end = row
    return Passage(
        id=str(key),
        document_id=str(document),
        path=str(path),
        source=str(source),
        text=str(text),
        ordinal=_whole(ordinal),
        collection=str(collection),
        heading=str(heading),
        page=None if page is None else _whole(page),
        start=_whole(start),
        end=_whole(end),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a whole number from the database, not {value!r}")
    return value
