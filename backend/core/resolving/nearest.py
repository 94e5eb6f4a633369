"""The names that a label may have meant."""

import difflib
from collections.abc import Iterable
from urllib.parse import unquote

from backend.core.folding import fold

MOST_NAMES = 3
# Comparing spellings costs some milliseconds a label; look-ups, which find most slips, cost none.
MOST_COMPARED = 200
_SIMILAR = 0.6


class Names:
    """The document paths of a corpus, for finding the nearest. Each (source, path) is shown as `path`, or as
    `source:path` where the label asks for another source."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        self._sources: dict[str, list[str]] = {}
        self._by_fold: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_stem: dict[str, list[str]] = {}
        for source, path in sorted(documents):
            sources = self._sources.setdefault(path, [])
            sources.append(source)
            if len(sources) > 1:
                continue
            folded = fold(path)
            self._by_fold.setdefault(folded, []).append(path)
            self._by_name.setdefault(_name(folded), []).append(path)
            self._by_stem.setdefault(_stem(folded), []).append(path)
        self._n_compared = 0
        self._told: dict[tuple[str, str | None], tuple[str, ...]] = {}

    def of(self, label: str, *, source: str | None = None) -> tuple[str, ...]:
        """At most MOST_NAMES, the likeliest first.

        The same path in another source; the path below a prefix (`/srv/handbook/policies/x.pdf` means
        `policies/x.pdf`); the same file name elsewhere, however cased; another ending; a similar spelling.
        """
        key = (label, source)
        if key not in self._told:
            found = dict.fromkeys(self._candidates(label))
            self._told[key] = tuple(self._show(path, source) for path in list(found)[:MOST_NAMES])
        return self._told[key]

    def _candidates(self, label: str) -> Iterable[str]:
        if label in self._sources:
            yield label
        folded = fold(unquote(label).replace("\\", "/"))
        parts = [part for part in folded.split("/") if part not in {"", ".", "file:"}]
        if not parts:
            return
        for start in range(len(parts)):
            yield from self._by_fold.get("/".join(parts[start:]), ())
        same_name = self._by_name.get(parts[-1], [])
        # Those that share most of their folders with the label come first.
        yield from sorted(same_name, key=lambda path: -len(set(fold(path).split("/")).intersection(parts)))
        yield from self._by_stem.get(_stem(folded), ())
        if not same_name and self._n_compared < MOST_COMPARED:
            self._n_compared += 1
            # Stems, since every `.pdf` is half like every other.
            for stem in difflib.get_close_matches(_stem(folded), self._by_stem, n=MOST_NAMES, cutoff=_SIMILAR):
                yield from self._by_stem[stem]

    def _show(self, path: str, source: str | None) -> str:
        sources = self._sources[path]
        return path if source is None or source in sources else f"{sources[0]}:{path}"


def _name(folded: str) -> str:
    return folded.rsplit("/", 1)[-1]


def _stem(folded: str) -> str:
    name = _name(folded)
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and len(ending) <= 5 else name
