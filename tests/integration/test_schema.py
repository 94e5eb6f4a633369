"""The tables are made, and the text-search configurations fold accents."""

import pytest
from django.core.management import call_command
from django.db import connection

pytestmark = pytest.mark.django_db


def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_no_foreign_key_has_an_index_that_another_begins_with() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
            WHERE t.relname LIKE 'backend%' AND i.indnkeyatts = 1 AND NOT i.indisunique AND i.indpred IS NULL
              AND EXISTS (SELECT 1 FROM pg_constraint k
                          WHERE k.conrelid = t.oid AND k.contype = 'f' AND k.conkey[1] = i.indkey[0])
              AND EXISTS (SELECT 1 FROM pg_index o
                          WHERE o.indrelid = t.oid AND o.indnkeyatts > 1 AND o.indpred IS NULL
                            AND o.indkey[0] = i.indkey[0])
            """
        )
        assert cursor.fetchall() == []


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [("simple", "İstanbul Şubesi", "istanbul"), ("english", "naïve cafés", "cafe"), ("turkish", "IŞIK", "ışık")],
)
def test_a_text_search_configuration_folds_accents(language: str, text: str, query: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_tsvector(%s::regconfig, %s) @@ plainto_tsquery(%s::regconfig, %s)",
            [f"ts_{language}", text, f"ts_{language}", query],
        )
        row = cursor.fetchone()
    assert row == (True,)
