"""Words as the Index's text-search configuration sees them: folded, stemmed, without stop words."""

import re
from collections.abc import Sequence

from django.db import connection

from backend.core.errors import ValidationError

_NAME = re.compile(r"^[a-z][a-z_]{0,50}$")
# NUL cannot be sent to PostgreSQL, a lone surrogate cannot be encoded: neither is part of any word.
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def configuration(language: str) -> str:
    """The text-search configuration of a language, as it stands in SQL. Raises for what cannot be a name."""
    if not _NAME.match(language):
        raise ValidationError(f"{language!r} is not the name of a text-search language.", field="keyword.language")
    return f"ts_{language}"


def sendable(text: str) -> str:
    return _UNSENDABLE.sub(" ", text)


def of_texts(texts: Sequence[str], *, language: str) -> list[tuple[str, ...]]:
    """For each text its lexemes, each as often as it occurs (256 times at most). One query for all."""
    if not texts:
        return []
    found: list[list[str]] = [[] for _ in texts]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT t.number, u.lexeme, cardinality(u.positions)
            FROM unnest(%s::text[]) WITH ORDINALITY AS t(body, number),
                 unnest(to_tsvector(%s::regconfig, t.body)) AS u
            ORDER BY t.number, u.lexeme COLLATE "C"
            """,
            [[sendable(text) for text in texts], configuration(language)],
        )
        for number, lexeme, n_places in cursor.fetchall():
            found[number - 1] += [lexeme] * (n_places or 1)
    return [tuple(words) for words in found]


def of_words(words: Sequence[str], *, language: str) -> dict[str, frozenset[str]]:
    """For each distinct word the set of its lexemes (a hyphenated word has several). One query for all."""
    distinct = list(dict.fromkeys(words))
    return {word: frozenset(found) for word, found in zip(distinct, of_texts(distinct, language=language), strict=True)}
