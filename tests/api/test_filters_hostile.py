"""Whatever stands in a filter, a cursor or an id: an answer that is described, and never a failure."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.models import Run
from tests.api.conftest import API, World

pytestmark = pytest.mark.django_db
_NAMES = (
    "cursor",
    "limit",
    "k",
    "order",
    "outcome",
    "tag",
    "mode",
    "since",
    "knowledge_base",
    "question_set",
    "format",
)
_VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.integers().map(str),
    st.sampled_from(["", "0", "-1", "1e9", "NaN", "%00", "\x00", "null", "[]", "' OR 1=1 --", "../..", "٣", "missed"]),
    st.binary(max_size=20).map(lambda data: data.hex()),
)
_within = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(query=st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=4))
@_within
def test_filters(world: World, query: dict[str, Any]) -> None:
    run = Run.objects.filter(workspace=world.workspace).first()
    if run is None:
        world.evaluate()
        run = Run.objects.get(workspace=world.workspace)
    for path in ("runs", f"runs/{run.id}/results", "evaluations", "knowledge-bases", "audit", "jobs"):
        answer = world.client.get(f"{API}/{path}", query)
        assert answer.status_code in {200, 404, 422}, (path, query, answer.status_code)


@given(part=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/?#"), min_size=1, max_size=40))
@_within
def test_ids(world: World, part: str) -> None:
    for path in (
        "runs",
        "evaluations",
        "knowledge-bases",
        "question-sets",
        "tokens",
        "members",
        "provider-keys",
        "jobs",
    ):
        answer = world.client.get(f"{API}/{path}/{part}")
        assert answer.status_code in {200, 404, 405}, (path, part, answer.status_code)
