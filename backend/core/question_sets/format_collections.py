"""Test collections of several files: BEIR folders, TREC topics with qrels."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from backend.core.errors import QuestionSetError
from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.content import Bundle, BundleFormat
from backend.core.question_sets.decoding import decode
from backend.core.question_sets.grouping import Groups, number_or_text
from backend.core.question_sets.json_file import JsonLines, numbered_lines
from backend.core.question_sets.json_text import LineCounter
from backend.core.question_sets.notes import Notes, Place, refuse

_SPLITS = ("test", "dev", "train")
_TREC_ROW = re.compile(r"\S+\s+\S+\s+\S+\s+[-+]?\d+(\.\d+)?\s*$")
_TOPIC = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*(.*?)\s*(?=<|\Z)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One row of qrels."""

    query: str
    document: str
    grade: Any
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    id: Any
    text: Any
    place: Place


def looks_like_qrels(text: str) -> bool:
    """Whether the first rows are `question, iteration, document, grade`, or three tab-separated columns with a
    header that says so."""
    rows = [line for _, line in zip(range(30), _rows(text), strict=False)]
    if not rows:
        return False
    return _is_beir_header(rows[0][1]) or all(_TREC_ROW.match(line) for _, line in rows)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(text):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip("\r")


def _is_beir_header(line: str) -> bool:
    cells = [cell.strip().lower() for cell in line.split("\t")]
    return len(cells) == 3 and cells[0] in {"query-id", "query_id", "qid"}


def read_qrels(text: str, *, file: str, notes: Notes) -> Iterator[Judgement]:
    """The rows of qrels in TREC's four columns or BEIR's three; lines that begin with `#` are skipped."""
    for i, (number, line) in enumerate(_rows(text)):
        place = Place(line=number, file=file)
        if i == 0 and _is_beir_header(line):
            continue
        cells = line.split("\t") if line.count("\t") in {2, 3} else line.split()
        if len(cells) == 4:
            query, _, document, grade = cells
        elif len(cells) == 3:
            query, document, grade = cells
        else:
            notes.unreadable("a row of qrels has a question id, a document id and a grade", place=place)
            continue
        yield Judgement(query=query.strip(), document=document.strip(), grade=number_or_text(grade), place=place)


def _join(topics: Iterator[Topic], judgements: Iterator[Judgement], *, notes: Notes) -> Iterator[RawCase]:
    """One case for each question that has judgements. The others belong to other splits: told, not read."""
    groups = Groups(opaque=True)
    found: dict[Any, Topic] = {}
    doubled: list[Topic] = []
    for topic in topics:
        if topic.id in found:
            doubled.append(topic)
        found.setdefault(topic.id, topic)
    missing: set[str] = set()
    judged: set[str] = set()
    for row in judgements:
        known = found.get(row.query)
        if known is None:
            if row.query not in missing:
                missing.add(row.query)
                notes.invalid(f"there is no question with the id `{row.query[:80]}`", place=row.place)
            # The set is refused; the rest of the row is checked all the same.
            known = Topic(id=None, text="-", place=row.place)
        else:
            judged.add(row.query)
        group = groups.get(row.query, place=known.place, fields={"id": known.id, "question": known.text})
        group.add({"path": row.document, "grade": row.grade}, place=row.place)
    yield from groups.cases()
    for topic in doubled:
        if topic.id in judged:  # told by the id that comes twice
            yield RawCase(value={"id": topic.id, "question": topic.text, "expect": "-"}, place=topic.place)
    n_left = len(found) - len(judged)
    if n_left:
        notes.warn("no judgement", f"{n_left} questions have no judgement and were left out", place=Place())


def _is_beir(bundle: Bundle) -> bool:
    return bundle.named("queries.jsonl") is not None and bool(_qrels_of(bundle))


def _qrels_of(bundle: Bundle) -> dict[str, str]:
    """The qrels files by split; a lone `qrels.tsv` counts as the test split."""
    found: dict[str, str] = {}
    for name in sorted(bundle.files):
        path = PurePosixPath(name)
        if path.suffix == ".tsv" and (path.parent.name == "qrels" or path.stem == "qrels"):
            found.setdefault("test" if path.stem == "qrels" else path.stem, name)
    return found


def _read_beir(bundle: Bundle, notes: Notes) -> Iterator[RawCase]:
    queries, splits = bundle.named("queries.jsonl"), _qrels_of(bundle)
    if queries is None or not splits:
        raise refuse("A BEIR set has `queries.jsonl` and `qrels/test.tsv` (or another split).")
    split = next((one for one in _SPLITS if one in splits), sorted(splits)[0])
    if len(splits) > 1:
        others = ", ".join(sorted(set(splits) - {split})[:8])
        notes.warn("split", f"the split `{split}` was read; also there: {others}", place=Place())
    text = _decode(bundle.files[splits[split]], splits[split])
    yield from _join(
        _beir_topics(_decode(bundle.files[queries], queries), file=queries, notes=notes),
        read_qrels(text, file=splits[split], notes=notes),
        notes=notes,
    )


def _beir_topics(text: str, *, file: str, notes: Notes) -> Iterator[Topic]:
    for raw in JsonLines(text).items(notes):
        place = replace(raw.place, file=file)
        if isinstance(raw.value, Mapping) and isinstance(raw.value.get("_id"), str):
            yield Topic(id=raw.value["_id"], text=raw.value.get("text"), place=place)
        else:
            notes.invalid("a question of BEIR is an object with `_id` and `text`", place=place)


def _trec_parts(bundle: Bundle) -> tuple[str, str] | None:
    """The names of topics and qrels, told apart by content; None when these are not two such files."""
    if len(bundle.files) != 2:
        return None
    qrels = []
    for name, data in sorted(bundle.files.items()):
        if looks_like_qrels(data[:4000].decode("utf-8", errors="replace").rpartition("\n")[0] or "-"):
            qrels.append(name)
    if len(qrels) != 1:
        return None
    return next(name for name in bundle.files if name != qrels[0]), qrels[0]


def _read_trec(bundle: Bundle, notes: Notes) -> Iterator[RawCase]:
    parts = _trec_parts(bundle)
    if parts is None:
        raise refuse("A TREC set is two files: topics, and qrels (`question 0 document grade` a line).")
    topics, qrels = parts
    yield from _join(
        _trec_topics(_decode(bundle.files[topics], topics), file=topics, notes=notes),
        read_qrels(_decode(bundle.files[qrels], qrels), file=qrels, notes=notes),
        notes=notes,
    )


def _trec_topics(text: str, *, file: str, notes: Notes) -> Iterator[Topic]:
    """TREC's tagged topics (the title is the question), else lines of id, tab, question."""
    if not re.search(r"<top>", text, re.IGNORECASE):
        for number, line in _rows(text):
            place = Place(line=number, file=file)
            key, tab, question = line.partition("\t")
            if tab:
                yield Topic(id=key.strip(), text=question.strip(), place=place)
            else:
                notes.unreadable("a topic is `id`, a tab and the question, or a <top> block", place=place)
        return
    lines = LineCounter(text)
    for match in _TOPIC.finditer(text):
        place = Place(line=lines.line_at(match.start()), file=file)
        number_of, title = _NUMBER.search(match.group(1)), _TITLE.search(match.group(1))
        if number_of is None or title is None:
            notes.invalid("a topic needs <num> and <title>", place=place)
            continue
        yield Topic(id=number_of.group(1), text=" ".join(title.group(1).split()), place=place)


def _decode(data: bytes, name: str) -> str:
    try:
        return decode(data)
    except QuestionSetError as error:
        raise refuse(f"{name}: {error.message}") from None


BEIR = BundleFormat(name="beir", title="BEIR (`queries.jsonl`, `qrels/*.tsv`)", recognise=_is_beir, read=_read_beir)
TREC = BundleFormat(
    name="trec",
    title="TREC topics and qrels",
    recognise=lambda bundle: _trec_parts(bundle) is not None,
    read=_read_trec,
)
