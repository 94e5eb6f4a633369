"""The demo handbook cut another way: its questions mean the same passages, or are named as crossing a border."""

import json
from pathlib import Path

import pytest

from backend.core.resolving import FindingKind
from backend.services import preflight, question_sets
from tests.integration.ingest_work import ingest, new_base

pytestmark = pytest.mark.django_db(transaction=True)
HANDBOOK = Path(__file__).resolve().parents[2] / "examples" / "handbook"


def documents() -> dict[str, str | bytes]:
    found = {}
    for path in sorted(HANDBOOK.rglob("*")):
        name = path.relative_to(HANDBOOK).as_posix()
        if path.is_file() and not name.startswith("."):
            found[name] = path.read_bytes()
    return found  # type: ignore[return-value]  # a dict of bytes is one of texts or bytes


@pytest.mark.slow
def test_labels_on_text_survive_another_chunk_size_or_are_named_as_crossing_a_border() -> None:
    cases = json.loads((HANDBOOK / ".touchstone" / "handbook-content.json").read_text())["cases"]
    # A whole sentence fits no passage of 80 characters.
    sentence = next(
        line for line in (HANDBOOK / "people" / "onboarding.md").read_text().splitlines() if 90 < len(line) < 300
    )
    cases.append({"query": "a long label", "expect": {"document": "onboarding", "content_contains": [sentence]}})
    told = {}
    version = None
    for size in (1200, 300, 80):
        base = new_base(
            {"embedding": {"embedder": "none"}, "chunking": {"size": size, "overlap": 0}}, name=f"handbook {size}"
        )
        ingest(base, documents())
        version = version or question_sets.create(base.workspace, name="content", items=cases)
        report = preflight.run(base.workspace, version, {"knowledge_base": str(base.id)})
        unresolved = {kind: n for kind, n in report.counts.items() if kind in _ERRORS}
        assert set(unresolved) <= {FindingKind.CROSSES_BORDER}, (size, report.findings)
        assert report.n_resolved + unresolved.get(FindingKind.CROSSES_BORDER, 0) == len(cases)
        told[size] = report.n_resolved
    assert told[1200] == told[300] == len(cases)
    assert told[80] == len(cases) - 1


_ERRORS = {
    FindingKind.NO_DOCUMENT,
    FindingKind.NO_TEXT,
    FindingKind.NO_PASSAGE,
    FindingKind.NOT_INDEXED,
    FindingKind.CROSSES_BORDER,
    FindingKind.OUTSIDE_SCOPE,
}
