"""Checks on vectors that came over the wire: a 200 promises nothing."""

import math
from collections.abc import Sequence

from backend.providers.base import ProviderError, ProviderFault


def checked_vectors(vectors: object, *, n_texts: int, who: str) -> tuple[tuple[float, ...], ...]:
    """One vector per text, all of one size, of finite numbers and not all zero (which has no direction), or SHAPE."""
    if not isinstance(vectors, Sequence) or isinstance(vectors, str) or len(vectors) != n_texts:
        n_vectors = len(vectors) if isinstance(vectors, Sequence) else "no"
        raise wrong_shape(who, f"{n_vectors} vectors for {n_texts} texts")
    checked = []
    for vector in vectors:
        if not isinstance(vector, Sequence) or not vector or not all(map(_is_number, vector)):
            raise wrong_shape(who, "a vector that is not a list of finite numbers")
        if not any(vector):
            raise wrong_shape(who, "a vector of nothing but zeros")
        checked.append(tuple(map(float, vector)))
    if len({len(vector) for vector in checked}) > 1:
        raise wrong_shape(who, "vectors of different sizes")
    return tuple(checked)


def wrong_shape(who: str, what: str) -> ProviderError:
    return ProviderError(ProviderFault.SHAPE, f"{who} answered 200 with {what}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
