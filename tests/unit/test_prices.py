"""Money from a table that is data."""

from typing import Any

import pytest

from backend.core import prices


def test_a_price_is_by_provider_and_unit() -> None:
    table = prices.parse({"currency": "EUR", "cohere:r": {"search_units": 0.002}, "openai:e": {"input_tokens": 2e-8}})
    assert table.currency == "EUR"
    assert table.of("cohere:r", {"search_units": 500, "rerank_calls": 500}) == pytest.approx(1.0)
    assert table.of("openai:e", {"input_tokens": 1_000_000}) == pytest.approx(0.02)


def test_what_has_no_price_or_was_not_counted_costs_none_and_not_nothing() -> None:
    table = prices.parse({"cohere:r": {"search_units": 0.002}})
    assert table.of("cohere:other", {"search_units": 1}) is None
    assert table.of("cohere:r", {"rerank_calls": 1}) is None
    assert table.of("cohere:r", {"search_units": 0}) == 0.0
    assert table.currency == "USD"


@pytest.mark.parametrize(
    "table", [{"a": 1}, {"a": {}}, {"a": {"u": -1}}, {"a": {"u": True}}, {"a": {"u": float("nan")}}, {"currency": 1}]
)
def test_a_senseless_table_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is a"):
        prices.parse(table)
