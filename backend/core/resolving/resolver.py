"""What the labels of a question set mean in a corpus: which documents and passages each expectation names, if any.

The work is turned round so that it grows with the corpus plus the labels, not with their product: documents are named
by look-ups, and passages stream by once, each searched for all wanted texts together (`needles.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from backend.core.folding import fold
from backend.core.matching import KnownPaths, merge
from backend.core.resolving.needles import Needles
from backend.core.types import Alternative, Expectation, Question

# Which documents hold a text is told for so many; a text that is in more of them names none in particular.
MOST_DOCUMENTS = 50


class LabelState(StrEnum):
    """From nothing to found. An expectation has that of its best alternative."""

    NO_DOCUMENT = "no_document"
    NO_PASSAGE = "no_passage"
    NO_TEXT = "no_text"
    NOT_INDEXED = "not_indexed"
    CROSSES_BORDER = "crosses_border"
    OUTSIDE_SCOPE = "outside_scope"
    RESOLVED = "resolved"


# Document id, text, passage id; no passage id for the text of a whole document.
_Text = tuple[str, str, str | None]

_ORDER = {state: place for place, state in enumerate(LabelState)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFact:
    """A document of the corpus. `indexed`: the Index holds it; `in_scope`: the search's filters let it through.
    `code` and `reason` say why it is not indexed."""

    id: str
    path: str
    source: str = ""
    indexed: bool = True
    in_scope: bool = True
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExpectation:
    """`index` counts as in the judged list: among the merged expectations, those with grade > 0 first.

    `documents` are ids, at most MOST_DOCUMENTS: those that hold it (`resolved`, `outside_scope`, `crosses_border`), or
    those it names though they are not indexed. `n_passages` counts the passages that hold the text, for content.
    `elsewhere`: a document that holds the text though the label names another.
    """

    index: int
    state: LabelState
    alternative: Alternative
    documents: tuple[str, ...] = ()
    n_passages: int = 0
    elsewhere: str = ""


@dataclass(slots=True)
class _Target:
    """An alternative while it is resolved. `documents` None: it may be in any."""

    alternative: Alternative
    documents: tuple[str, ...] | None
    content: tuple[str, ...]
    snippet: str
    passage: str | None
    hits: dict[str, None] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict)
    n_passages: int = 0
    elsewhere: str = ""
    wanted: frozenset[str] = frozenset()

    @property
    def needles(self) -> tuple[str, ...]:
        """The texts of which a passage must hold one at least."""
        return self.content or ((self.snippet,) if self.snippet else ())

    @property
    def is_by_id(self) -> bool:
        """Whether the id alone finds it, so that no text need be read for that."""
        return self.passage is not None and not self.content

    @property
    def looks_at_content(self) -> bool:
        return bool(self.needles) or self.passage is not None

    def admits(self, document: str) -> bool:
        return self.documents is None or document in self.wanted

    def holds(self, text: str, *, passage: str | None) -> bool:
        """As judging has it, for a text that holds one of `needles`."""
        if not self.content or (self.passage is None and not self.snippet):
            return True
        return (passage is not None and self.passage == passage) or (bool(self.snippet) and self.snippet in text)


class Resolver:
    """Resolves the labels of one set in one corpus.

    Feed it in this order: `know_passages` for the `passage_ids`, `read_passages` with the passages of
    `open_documents()`, `read_texts` with the whole texts of `open_documents()` as it is then. Then ask `of`.
    """

    def __init__(self, questions: Iterable[Question], documents: Iterable[DocumentFact]) -> None:
        self.documents = {one.id: one for one in documents}
        self.expectations: list[tuple[Expectation, ...]] = [merge(one.expectations) for one in questions]
        self._known = KnownPaths((one.source, one.path) for one in self.documents.values())
        self._by_path: dict[str, list[DocumentFact]] = {}
        for one in self.documents.values():
            self._by_path.setdefault(one.path, []).append(one)
        alternatives = dict.fromkeys(
            alternative for merged in self.expectations for one in merged for alternative in one.any_of
        )
        self._named = self._find_names({fold(one.document) for one in alternatives if one.document is not None})
        self._targets = {one: self._target(one) for one in alternatives}
        self._by_needle: dict[str, list[_Target]] = {}
        for target in self._targets.values():
            for needle in target.needles:
                self._by_needle.setdefault(needle, []).append(target)

    @property
    def passage_ids(self) -> list[str]:
        """The passage ids that labels name."""
        return sorted({one.passage for one in self._targets.values() if one.passage is not None and one.is_by_id})

    def know_passages(self, found: Mapping[str, str]) -> None:
        """`found`: passage id -> document id, for those of `passage_ids` that there are."""
        for target in self._targets.values():
            document = found.get(target.passage) if target.passage is not None and target.is_by_id else None
            if document is not None and target.admits(document):
                target.hits[document] = None
                target.n_passages += 1

    def open_documents(self) -> list[str] | None:
        """The documents in which a text is still looked for: ids; None for all, an empty list for none."""
        wanted: dict[str, None] = {}
        for target in self._targets.values():
            if not target.needles or target.hits:
                continue
            if target.documents is None:
                return None
            wanted.update(dict.fromkeys(one for one in target.documents if self.documents[one].indexed))
        return list(wanted)

    def read_passages(self, passages: Iterable[tuple[str, str, str]]) -> None:
        """(document id, text, passage id) of passages, unfolded. Once over all of them."""
        self._scan(passages, whole=False)

    def read_texts(self, texts: Iterable[tuple[str, str]]) -> None:
        """(document id, whole text), unfolded."""
        self._scan(((document, text, None) for document, text in texts), whole=True)

    def of(self, ordinal: int) -> list[ResolvedExpectation]:
        """Every merged expectation of the question at this place, judgements (grade <= 0) included."""
        return [self._expectation(index, one) for index, one in enumerate(self.expectations[ordinal])]

    def _expectation(self, index: int, expectation: Expectation) -> ResolvedExpectation:
        states = [(self._state(self._targets[one]), one) for one in expectation.any_of]
        state, alternative = max(states, key=lambda pair: _ORDER[pair[0]])
        documents: dict[str, None] = {}
        n_passages = 0
        for reached, one in states:
            target = self._targets[one]
            if reached is state:
                shown = target.texts if state is LabelState.CROSSES_BORDER else self._shown(target)
                documents.update(dict.fromkeys(shown))
                n_passages += target.n_passages
        return ResolvedExpectation(
            index=index,
            state=state,
            alternative=alternative,
            documents=tuple(sorted(documents, key=self._place))[:MOST_DOCUMENTS],
            n_passages=n_passages,
            elsewhere=self._targets[alternative].elsewhere,
        )

    def _shown(self, target: _Target) -> Iterable[str]:
        if target.looks_at_content:
            return target.hits or target.documents or ()
        return target.documents or ()

    def _state(self, target: _Target) -> LabelState:
        if target.documents is not None and not target.documents:
            return LabelState.NO_DOCUMENT
        if not target.looks_at_content:
            return self._reach(target.documents or ())
        if target.hits:
            return self._reach(target.hits)
        if target.texts:
            return LabelState.CROSSES_BORDER
        if target.documents is not None and not any(self.documents[one].indexed for one in target.documents):
            return LabelState.NOT_INDEXED
        return LabelState.NO_TEXT if target.needles else LabelState.NO_PASSAGE

    def _reach(self, documents: Iterable[str]) -> LabelState:
        indexed = [self.documents[one] for one in documents if self.documents[one].indexed]
        if not indexed:
            return LabelState.NOT_INDEXED
        return LabelState.RESOLVED if any(one.in_scope for one in indexed) else LabelState.OUTSIDE_SCOPE

    def _target(self, alternative: Alternative) -> _Target:
        content = tuple(dict.fromkeys(filter(None, map(fold, alternative.content_contains))))
        snippet = fold(alternative.text) if alternative.text else ""
        documents = self._documents_named(alternative)
        return _Target(
            alternative=alternative,
            documents=documents,
            content=content,
            snippet=snippet,
            passage=alternative.passage,
            wanted=frozenset(documents or ()),
        )

    def _documents_named(self, alternative: Alternative) -> tuple[str, ...] | None:
        """The documents a label names; None where it names none in particular."""
        if alternative.path is None and alternative.source is None and alternative.document is None:
            return None
        if alternative.path is not None:
            path = self._known.path(alternative.path, source=alternative.source)
            found = self._by_path.get(path, []) if path is not None else []
        elif alternative.document is not None:
            found = self._named.get(fold(alternative.document), [])
        else:
            found = list(self.documents.values())
        if alternative.source is not None:
            found = [one for one in found if one.source == alternative.source]
        if alternative.path is not None and alternative.document is not None:
            part = fold(alternative.document)
            found = [one for one in found if part in fold(one.path)]
        return tuple(one.id for one in found)

    def _find_names(self, parts: set[str]) -> dict[str, list[DocumentFact]]:
        """The documents whose path holds each part."""
        needles = Needles(part for part in parts if part)
        found: dict[str, list[DocumentFact]] = {}
        documents = list(self.documents.values())
        for place, part in needles.scan([fold(one.path) for one in documents]):
            found.setdefault(part, []).append(documents[place])
        return found

    def _scan(self, texts: Iterable[_Text], *, whole: bool) -> None:
        by_needle = self._by_needle
        if whole:
            # Only what no passage holds is looked for again.
            by_needle = {
                needle: open_
                for needle, targets in by_needle.items()
                if (open_ := [target for target in targets if not target.hits])
            }
        needles = Needles(by_needle)
        for batch in _batches(texts):
            folded = [fold(text) for _, text, _ in batch]
            for place, needle in needles.scan(folded):
                document, _, passage = batch[place]
                for target in by_needle[needle]:
                    if not target.admits(document):
                        target.elsewhere = min(filter(None, (target.elsewhere, document)), key=self._place)
                    elif _first_in(target.needles, folded[place]) == needle and target.holds(
                        folded[place], passage=passage
                    ):
                        (target.texts if whole else target.hits)[document] = None
                        target.n_passages += not whole

    def _place(self, document: str) -> tuple[str, str]:
        one = self.documents[document]
        return one.path, one.source


def _first_in(needles: Sequence[str], text: str) -> str | None:
    """So that a text with several of a label's needles counts once."""
    return needles[0] if len(needles) == 1 else next((one for one in needles if one in text), None)


# Characters scanned together: enough that the fixed cost does not count, few enough to stay small in memory.
_BATCH_CHARACTERS = 1_000_000


def _batches(texts: Iterable[_Text]) -> Iterable[Sequence[_Text]]:
    batch: list[_Text] = []
    size = 0
    for one in texts:
        batch.append(one)
        size += len(one[1])
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def label_of(alternative: Alternative) -> str:
    """The label as a person wrote it, in one line."""
    parts = []
    if alternative.path is not None:
        parts.append(alternative.path if alternative.source is None else f"{alternative.source}:{alternative.path}")
    elif alternative.source is not None:
        parts.append(f"source {alternative.source}")
    if alternative.document is not None:
        parts.append(f"document {alternative.document!r}")
    if alternative.content_contains:
        parts.append("text " + " or ".join(repr(content) for content in alternative.content_contains))
    if alternative.passage is not None:
        parts.append(f"passage {alternative.passage}")
    if alternative.text is not None and alternative.passage is None:
        parts.append(f"text {alternative.text!r}")
    return ", ".join(parts)
