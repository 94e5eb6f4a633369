"""Bytes or JSON values to rankings. Ids and question keys are opaque: nothing is folded, cut or decoded."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from backend.core.errors import ErrorCode
from backend.core.question_sets.decoding import decode
from backend.core.question_sets.json_text import BadJson, Doubled, read_whole
from backend.core.question_sets.notes import Notes, Place, refuse

MAX_ID = 1000
# Of a question: what is further down serves nobody, and a set of 100,000 questions must fit.
MAX_RESULTS = 1000

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
# Not str.split(): an id may hold any other kind of space.
_SPACE = re.compile(r"[ \t\v\f]+")
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_LISTS = ("ids", "results")
_ENTRY = ("id", "text", "document", "score")


class Format(StrEnum):
    TREC_RUN = "trec_run"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result. `document` where the engine says which document a passage is of, `text` where it gives it."""

    id: str
    document: str = ""
    text: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What came back for a question (its key, or its text), best first."""

    question: str
    hits: tuple[Hit, ...]
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRankings:
    """`n_tied`: results that share their score with another of the same question, left in file order. `n_repeated`:
    ids that came again for a question, kept at their first place. `n_cut`: results beyond the thousandth."""

    format: Format
    rankings: tuple[Ranking, ...]
    name: str = ""
    n_results: int = 0
    n_tied: int = 0
    n_repeated: int = 0
    n_cut: int = 0
    warnings: tuple[str, ...] = ()


def parse(data: bytes, *, format: str | None = None, max_bytes: int = 50 * 1024 * 1024) -> ParsedRankings:  # noqa: A002
    """The form is told by content (JSONL begins with `{`) unless named. Raises QuestionSetError with all faults (the
    first 100), EVAL_TOO_LARGE."""
    if len(data) > max_bytes:
        raise refuse(
            f"The file has {len(data):,} bytes; the limit is {max_bytes / 1024 / 1024:,.6g} MiB.",
            code=ErrorCode.EVAL_TOO_LARGE,
        )
    if format is not None and format not in set(Format):
        raise refuse(f"There is no form {format!r} of rankings. There are: {', '.join(Format)}.")
    text = decode(data)
    chosen = Format(format) if format else Format.JSONL if text.lstrip()[:1] == "{" else Format.TREC_RUN
    # Not splitlines(): it also breaks at characters that may be in an id.
    lines = ((number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), start=1))
    return _trec_run(lines) if chosen is Format.TREC_RUN else _jsonl(lines)


def parse_items(items: Sequence[Any], *, path: str = "rankings") -> ParsedRankings:
    """The same as JSONL, from values of a request; faults carry a field path."""
    root, notes = Place(path=path), Notes()
    return _finished(Format.JSONL, [_ranking(item, root / at, notes) for at, item in enumerate(items)], notes=notes)


def _trec_run(lines: Iterable[tuple[int, str]]) -> ParsedRankings:
    """`question Q0 document rank score tag`. By score, highest first; the rank column is not looked at."""
    notes = Notes()
    found: dict[str, list[Hit]] = {}
    tags: dict[str, None] = {}
    for number, line in lines:
        place = Place(line=number)
        columns = _SPACE.split(line.strip(" \t\v\f"))
        if columns == [""]:
            continue
        if len(columns) != 6:
            notes.unreadable(
                f"a TREC run has 6 columns (question Q0 document rank score tag), this line has {len(columns)}",
                place=place,
            )
            continue
        question, _, document, _, score, tag = columns
        if not _NUMBER.fullmatch(score) or not math.isfinite(float(score)):
            notes.unreadable(f"the score {score[:40]!r} is no finite number", place=place)
            continue
        if _is_usable(question, place, notes) and _is_usable(document, place, notes):
            found.setdefault(question, []).append(Hit(id=document, score=float(score)))
            tags[tag] = None
    if len(tags) > 1:
        shown = ", ".join(list(tags)[:3])
        notes.warn("tags", f"the file has {len(tags)} run tags ({shown}…), read as one run", place=Place())
    n_tied = 0
    rankings = []
    for question, hits in found.items():
        scores: dict[float, int] = {}
        for hit in hits:
            scores[hit.score or 0.0] = scores.get(hit.score or 0.0, 0) + 1
        n_tied += sum(n for n in scores.values() if n > 1)
        # Stable: equal scores stay in file order.
        rankings.append(Ranking(question=question, hits=tuple(sorted(hits, key=lambda hit: -(hit.score or 0.0)))))
    return _finished(Format.TREC_RUN, rankings, notes=notes, name=next(iter(tags), ""), n_tied=n_tied)


def _jsonl(lines: Iterable[tuple[int, str]]) -> ParsedRankings:
    """`{"question": key or text, "ids": [...]}` a line, in the order of the list; blank lines and `#` are skipped."""
    notes = Notes()
    rankings = []
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        place = Place(line=number)
        try:
            value = read_whole(line)
        except BadJson as error:
            notes.unreadable(f"not JSON: {error.message} at character {error.position + 1}", place=place)
            continue
        if isinstance(value, Doubled):
            notes.unreadable(f"the field {value.twice[0][:40]!r} comes twice", place=place)
            continue
        rankings.append(_ranking(value, place, notes))
    return _finished(Format.JSONL, rankings, notes=notes)


def _ranking(value: Any, place: Place, notes: Notes) -> Ranking | None:
    if not isinstance(value, dict):
        notes.unreadable('a ranking is an object such as {"question": "q1", "ids": ["a", "b"]}', place=place)
        return None
    unknown = [name for name in value if name not in {"question", *_LISTS}]
    if unknown:
        notes.unreadable(f"there is no field {unknown[0][:40]!r}; there are question, ids, results", place=place)
        return None
    question = _id(value.get("question"))
    if question is None or not question:
        notes.unreadable("`question` is the key or the text of a question", place=place / "question")
        return None
    given = [name for name in _LISTS if name in value]
    entries = value[given[0]] if len(given) == 1 else None
    if not isinstance(entries, list):
        notes.unreadable("one of `ids` and `results` is the list of what came back, best first", place=place / "ids")
        return None
    hits = [_hit(entry, place / given[0] / at, notes) for at, entry in enumerate(entries)]
    usable = _is_usable(question, place, notes, limit=100_000)
    return Ranking(question=question, hits=tuple(hit for hit in hits if hit), place=place) if usable else None


def _hit(entry: Any, place: Place, notes: Notes) -> Hit | None:
    fields: dict[str, Any] = entry if isinstance(entry, dict) else {"id": entry}
    unknown = [name for name in fields if name not in _ENTRY]
    key, document, text, score = (fields.get(name) for name in ("id", "document", "text", "score"))
    identity = _id(key)
    document_id = "" if document is None else _id(document)
    if unknown:
        notes.unreadable(f"there is no field {unknown[0][:40]!r}; there are {', '.join(_ENTRY)}", place=place)
    elif identity is None or document_id is None or not isinstance(text, str | None):
        notes.unreadable("a result is an id, or an object with id, text, document, score", place=place)
    elif score is not None and (
        isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score)
    ):
        notes.unreadable("a score is a finite number", place=place / "score")
    elif (
        _is_usable(identity, place, notes)
        and (not document_id or _is_usable(document_id, place, notes))
        and (not text or _is_usable(text, place, notes, limit=None))
    ):
        return Hit(id=identity, document=document_id, text=text or "", score=None if score is None else float(score))
    return None


def _id(value: Any) -> str | None:
    """Ids are texts; whole numbers are taken for their digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _is_usable(text: str, place: Place, notes: Notes, *, limit: int | None = MAX_ID) -> bool:
    if not text:
        notes.unreadable("an id is empty", place=place)
    elif limit is not None and len(text) > limit:
        notes.unreadable(f"an id has {len(text):,} characters; {limit:,} is the limit", place=place)
    elif _UNUSABLE.search(text):
        notes.unreadable("a text holds characters that no text can have", place=place)
    else:
        return True
    return False


def _finished(
    form: Format, rankings: Sequence[Ranking | None], *, notes: Notes, name: str = "", n_tied: int = 0
) -> ParsedRankings:
    notes.raise_faults()
    n_results = n_repeated = n_cut = 0
    kept = []
    for ranking in rankings:
        if ranking is None:
            continue
        first: dict[str, Hit] = {}
        for hit in ranking.hits:
            first.setdefault(hit.id, hit)
        once = tuple(first.values())
        n_results += len(ranking.hits)
        n_repeated += len(ranking.hits) - len(once)
        n_cut += max(0, len(once) - MAX_RESULTS)
        kept.append(Ranking(question=ranking.question, hits=once[:MAX_RESULTS], place=ranking.place))
    if not kept:
        raise refuse("The file holds no ranking.", code=ErrorCode.EVAL_SET_EMPTY)
    return ParsedRankings(
        format=form,
        rankings=tuple(kept),
        name=name,
        n_results=n_results,
        n_tied=n_tied,
        n_repeated=n_repeated,
        n_cut=n_cut,
        warnings=notes.warnings,
    )
