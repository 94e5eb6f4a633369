"""All formats in one place, in the order in which they are tried: the particular before the general."""

from collections.abc import Sequence
from typing import TypeVar

from backend.core.question_sets.content import Bundle, BundleFormat, Content, Format
from backend.core.question_sets.format_autorag import AUTORAG
from backend.core.question_sets.format_collections import BEIR, TREC
from backend.core.question_sets.format_csv import CSV
from backend.core.question_sets.format_json import CASES, JSONL
from backend.core.question_sets.format_judgements import OPENSEARCH, RATINGS_CSV, RETRIEVAL_EVAL, RRE
from backend.core.question_sets.format_published import (
    CONTEXTUAL,
    COOKBOOK,
    COOKBOOK_CSV,
    KG_RAG,
    LLAMA_INDEX,
)
from backend.core.question_sets.format_yaml import PHRASES
from backend.core.question_sets.notes import refuse
from backend.core.question_sets.refusals import REFUSALS

FILE_FORMATS: tuple[Format, ...] = (
    COOKBOOK,
    COOKBOOK_CSV,
    CONTEXTUAL,
    AUTORAG,
    KG_RAG,
    LLAMA_INDEX,
    OPENSEARCH,
    RATINGS_CSV,
    RRE,
    RETRIEVAL_EVAL,
    PHRASES,
)
GENERAL_FORMATS: tuple[Format, ...] = (JSONL, CASES, CSV)
BUNDLE_FORMATS: tuple[BundleFormat, ...] = (BEIR, TREC)

_Any = TypeVar("_Any", Format, BundleFormat)
_OTHER_NAMES = {"json": "cases", "ndjson": "jsonl", "passages": "jsonl", "full": "jsonl"}


def format_names() -> tuple[str, ...]:
    """The names that `format=` takes."""
    files = (*GENERAL_FORMATS, *FILE_FORMATS)
    return (*(one.name for one in files), *(one.name for one in BUNDLE_FORMATS))


def find_format(content: Content, *, name: str | None) -> Format:
    """The format named, else the first that recognises the file. Raises QuestionSetError (EVAL_FILE)."""
    formats = (*FILE_FORMATS, *GENERAL_FORMATS)
    if name is not None:
        return _named(name, formats)
    if not content.text.strip():
        return JSONL  # reads nothing, so the set is told to be empty
    for one in FILE_FORMATS:
        if one.recognise(content):
            return one
    for refusal in REFUSALS:
        if refusal.recognise(content):
            raise refuse(refusal.sentence if isinstance(refusal.sentence, str) else refusal.sentence(content))
    for one in GENERAL_FORMATS:
        if one.recognise(content):
            return one
    titles = "; ".join(one.title for one in formats)
    begin = content.head[:60]
    raise refuse(f"The file is in no format that is known (it begins with {begin!r}). These are read: {titles}.")


def find_bundle_format(bundle: Bundle, *, name: str | None) -> BundleFormat:
    """The same for a set that is several files."""
    if name is not None:
        return _named(name, BUNDLE_FORMATS)
    for one in BUNDLE_FORMATS:
        if one.recognise(bundle):
            return one
    names = ", ".join(sorted(bundle.files)[:8]) or "none"
    raise refuse(
        "These files are no question set that is known: send `queries.jsonl` and `qrels/*.tsv` (BEIR), "
        f"or TREC topics and qrels. Files found: {names}."
    )


def _named(name: str, formats: Sequence[_Any]) -> _Any:
    wanted = _OTHER_NAMES.get(name.lower(), name.lower())
    for one in formats:
        if one.name == wanted:
            return one
    if wanted in format_names():
        raise refuse(f"The format `{name}` does not fit what was sent (one file, or several files).")
    raise refuse(f"`{name[:40]}` is not a format. There are: {', '.join(format_names())}.")
