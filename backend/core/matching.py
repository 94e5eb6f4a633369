"""Whether a passage satisfies an expectation: paths and ids exactly, text folded.

A document path or passage id is compared exactly; where no known one is equal, folded, but only if that names
exactly one. Everything else (part of a name, content, snippets) is compared folded.
"""

from collections.abc import Iterable
from dataclasses import replace

from backend.core.folding import fold
from backend.core.types import Alternative, Expectation, Passage


def merge(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """The distinct expectations: those with equal alternatives become one, which keeps the highest grade.

    Alternatives are equal whatever their order, repeats, and the folding of their text; paths and ids count as
    written. Grades > 0 come first, each group in the order given, so an index below the number of positive grades
    is an expectation and one above is a judgement only.
    """
    best: dict[frozenset[object], Expectation] = {}
    for expectation in expectations:
        same = identity(expectation)
        kept = best.setdefault(same, expectation)
        if expectation.grade > kept.grade:
            best[same] = replace(kept, grade=expectation.grade)
    merged = best.values()
    return (*(one for one in merged if one.grade > 0), *(one for one in merged if one.grade <= 0))


def identity(expectation: Expectation) -> frozenset[object]:
    """Equal for two expectations that `merge` would make one, whatever their grades."""
    return frozenset(map(_normal, expectation.any_of))


class KnownPaths:
    """The documents of an index, and its passage ids if wanted: what a label that is not exact may mean.

    Built once per index and shared; the folded look-up is made at the first label that is not exact.
    """

    def __init__(self, documents: Iterable[tuple[str, str]], *, passages: Iterable[str] = ()) -> None:
        """`documents` are (source, path) pairs."""
        self._documents = frozenset(documents)
        self._paths = frozenset(path for _, path in self._documents)
        self._passages = frozenset(passages)
        self._folded_paths: dict[str, set[tuple[str, str]]] | None = None
        self._folded_passages: dict[str, set[str]] | None = None

    def path(self, path: str, *, source: str | None = None) -> str | None:
        """The path that a label names, in one source or in any; None if there is none, or several after folding."""
        if (path in self._paths) if source is None else ((source, path) in self._documents):
            return path
        if self._folded_paths is None:
            self._folded_paths = {}
            for document in self._documents:
                self._folded_paths.setdefault(fold(document[1]), set()).add(document)
        documents = self._folded_paths.get(fold(path), set())
        return _only({known for origin, known in documents if source is None or origin == source})

    def passage(self, passage: str) -> str | None:
        """The passage id that a label names; None if there is none, or several after folding."""
        if passage in self._passages:
            return passage
        if self._folded_passages is None:
            self._folded_passages = {}
            for known in self._passages:
                self._folded_passages.setdefault(fold(known), set()).add(known)
        return _only(self._folded_passages.get(fold(passage), set()))


class Targets:
    """A question's merged expectations, made ready: one per question, used for every mode and passage.

    Remembers what each passage satisfied, so one lives no longer than one question over one index.
    """

    __slots__ = ("_by_path", "_others", "_remembered", "expectations")

    def __init__(self, expectations: tuple[Expectation, ...], *, known: KnownPaths | None = None) -> None:
        """`expectations` as `merge` gives them. Without `known`, paths and ids are compared exactly alone."""
        self.expectations = expectations
        self._by_path: dict[str, list[int]] = {}
        self._others: list[tuple[int, _Ready]] = []
        self._remembered: dict[tuple[str, str], tuple[int, ...]] = {}
        for index, expectation in enumerate(expectations):
            for alternative in expectation.any_of:
                ready = _Ready(alternative, known=known)
                if ready.path is not None and ready.is_path_alone:
                    # Judgement files name hundreds of documents for a question: one look-up, not one test each.
                    self._by_path.setdefault(ready.path, []).append(index)
                else:
                    self._others.append((index, ready))

    def satisfied_by(self, passage: Passage) -> tuple[int, ...]:
        """The indices of the expectations that a passage satisfies, in order."""
        key = (passage.document_id, passage.id)
        remembered = self._remembered.get(key)
        if remembered is not None:
            return remembered
        indices = set(self._by_path.get(passage.path, ()))
        if self._others:
            folded = _Folded(passage)
            indices.update(index for index, ready in self._others if index not in indices and ready.holds(folded))
        self._remembered[key] = satisfied = tuple(sorted(indices))
        return satisfied


def satisfies(passage: Passage, alternative: Alternative, *, known: KnownPaths | None = None) -> bool:
    """Whether one passage satisfies one alternative. Many passages or alternatives: use `Targets`."""
    return _Ready(alternative, known=known).holds(_Folded(passage))


class _Folded:
    """A passage whose text and path are folded when first looked at."""

    __slots__ = ("_path", "_text", "passage")

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self._path: str | None = None
        self._text: str | None = None

    @property
    def path(self) -> str:
        if self._path is None:
            self._path = fold(self.passage.path)
        return self._path

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = fold(self.passage.text)
        return self._text


class _Ready:
    """An alternative with its text folded and its path and id resolved. Every part that is given must hold."""

    __slots__ = ("content", "document", "empty", "passage", "path", "snippet", "source")

    def __init__(self, alternative: Alternative, *, known: KnownPaths | None) -> None:
        self.source = alternative.source
        self.path = alternative.path
        self.passage = alternative.passage
        if known is not None:
            if self.path is not None:
                self.path = known.path(self.path, source=self.source) or self.path
            if self.passage is not None:
                self.passage = known.passage(self.passage) or self.passage
        self.document = _folded(alternative.document)
        self.content = tuple(filter(None, map(fold, alternative.content_contains)))
        self.snippet = _folded(alternative.text) or None
        # A label that folds to nothing would be found in every text: it is found in none.
        self.empty = (
            (self.path is None and self.source is None and self.document is None and not alternative.looks_at_content)
            or self.document == ""
            or (bool(alternative.content_contains) and not self.content)
            or (alternative.text is not None and self.snippet is None and self.passage is None)
        )

    @property
    def is_path_alone(self) -> bool:
        return (
            self.source is None
            and self.document is None
            and self.passage is None
            and self.snippet is None
            and not self.content
            and not self.empty
        )

    def holds(self, folded: _Folded) -> bool:
        passage = folded.passage
        if self.empty:
            return False
        if self.path is not None and self.path != passage.path:
            return False
        if self.source is not None and self.source != passage.source:
            return False
        if self.document is not None and self.document not in folded.path:
            return False
        if self.content and not any(content in folded.text for content in self.content):
            return False
        if self.passage is None and self.snippet is None:
            return True
        # The id dies when the document is ingested again; the snippet beside it keeps the label alive.
        return self.passage == passage.id or (self.snippet is not None and self.snippet in folded.text)


def _only(names: set[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _folded(text: str | None) -> str | None:
    return None if text is None else fold(text)


def _normal(alternative: Alternative) -> object:
    if alternative.document is None and not alternative.looks_at_content:
        return alternative.path, alternative.source
    return (
        alternative.path,
        alternative.source,
        _folded(alternative.document),
        frozenset(map(fold, alternative.content_contains)),
        alternative.passage,
        _folded(alternative.text),
    )
