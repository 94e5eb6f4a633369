"""What differs between two versions of a question set: told apart in the database, however long they are."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from backend.models import QuestionSetVersion

MOST = 200
_FIELDS = (
    *("text", "expect", "tags", "note", "must_pass"),
    *("unanswerable", "reference_answer", "source", "collection"),
)


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question. `fields` names what changed; `before` and `after` hold its values (empty: it was, or is, not
    there)."""

    kind: ChangeKind
    key: str
    text: str
    fields: tuple[str, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def pairs(self) -> list[tuple[str, Any, Any]]:
        """Each field that changed, with what it was and is."""
        return [(name, self.before[name], self.after[name]) for name in self.fields]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All are counted, the first MOST shown, in the order of the later version, those removed last."""

    n_added: int
    n_removed: int
    n_changed: int
    n_same: int
    rows: tuple[Change, ...]

    @property
    def n_more(self) -> int:
        return self.n_added + self.n_removed + self.n_changed - len(self.rows)


def between(before: QuestionSetVersion, after: QuestionSetVersion, *, most: int = MOST) -> Difference:
    """Two queries. Questions are the same by their key."""
    differs = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in _FIELDS)
    joined = (
        "(SELECT * FROM backend_question WHERE version_id = %(before)s) a FULL JOIN "
        "(SELECT * FROM backend_question WHERE version_id = %(after)s) b ON a.key = b.key"
    )
    given: dict[str, UUID | int] = {"before": before.id, "after": after.id, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT count(*) FILTER (WHERE a.id IS NULL), count(*) FILTER (WHERE b.id IS NULL),
                   count(*) FILTER (WHERE a.id IS NOT NULL AND b.id IS NOT NULL AND ({differs})),
                   count(*) FILTER (WHERE a.id IS NOT NULL AND b.id IS NOT NULL AND NOT ({differs}))
            FROM {joined}
            """,  # noqa: S608  constants only
            given,
        )
        n_added, n_removed, n_changed, n_same = cursor.fetchone()
        columns = ", ".join(
            f"CASE WHEN {side}.id IS NULL THEN NULL ELSE jsonb_build_object("
            + ", ".join(f"'{name}', {side}.{name}" for name in _FIELDS)
            + ") END"
            for side in ("a", "b")
        )
        cursor.execute(
            f"""
            SELECT COALESCE(b.key, a.key), COALESCE(b.text, a.text), {columns} FROM {joined}
            WHERE a.id IS NULL OR b.id IS NULL OR {differs}
            ORDER BY b.ordinal NULLS LAST, a.ordinal LIMIT %(most)s
            """,  # noqa: S608  constants only
            given,
        )
        rows = tuple(_change(*row) for row in cursor.fetchall())
    return Difference(n_added=n_added, n_removed=n_removed, n_changed=n_changed, n_same=n_same, rows=rows)


def _change(key: str, text: str, before: Any, after: Any) -> Change:
    old, new = _loaded(before), _loaded(after)
    if not old:
        return Change(kind=ChangeKind.ADDED, key=key, text=text, fields=(), before={}, after=new)
    if not new:
        return Change(kind=ChangeKind.REMOVED, key=key, text=text, fields=(), before=old, after={})
    fields = tuple(name for name in _FIELDS if old[name] != new[name])
    return Change(kind=ChangeKind.CHANGED, key=key, text=text, fields=fields, before=old, after=new)


def _loaded(value: Any) -> Mapping[str, Any]:
    # Django hands raw jsonb out as text.
    return {} if value is None else json.loads(value) if isinstance(value, str) else value
