"""The tables are made, and the text-search configurations fold accents."""

import pytest
from django.core.management import call_command
from django.db import connection

pytestmark = pytest.mark.django_db


def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


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
