"""The forty awkward documents through ingestion: what each becomes, and a phrase of each found by search."""

import pytest

from backend.models import KnowledgeBase
from backend.services import search
from tests.integration.ingest_work import ingest, new_base, states
from tests.shared import shared_data
from tests.unit.test_readers_shared import READ, REFUSED

pytestmark = [pytest.mark.shared, pytest.mark.django_db(transaction=True)]

# It holds nothing else, and PostgreSQL's parser takes it for no word: it is found by meaning alone.
NO_WORDS = "emoji.xlsx"


@pytest.fixture
def base() -> KnowledgeBase:
    names = [name for name, *_ in READ] + [name for name, _ in REFUSED]
    made = new_base()
    ingest(made, {name: shared_data("documents", name).read_bytes() for name in names})
    return made


def test_each_of_the_forty_is_indexed_and_found_or_refused_by_its_code(base: KnowledgeBase) -> None:
    """One ingestion for all: the reading child outlives every one of them."""
    wanted = {name: ("indexed", "") for name, *_ in READ} | {name: ("failed", code.value) for name, code in REFUSED}
    assert states(base) == wanted
    assert sum(state == "indexed" for state, _ in wanted.values()) >= 30
    missed = {}
    for name, _, phrase in READ:
        found = asked(base, phrase, mode="keyword")
        if name not in found:
            missed[name] = (phrase, found)
    assert missed == {NO_WORDS: ("🤠", [])}


def test_what_holds_no_word_is_found_by_meaning() -> None:
    base = new_base({})
    names = [NO_WORDS, "simple-table.md", "codeblock.md", "crazyones.expected.txt"]
    ingest(base, {name: shared_data("documents", name).read_bytes() for name in names})
    assert asked(base, "🤠😅", mode="semantic")[0] == NO_WORDS


def asked(base: KnowledgeBase, query: str, *, mode: str) -> list[str]:
    """The paths of the first ten passages."""
    scope = {"knowledge_base": str(base.id)}
    answer = search.search(workspace=base.workspace, scope_request=scope, query=query, modes=[mode], top_k=10)
    return [result.passage.path for result in answer.modes[0].results]
