"""The values that cross borders: questions and what they expect, passages and where they come from."""

from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    """What a rank counts (spec: docs/metrics.md)."""

    DOCUMENT = "document"
    PASSAGE = "passage"


class Outcome(StrEnum):
    """How one question of one run ended. `found` and `missed` are derived per (k, level), never stored."""

    OK = "ok"
    EMPTY = "empty"
    ERROR = "error"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"


GOOD_OUTCOMES = frozenset({Outcome.OK, Outcome.EMPTY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way of satisfying an expectation: a document, and/or content, or a passage.

    `path` is a whole document path (`source:path` already split where the prefix is a known source, else kept
    whole: ids may be URLs). `document` is a part of the document's name or path. `content_contains` is a list of
    substrings of which any one suffices. `passage` is a passage id, with `text` a snippet that survives
    re-ingestion.
    """

    path: str | None = None
    source: str | None = None
    document: str | None = None
    content_contains: tuple[str, ...] = ()
    passage: str | None = None
    text: str | None = None

    @property
    def looks_at_content(self) -> bool:
        return bool(self.content_contains or self.passage or self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One thing that must be found: any of its alternatives satisfies it. A grade <= 0 is a judgement only."""

    any_of: tuple[Alternative, ...]
    grade: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One line of a question set. `key` identifies it across versions: its id, else a hash of its folded text.
    `generated` names what made it, where no person did."""

    key: str
    text: str
    expectations: tuple[Expectation, ...] = ()
    tags: tuple[str, ...] = ()
    note: str = ""
    must_pass: bool = False
    unanswerable: bool = False
    reference_answer: str = ""
    generated: str = ""
    source: str = ""
    collection: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSet:
    """What a question-set file says, mapped to the full form.

    `threshold` is the grade from which an expectation is relevant (1, or the set's smallest positive grade where
    none reaches 1). `level` is `passage` when any expectation looks at content or passage ids.
    """

    format: str
    questions: tuple[Question, ...]
    threshold: float = 1.0
    level: Level = Level.DOCUMENT
    warnings: tuple[str, ...] = ()

    @property
    def is_graded(self) -> bool:
        """Whether some expectation is graded or a judgement only: then ndcg is the headline, and judged@k is shown."""
        return any(one.grade != 1 for question in self.questions for one in question.expectations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One retrieved chunk, with what judging and showing it need. `id` and `document_id` are opaque."""

    id: str
    document_id: str
    path: str
    source: str
    text: str
    ordinal: int = 0
    collection: str = ""
    heading: str = ""
    page: int | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """From `start` (a character offset in the extracted text) on, this heading and this place hold.

    `page` is the page (PDF), slide or sheet number, from 1; None where the format has none.
    """

    start: int
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedText:
    """A document as text. Offsets of everything later (chunks, labels) are characters of `text`."""

    text: str
    marks: tuple[Mark, ...] = field(default=())
    reader: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """A chunk: `text[start:end]` of its document. `truncated` says that the model's window cuts it all the same."""

    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None
    truncated: bool = False
