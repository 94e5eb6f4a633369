"""Limits as data, and the interval that keeps every window of a minute below them."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.providers import rates, registry
from backend.providers.base import ProviderError
from backend.providers.rates import Rate
from backend.providers.settings import ProviderSettings


def settings(**env: str) -> ProviderSettings:
    return ProviderSettings.from_env({"CO_API_KEY": "k", "OPENAI_API_KEY": "o", **env})


def limit_of(spec: str, env: Mapping[str, str] | None = None, *, embedder: bool = False) -> int | None:
    told = settings(**(env or {}))
    if embedder:
        rate = rates.of_embedder(registry.describe_embedder(spec, told), told)
    else:
        rate = rates.of_reranker(registry.describe_reranker(spec, told), told)
    return None if rate is None else rate.limit


def test_cohere_has_the_limits_of_a_production_key_unless_told() -> None:
    assert limit_of("cohere:rerank-v4.0-pro") == 1000
    assert limit_of("cohere:embed-v4.0", embedder=True) == 2000
    assert limit_of("cohere:rerank-v4.0-pro", {"TOUCHSTONE_RATE_COHERE_RERANK": "10"}) == 10


def test_one_model_may_have_a_limit_of_its_own() -> None:
    env = {"TOUCHSTONE_RATE_COHERE_RERANK": "10", "TOUCHSTONE_RATE_COHERE_RERANK_RERANK_V4_0_PRO": "50"}
    assert limit_of("cohere:rerank-v4.0-pro", env) == 50
    assert limit_of("cohere:rerank-v3.5", env) == 10


def test_servers_of_ones_own_have_none_unless_told() -> None:
    near = {"TOUCHSTONE_RERANK_NEAR_URL": "http://localhost:1"}
    assert limit_of("http:near", near) is None
    assert limit_of("http:near", {**near, "TOUCHSTONE_RATE_HTTP_NEAR": "120"}) == 120
    assert limit_of("local") is None
    assert limit_of("local", embedder=True) is None
    assert limit_of("openai:text-embedding-3-small", embedder=True) is None
    assert limit_of("openai:m", {"TOUCHSTONE_RATE_OPENAI_EMBED": "500"}, embedder=True) == 500


def test_zero_lifts_a_limit_and_anything_else_that_is_no_number_is_refused() -> None:
    assert limit_of("cohere:m", {"TOUCHSTONE_RATE_COHERE_RERANK": "0"}) is None
    with pytest.raises(ProviderError, match="TOUCHSTONE_RATE_COHERE_RERANK must be a whole number"):
        limit_of("cohere:m", {"TOUCHSTONE_RATE_COHERE_RERANK": "fast"})


def test_models_share_a_bucket_by_key_and_address() -> None:
    def bucket(spec: str, **env: str) -> str:
        told = settings(**env)
        rate = rates.of_reranker(registry.describe_reranker(spec, told), told)
        assert rate is not None
        return rate.bucket

    assert bucket("cohere:a") == bucket("cohere:b")
    assert bucket("cohere:a") != bucket("cohere:a", CO_API_KEY="another")
    assert bucket("cohere:a") != bucket("cohere:a", TOUCHSTONE_COHERE_URL="http://localhost:1")
    assert "another" not in bucket("cohere:a", CO_API_KEY="another")


@given(
    limit=st.integers(min_value=1, max_value=5000),
    share=st.integers(min_value=1, max_value=96),
    start=st.floats(min_value=0, max_value=60),
)
def test_no_window_of_a_minute_holds_more_than_the_limit(limit: int, share: int, start: float) -> None:
    """The bucket as the script has it, asked again and again without a pause."""
    rate = Rate(bucket="b", spec="s", limit=limit)
    n = min(share, rate.most_inputs)
    interval = rate.interval(n)
    free, now = 0.0, 0.0
    moments: list[float] = []
    while now < 130:
        at = max(now, free - (rate.burst - 1) * interval)
        free = max(free, at) + n * interval
        moments.append(at)
        now = at
    held = sum(n for moment in moments if start <= moment <= start + 60)
    assert held <= limit
    if limit >= 200:
        assert held >= 0.9 * limit - 2 * n, "the limit is used"
