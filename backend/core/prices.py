"""What calls cost, from a table that is data: no price stands in the code, since prices change and contracts differ.

`{"currency": "USD", "cohere:rerank-v4.0-pro": {"search_units": 0.0025}, "openai:…": {"input_tokens": 0.00000002}}`:
by provider specification, the price of one unit under the provider's own name for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

CURRENCY = "currency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    currency: str = "USD"
    by_spec: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, spec: str, units: Mapping[str, float]) -> float | None:
        """What these units cost; None where no price of the provider is known, or a priced unit was not counted."""
        known = self.by_spec.get(priced_as(spec))
        if not known or any(unit not in units for unit in known):
            return None
        return sum(price * units[unit] for unit, price in known.items())


def priced_as(spec: str) -> str:
    """Whose prices a specification has: a chat model that reranks costs what it costs."""
    kind, _, rest = spec.partition(":")
    return rest if kind in {"llm", "llm-pointwise"} and rest else spec


def parse(table: Mapping[str, Any]) -> Prices:
    """Raises ValueError with a sentence for what cannot be used."""
    by_spec: dict[str, Mapping[str, float]] = {}
    currency = table.get(CURRENCY, "USD")
    if not isinstance(currency, str) or not currency:
        raise ValueError("currency is a text such as USD")
    for spec, units in table.items():
        if spec == CURRENCY:
            continue
        if not isinstance(units, Mapping) or not units or not all(_is_price(price) for price in units.values()):
            raise ValueError(f"{spec} is an object of prices by unit, such as {{'search_units': 0.002}}")
        by_spec[spec] = {str(unit): float(price) for unit, price in units.items()}
    return Prices(currency=currency, by_spec=by_spec)


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
