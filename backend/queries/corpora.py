"""What an Index holds, as a fingerprint and a generation: what runs record at their start and end."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from django.db import connection

from backend.core.configs import fingerprint

_Key = TypeVar("_Key", bound=Hashable)


def describe_each(index_ids: Mapping[_Key, Sequence[UUID]]) -> dict[_Key, tuple[dict[UUID, int], str]]:
    """The same for several lists of Indexes: runs of one evaluation may read different ones. Equal lists are read
    once."""
    known: dict[frozenset[UUID], tuple[dict[UUID, int], str]] = {}
    found = {}
    for key, ids in index_ids.items():
        distinct = frozenset(ids)
        if distinct not in known:
            known[distinct] = describe(sorted(distinct))
        found[key] = known[distinct]
    return found


def generations_as_json(generations: Mapping[UUID, int]) -> dict[str, int]:
    """As a run records them."""
    return {str(key): value for key, value in generations.items()}


def describe(index_ids: Sequence[UUID]) -> tuple[dict[UUID, int], str]:
    """The generation of each Index, and one fingerprint over (source, path, bytes hash) of all their documents.

    One query over the indexed documents, in path order. No Index: an empty fingerprint.
    """
    if not index_ids:
        return {}, ""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.id, i.generation,
                   encode(sha256(convert_to(COALESCE(string_agg(
                       concat_ws(E'\\x1f', s.name, d.path, x.bytes_hash), E'\\n'
                       ORDER BY s.name COLLATE "C", d.path COLLATE "C"), ''), 'UTF8')), 'hex')
            FROM backend_index i
            LEFT JOIN backend_indexeddocument x ON x.index_id = i.id
            LEFT JOIN backend_document d ON d.id = x.document_id
            LEFT JOIN backend_source s ON s.id = d.source_id
            WHERE i.id = ANY(%s) GROUP BY i.id, i.generation ORDER BY i.id
            """,
            [list(index_ids)],
        )
        rows = cursor.fetchall()
    hashes = sorted(row[2] for row in rows)
    return {row[0]: row[1] for row in rows}, hashes[0] if len(hashes) == 1 else fingerprint(hashes)
