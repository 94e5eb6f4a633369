"""The demo's documents and questions keep what the demo promises about them."""

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import mammoth
import pypdfium2
import pytest
from selectolax.lexbor import LexborHTMLParser

EXAMPLES = Path(__file__).parents[2] / "examples"
HANDBOOK = EXAMPLES / "handbook"
GENERATED = (".pdf", ".docx")


def documents() -> list[str]:
    found = (path.relative_to(HANDBOOK) for path in HANDBOOK.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))


def text_of(name: str) -> str:
    path = HANDBOOK / name
    if path.suffix == ".pdf":
        with pypdfium2.PdfDocument(path) as document:
            return "\n".join(page.get_textpage().get_text_range() for page in document)
    if path.suffix == ".docx":
        with path.open("rb") as file:
            return str(mammoth.extract_raw_text(file).value)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        body = LexborHTMLParser(text).body
        assert body is not None
        return body.text()
    return text


def folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def lines() -> list[dict[str, Any]]:
    raw = (HANDBOOK / ".touchstone" / "handbook.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in raw if line.strip() and not line.startswith("#")]


def cases() -> list[dict[str, Any]]:
    raw = (HANDBOOK / ".touchstone" / "handbook-content.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(raw)["cases"]
    return found


def answers() -> dict[str, list[str]]:
    """Per question the documents that answer it."""
    found = {line["question"]: line["expected"] for line in lines()}
    for case in cases():
        found[case["query"]] = [name for name in documents() if case["expect"]["document"] in name]
    return found


def test_the_handbook_has_the_promised_documents() -> None:
    names = documents()
    kinds = [Path(name).suffix for name in names]
    assert len(names) == 22
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        ".md": 6,
        ".html": 4,
        ".txt": 4,
        ".pdf": 4,
        ".docx": 4,
    }
    assert len([name for name in names if name.startswith("turkiye/")]) == 3


def test_every_document_is_long_enough_for_several_passages() -> None:
    lengths = {name: len(text_of(name).split()) for name in documents()}
    assert {name: n for name, n in lengths.items() if not 400 <= n <= 1500} == {}


@pytest.mark.parametrize("name", [name for name in documents() if name.endswith(".pdf")])
def test_every_pdf_has_several_pages(name: str) -> None:
    with pypdfium2.PdfDocument(HANDBOOK / name) as document:
        assert len(document) > 1


@pytest.mark.parametrize("name", [name for name in documents() if name.endswith(".docx")])
def test_every_word_file_has_headings_and_a_table(name: str) -> None:
    with (HANDBOOK / name).open("rb") as file:
        html = mammoth.convert_to_html(file).value
    assert html.count("<h1>") == 1
    assert html.count("<h2>") > 3
    assert html.count("<table>") == 1


def test_there_are_thirty_different_questions() -> None:
    assert (len(lines()), len(cases()), len(answers())) == (18, 12, 30)


def test_every_expected_path_is_a_document() -> None:
    paths = {path for line in lines() for path in line["expected"]}
    assert paths <= set(documents())


def test_every_case_names_exactly_one_document() -> None:
    named = {case["query"]: answers()[case["query"]] for case in cases()}
    assert {query: names for query, names in named.items() if len(names) != 1} == {}


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["query"]))
def test_every_expected_text_is_in_its_document(case: dict[str, Any]) -> None:
    (name,) = answers()[case["query"]]
    text = folded(text_of(name))
    missing = [piece for piece in case["expect"]["content_contains"] if folded(piece) not in text]
    assert missing == []


def test_every_document_answers_a_question() -> None:
    assert {path for names in answers().values() for path in names} == set(documents())


def test_most_documents_are_the_only_answer_of_a_question() -> None:
    only = {names[0] for names in answers().values() if len(names) == 1}
    assert len(only) >= 6


def test_every_code_that_is_asked_for_stands_in_its_answers() -> None:
    code = re.compile(r"\b(?:[A-Z]{1,4}|\d\d)-[0-9A-Z][0-9A-Z-]+\b")
    asked = {question: code.findall(question) for question in answers()}
    assert sum(bool(codes) for codes in asked.values()) >= 5
    for question, codes in asked.items():
        for name in answers()[question]:
            for found in codes:
                assert found in text_of(name), (question, name)


def test_turkish_is_asked_in_turkish() -> None:
    turkish = [q for q, names in answers().items() if all(name.startswith("turkiye/") for name in names)]
    assert len(turkish) >= 3
    assert set("ıİşğ") <= set("".join(text_of(name) for name in documents() if name.startswith("turkiye/")))


def test_generated_files_are_what_the_sources_say(tmp_path: Path) -> None:
    script = EXAMPLES / "build_handbook.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True)
    built = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert built == {name for name in documents() if name.endswith(GENERATED)}
    differing = [name for name in sorted(built) if (tmp_path / name).read_bytes() != (HANDBOOK / name).read_bytes()]
    assert differing == []


def test_the_templates_are_what_their_comments_say() -> None:
    raw = (EXAMPLES / "evals.example.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in raw if line.strip() and not line.startswith("#")]
    assert all(line["question"] and line["expected"] for line in asked)
    golden = json.loads((EXAMPLES / "golden.example.json").read_text(encoding="utf-8"))
    assert all(case["query"] and case["expect"] for case in golden["cases"])
