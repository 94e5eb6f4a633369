"""The forty awkward documents: what each must become."""

import pytest

from backend.core.errors import DocumentError, ErrorCode
from backend.readers.reading import read
from tests.shared import shared_data

pytestmark = pytest.mark.shared

READ = [
    ("fake-memo.pdf", "pdf", "20,000 bottles of water"),
    ("pdf-with-ocr-text.pdf", "pdf", "progress of the Foundation"),
    ("r6-empty-password.pdf", "pdf", "pdf encryption test"),
    ("crazyones.pdf", "pdf", "The round pegs in the square holes."),
    ("crazyones.expected.txt", "text", "The round pegs in the square holes."),
    ("multilang.pdf", "pdf", "你好世界"),
    ("outlines-with-invalid-destinations.pdf", "pdf", "Hello, here is some text without a meaning."),
    ("Seige_of_Vicksburg_Sample_OCR.pdf", "pdf", "THE SIEGE OF VICKSBURG"),
    ("attachment.pdf", "pdf", "They push the human race forward"),
    ("issue-297.pdf", "pdf", "test example"),
    ("badlin1.pdf", "pdf", "Potato 17"),
    ("korean-text-with-tables.pdf", "pdf", "적립 제외 대상"),
    ("rotated-page-90.pdf", "pdf", "Rotated page fixture"),
    ("all-number-table.pdf", "pdf", "1600.01 15"),
    ("borderless_table.pdf", "pdf", "INVENTORY RECONCILIATION REPORT"),
    ("2022 Q3 AAPL.pdf", "pdf", "Cash and cash equivalents $ 27,502 $ 34,940"),
    ("docx-tables.docx", "docx", "Header Col 1 | Header Col 2\nLorem ipsum | A link example"),
    ("docx-hdrftr.docx", "docx", "Main document"),
    ("test_with_comment.docx", "docx", "Enabling Next-Gen LLM Applications via Multi-Agent Conversation"),
    ("fake-power-point.pptx", "pptx", "Adding a Bullet Slide"),
    ("fake-power-point-table.pptx", "pptx", "Red | Green | Blue\nPurple | Orange | Yellow"),
    ("more-than-1k-cells.xlsx", "xlsx", "x | x | x"),
    ("2023-half-year-analyses-by-segment.xlsx", "xlsx", "Revenue and results"),
    ("emoji.xlsx", "xlsx", "🤠"),
    ("example-10k-1p.html", "html", "Galaxy Gaming, Inc."),
    ("example-with-scripts.html", "html", "Russian Offensive Campaign Assessment, December 13"),
    ("codeblock.md", "markdown", "<h1>Hello, World!</h1>"),
    ("umlauts-non-utf8.md", "markdown", "können\n\näöüß"),
    ("simple-table.md", "markdown", "Juicy Apples | 1.99 | 739"),
    ("fake-text-utf-16.txt", "text", "Hamburgers are delicious"),
    ("fake-text-utf-16-le.txt", "text", "Hamburgers are delicious"),
    ("UDHR_first_article_all.txt", "text", "Bütün insanlar hür"),
    ("semicolon-delimited.csv", "csv", "consectetur | adipiscing | elit"),
    ("email-no-utf8.eml", "eml", "סלבה היקר"),
    ("spring-weather.html.ndjson", "text", "Are You Weather-Ready for the Spring?"),
]
REFUSED = [
    ("loremipsum-flat.pdf", ErrorCode.DOCUMENT_NO_TEXT),
    ("password.pdf", ErrorCode.DOCUMENT_ENCRYPTED),
    ("simple.doc", ErrorCode.DOCUMENT_TYPE),
    ("empty.xlsx", ErrorCode.DOCUMENT_NO_TEXT),
    ("empty.txt", ErrorCode.DOCUMENT_NO_TEXT),
]


@pytest.mark.parametrize(("name", "reader", "phrase"), READ)
def test_an_awkward_document_is_read(name: str, reader: str, phrase: str) -> None:
    extracted = read(shared_data("documents", name).read_bytes(), path=name)
    assert extracted.reader == reader
    assert phrase in extracted.text
    assert "\x00" not in extracted.text
    starts = [mark.start for mark in extracted.marks]
    assert starts == sorted(set(starts))
    assert all(start < len(extracted.text) for start in starts)


@pytest.mark.parametrize(("name", "code"), REFUSED)
def test_an_awkward_document_is_refused_with_its_reason(name: str, code: ErrorCode) -> None:
    with pytest.raises(DocumentError) as caught:
        read(shared_data("documents", name).read_bytes(), path=name)
    assert caught.value.code is code


def test_the_table_is_about_every_document_there_is() -> None:
    listed = {name for name, *_ in READ} | {name for name, _ in REFUSED}
    there = {path.name for path in shared_data("documents").iterdir()} - {"README.md", "manifest.json"}
    assert there == listed


def test_scripts_and_styles_are_not_indexed() -> None:
    text = read(shared_data("documents", "example-with-scripts.html").read_bytes(), path="a.html").text
    assert "function(" not in text
    assert "jQuery" not in text


def test_the_text_of_a_known_page_is_the_expected_one() -> None:
    expected = shared_data("documents", "crazyones.expected.txt").read_text("utf-8")
    found = read(shared_data("documents", "crazyones.pdf").read_bytes(), path="crazyones.pdf").text
    plain = expected.replace("ﬁ", "fi").replace("ﬀ", "ff").replace("ﬂ", "fl")
    assert found.replace("ﬁ", "fi").replace("ﬀ", "ff").split() == plain.split()
