"""Where nobody says how vectors are searched: exactly, and by the graph where the Index is large."""

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from backend.core import configs
from backend.models import Index
from backend.search import ann
from backend.services import evaluation_requests, question_sets, search
from backend.services.evaluation_requests import Request
from tests.integration.search_rows import Base, Row, make_base

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def base(settings: Settings) -> Base:
    settings.EXACT_UP_TO = 2
    return make_base(
        *(Row(path=f"{word}.txt", text=f"about the {word}") for word in ("heron", "otter", "badger")),
        embedder="local",
        dimensions=3,
    )


def exactness(base: Base, **fields: Any) -> list[bool]:
    items = [{"question": "the heron", "expected": ["heron.txt"]}]
    made = question_sets.create(base.workspace, name=f"set {timezone.now()}", items=items)
    scope = {"knowledge_base": str(base.knowledge_base.id)}
    request = Request(question_set=str(made.question_set_id), scope=scope, **fields)
    return [config.exact for config in evaluation_requests.resolve(base.workspace, request).configs]


def test_a_large_index_is_evaluated_by_its_graph_unless_the_configuration_says_otherwise(
    base: Base, settings: Settings
) -> None:
    assert exactness(base, modes=["semantic", "hybrid"]) == [False, False]
    assert exactness(base, configurations=[{"mode": "semantic", "exact": True}]) == [True]
    settings.EXACT_UP_TO = 3
    assert exactness(base, modes=["semantic", "hybrid"]) == [True, True]
    assert exactness(base, configurations=[{"mode": "semantic", "exact": False}]) == [False]


def test_a_search_goes_by_the_graph_only_where_it_stands(base: Base) -> None:
    index = Index.objects.get(id=base.index.id)
    assert ann.pays([base.ref])
    seen: list[bool] = []
    original = configs.parse_all

    def watched(**given: Any) -> Any:
        seen.append(given["exact"])
        return original(**given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configs, "parse_all", watched)
        for _ in range(2):
            search.search(
                workspace=base.workspace,
                scope_request={"knowledge_base": str(base.knowledge_base.id)},
                query="heron",
                modes=["keyword"],
            )
            ann.ensure_ann_index(index)
    assert seen == [True, False]
    ann.drop_ann_index(index.id)
