"""What a format's recogniser looks at: the text of one file, or several files by name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.json_file import JsonFile, JsonLines, as_json
from backend.core.question_sets.notes import Notes


@dataclass(frozen=True)
class Content:
    """One file's text. What is derived from it is computed once, when a recogniser asks."""

    text: str
    filename: str = ""

    @cached_property
    def json(self) -> JsonFile | None:
        return as_json(self.text, filename=self.filename)

    @cached_property
    def sample(self) -> list[dict[str, Any]]:
        """The first objects of a JSON file; empty for everything else."""
        found = self.json.sample() if self.json else []
        return [one for one in found if isinstance(one, dict)]

    @property
    def top_fields(self) -> Mapping[str, Any]:
        """The fields of a JSON file that is one object; empty for everything else."""
        return {} if self.json is None or isinstance(self.json, JsonLines) else self.json.fields

    @cached_property
    def head(self) -> str:
        """The first line that says something."""
        for line in self.text[:100_000].split("\n"):
            if line.strip():
                return line.strip("\r")
        return ""

    def most_have(self, *names: str) -> bool:
        """Whether more than half of the first objects have all these fields."""
        having = sum(all(name in one for name in names) for one in self.sample)
        return having * 2 > len(self.sample)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Several files by path. Archives' own files (`__MACOSX`, hidden ones) and corpora are left out."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> "Bundle":
        return cls({name.replace("\\", "/"): data for name, data in files.items() if belongs(name)})

    def named(self, name: str) -> str | None:
        """The path of the file of that name, nearest to the root."""
        found = sorted((one for one in self.files if PurePosixPath(one).name == name), key=lambda one: one.count("/"))
        return found[0] if found else None


def belongs(name: str) -> bool:
    """Whether a file of a bundle can be part of a question set (corpora are documents, not questions)."""
    path = PurePosixPath(name.replace("\\", "/"))
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and not path.name.startswith("corpus.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of one file: how it is recognised and how it is read, lazily, into cases of the full form."""

    name: str
    title: str
    recognise: Callable[[Content], bool]
    read: Callable[[Content, Notes], Iterator[RawCase]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFormat:
    """The same for a set that is several files."""

    name: str
    title: str
    recognise: Callable[[Bundle], bool]
    read: Callable[[Bundle, Notes], Iterator[RawCase]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A kind of file that people bring and that cannot serve: what it is, why not, and what to do."""

    recognise: Callable[[Content], bool]
    sentence: str | Callable[[Content], str]
