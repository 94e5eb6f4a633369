"""Short ways to write questions, rankings and judged lists in tests."""

from collections.abc import Mapping, Sequence

from backend.core.judging import JudgedList, judge
from backend.core.types import Alternative, Expectation, Level, Passage, Question


def expects(*paths: str, grade: float = 1.0) -> Expectation:
    """One expectation that any of these documents satisfies."""
    return Expectation(any_of=tuple(Alternative(path=path) for path in paths), grade=grade)


def question(*expectations: Expectation) -> Question:
    return Question(key="q", text="question", expectations=expectations)


def passage(key: str, *, document: str | None = None, text: str = "", source: str = "files") -> Passage:
    """A passage; its document's path and id are `document`, by default the passage's own id."""
    path = document or key
    return Passage(id=key, document_id=path, path=path, source=source, text=text)


def judge_ids(
    ids: Sequence[str],
    grades: Mapping[str, float] | Sequence[Expectation],
    *,
    top_k: int = 10,
    threshold: float = 1.0,
    level: Level = Level.DOCUMENT,
) -> JudgedList:
    """Judge a ranking of document ids against grades per document, or against expectations."""
    if isinstance(grades, Mapping):
        grades = [expects(path, grade=grade) for path, grade in grades.items()]
    return judge([passage(one) for one in ids], question(*grades), level=level, threshold=threshold, top_k=top_k)


def documents(count: int, *, prefix: str = "x") -> list[str]:
    return [f"{prefix}{number}" for number in range(1, count + 1)]
