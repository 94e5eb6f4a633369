"""Each format becomes text with its structure; what cannot is refused by name."""

import contextlib
import io
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

import docx
import openpyxl
import pptx
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen import canvas

from backend.core.errors import DocumentError, ErrorCode
from backend.core.types import ExtractedText
from backend.readers.building import ReadLimits
from backend.readers.reading import read


def sections(extracted: ExtractedText) -> list[tuple[str, tuple[str, ...], int | None]]:
    """(the line that a mark stands on, its headings, its page)"""
    return [(extracted.text[mark.start :].split("\n")[0], mark.heading, mark.page) for mark in extracted.marks]


def refusal(data: bytes, *, path: str, limits: ReadLimits | None = None) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(data, path=path, limits=limits or ReadLimits())
    return caught.value


def pdf_of(*pages: list[tuple[int, str]], password: str | None = None, owner: str | None = None) -> bytes:
    target = io.BytesIO()
    encrypt = StandardEncryption(password or "", ownerPassword=owner) if password or owner else None
    page = canvas.Canvas(target, encrypt=encrypt)
    for lines in pages:
        for height, text in lines:
            page.drawString(72, height, text)
        page.showPage()
    page.save()
    return target.getvalue()


def zip_of(parts: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as container:
        for name, content in parts.items():
            container.writestr(name, content)
    return target.getvalue()


def saved(document: object) -> bytes:
    target = io.BytesIO()
    document.save(target)  # type: ignore[attr-defined]
    return target.getvalue()


# Text


def test_text_keeps_its_words_and_loses_what_a_database_cannot_hold() -> None:
    data = b"one\x00 two\r\n\r\n\r\n\r\nthree  \rfour\x07"
    assert read(data, path="a.txt").text == "one two\n\nthree\nfour"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "naïve 漢字"),
        ("utf-8-sig", "naïve 漢字"),
        ("utf-16", "naïve 漢字"),
        ("utf-16-be", "plain words in two bytes each"),
        ("utf-32", "naïve 漢字"),
        ("cp1254", "Kullanıcı şifresini değiştirmek için ayarlar sayfasını açın."),
        ("cp1252", "Über größere Straßen können wir täglich fahren."),
        ("cp1252", "Le café était fermé à l’été, déjà."),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
        ("cp1250", "Zażółć gęślą jaźń, proszę państwa."),
        ("gb18030", "今天天气很好，我们去公园玩。"),
        ("euc_kr", "안녕하세요 오늘 날씨가 좋습니다"),
        ("cp1251", "Привет мир, как дела сегодня вечером"),
        ("shift_jis", "日本語の文章はこのように書かれています。今日は天気がいい。"),
    ],
)
def test_encodings_are_found_out(encoding: str, text: str) -> None:
    extracted = read(text.encode(encoding), path="a.txt")
    assert extracted.text == text
    assert extracted.warnings == ()


def test_a_few_bad_bytes_do_not_turn_utf8_into_another_language() -> None:
    data = "Grüße aus Köln, schöne Straße, äöüß äöüß. ".encode() + b"\xff end"
    extracted = read(data, path="a.txt")
    assert "Grüße aus Köln" in extracted.text
    assert extracted.warnings == ("1 bytes could not be read as utf-8",)


def test_code_and_unknown_extensions_are_text() -> None:
    source = b"def run():\n    return '<html>'\n"
    assert read(source, path="src/run.py").text == "def run():\n    return '<html>'"
    assert read(b"just words", path="LICENSE").reader == "text"


def test_restructured_text_has_sections() -> None:
    data = b"Guide\n=====\n\nHello.\n\nInstall\n-------\n\nDo it.\n\nUse\n-----\n\nSo.\n"
    assert sections(read(data, path="a.rst")) == [
        ("Guide", ("Guide",), None),
        ("Install", ("Guide", "Install"), None),
        ("Use", ("Guide", "Use"), None),
    ]


# Markdown


MARKDOWN = b"""---
title: Handbook
---
# Guide

Some **bold** and a [link](https://example.org) with `code`.

## Install

1. first
2. second
   - nested

| a | b |
|---|---|
| 1 | 2 |

```sh
# not a heading
```

<div>raw <b>html</b></div>
"""


def test_markdown_is_rendered_and_headings_make_a_path() -> None:
    extracted = read(MARKDOWN, path="a.md")
    assert extracted.text == (
        "title: Handbook\n\nGuide\n\nSome bold and a link with code.\n\nInstall\n\n"
        "1. first\n2. second\n  - nested\n\na | b\n1 | 2\n\n# not a heading\n\nraw html"
    )
    assert sections(extracted) == [
        ("Guide", ("Guide",), None),
        ("Install", ("Guide", "Install"), None),
    ]


# HTML


HTML = b"""<!doctype html><html><head><title>Page &ndash; Site</title><style>p{}</style></head><body>
<nav>Home</nav><script>var hidden = 1;</script><h1>Pricing</h1><p>One   <b>bo</b>ld<br>line.</p>
<div hidden>secret</div><p style="display: none">secret</p>
<table><tr><th>Plan</th><th>Price</th></tr><tr><td><p>Basic</p></td><td>5&nbsp;EUR</td></tr></table>
<h2>Notes</h2><ul><li>first<ul><li>inner</li></ul></li><li>second</li></ul><pre>a\n  b</pre></body></html>"""


def test_html_shows_what_a_reader_sees() -> None:
    extracted = read(HTML, path="a.html")
    assert extracted.text == (
        "Pricing\n\nOne bold\nline.\n\nPlan | Price\nBasic | 5\xa0EUR\n\n"
        "Notes\n\n- first\n  - inner\n- second\n\na\n  b"
    )
    assert sections(extracted) == [("Pricing", ("Pricing",), None), ("Notes", ("Pricing", "Notes"), None)]


def test_a_page_without_a_heading_is_headed_by_its_title() -> None:
    extracted = read(b"<html><head><title>About us</title></head><p>Words.</html>", path="a.html")
    assert sections(extracted) == [("About us", ("About us",), None)]


def test_a_layout_table_is_no_table() -> None:
    data = b"<table><tr><td><h2>Left</h2><p>words</p></td><td><table><tr><td>a<td>b</table></td></tr></table>"
    assert read(data, path="a.html").text == "Left\n\nwords\n\na | b"


def test_the_charset_that_a_page_declares_is_believed() -> None:
    page = '<html><meta charset="windows-1251"><p>Привет</p></html>'
    assert read(page.encode("cp1251"), path="a.html").text == "Привет"


# PDF


def test_pdf_pages_and_paragraphs_are_kept() -> None:
    lines = [(700, "First line"), (686, "second line"), (672, "third exam-"), (658, "ple"), (600, "New paragraph")]
    extracted = read(pdf_of(lines, [(700, "Page two")]), path="a.pdf")
    assert extracted.text == "First line\nsecond line\nthird exam-\nple\n\nNew paragraph\n\nPage two"
    assert sections(extracted) == [("First line", (), 1), ("Page two", (), 2)]


def test_a_pdf_outline_becomes_headings_where_the_page_prints_them() -> None:
    target = io.BytesIO()
    page = canvas.Canvas(target)
    for name, height in (("Preface", 700), ("Results", 500)):
        page.bookmarkPage(name)
        page.addOutlineEntry(name, name, level=0)
        page.drawString(72, height, name)
        page.drawString(72, height - 14, f"words of {name}")
    page.save()
    extracted = read(target.getvalue(), path="a.pdf")
    assert [(line, heading) for line, heading, _ in sections(extracted)] == [
        ("Preface", ("Preface",)),
        ("Results", ("Results",)),
    ]


def test_a_pdf_with_a_user_password_is_refused_and_with_an_owner_password_read() -> None:
    page = [(700, "secret words")]
    assert refusal(pdf_of(page, password="x"), path="a.pdf").code is ErrorCode.DOCUMENT_ENCRYPTED
    assert read(pdf_of(page, owner="x"), path="a.pdf").text == "secret words"


def test_a_scan_is_refused_and_pages_without_text_are_told() -> None:
    error = refusal(pdf_of([], []), path="a.pdf")
    assert error.code is ErrorCode.DOCUMENT_NO_TEXT
    assert "OCR" in error.message
    assert read(pdf_of([(700, "words")], []), path="a.pdf").warnings == (
        "1 of 2 pages have no text (scans or drawings)",
    )


def test_a_broken_pdf_is_unreadable() -> None:
    assert refusal(b"%PDF-1.4\nnothing of the kind", path="a.pdf").code is ErrorCode.DOCUMENT_UNREADABLE
    assert refusal(pdf_of([(700, "words")])[:200], path="a.pdf").code is ErrorCode.DOCUMENT_UNREADABLE


# Office


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("Report", level=0)
    document.add_heading("Findings", level=1)
    document.add_paragraph("All is well.")
    table = document.add_table(rows=2, cols=2)
    for row, column, text in ((0, 0, "a"), (0, 1, "b"), (1, 0, "c"), (1, 1, "d")):
        table.cell(row, column).text = text
    return saved(document)


def slides() -> bytes:
    deck = pptx.Presentation()
    for title in ("First", "Second"):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = f"points of {title}"
    slide.notes_slide.notes_text_frame.text = "say it slowly"
    return saved(deck)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Costs"
    for row in (["Item", "Price"], ["Apples", 2.0], [], ["Total", 1.5]):
        sheet.append(row)
    book.create_sheet("Empty")
    book.create_sheet("More").append(["x"])
    return saved(book)


def test_a_word_file_keeps_headings_and_rows() -> None:
    extracted = read(word_file(), path="a.docx")
    assert extracted.text == "Report\n\nFindings\n\nAll is well.\n\na | b\nc | d"
    assert [heading for _, heading, _ in sections(extracted)] == [("Report",), ("Findings",)]


def test_slides_are_pages_headed_by_their_titles() -> None:
    extracted = read(slides(), path="a.pptx")
    assert extracted.text == "First\n\npoints of First\n\nSecond\n\npoints of Second\n\nsay it slowly"
    assert sections(extracted) == [("First", ("First",), 1), ("Second", ("Second",), 2)]


def test_sheets_are_pages_and_empty_rows_part_tables() -> None:
    extracted = read(workbook(), path="a.xlsx")
    assert extracted.text == "Item | Price\nApples | 2\n\nTotal | 1.5\n\nx"
    assert sections(extracted) == [("Item | Price", ("Costs",), 1), ("x", ("More",), 3)]


@pytest.mark.parametrize(("make", "reader"), [(word_file, "docx"), (slides, "pptx"), (workbook, "xlsx")])
def test_a_wrong_extension_is_told_and_the_content_read(make: Callable[[], bytes], reader: str) -> None:
    extracted = read(make(), path="a.pdf")
    assert extracted.reader == reader
    assert extracted.warnings == (f"its name says pdf, its content is {reader}: read as such",)


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked() -> None:
    bomb = zip_of({"word/document.xml": b"\x00" * 20_000_000})
    assert len(bomb) < 50_000
    assert (
        refusal(bomb, path="a.docx", limits=ReadLimits(n_unpacked_bytes=10_000_000)).code
        is ErrorCode.DOCUMENT_TOO_LARGE
    )


def test_a_word_file_without_its_document_is_unreadable() -> None:
    assert refusal(zip_of({"word/styles.xml": b"<a/>"}), path="a.docx").code is ErrorCode.DOCUMENT_UNREADABLE
    assert refusal(b"PK\x03\x04 broken", path="a.docx").code is ErrorCode.DOCUMENT_UNREADABLE


def test_entities_in_a_word_file_open_no_file_and_grow_no_text() -> None:
    body = (
        b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        b"<w:body><w:p><w:r><w:t>before &x; after</w:t></w:r></w:p></w:body></w:document>"
    )
    try:
        text = read(zip_of({"word/document.xml": body}), path="a.docx").text
    except DocumentError as error:
        text = error.message
    assert "root:" not in text


# CSV and mail


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(delimiter: str) -> None:
    rows = [["name", "note"], ["Ann", '"two, parts; of it"'], ["Bo", "x"]]
    data = "\n".join(delimiter.join(row) for row in rows).encode()
    assert read(data, path="a.csv").text == "name | note\nAnn | two, parts; of it\nBo | x"


def mail(*, html: bool = False) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Grüße", "Ann <ann@example.org>", "bo@example.org"
    message.set_content("<p>Hello <b>you</b>" if html else "Hello you", subtype="html" if html else "plain")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="plan.pdf")
    return message.as_bytes()


@pytest.mark.parametrize("html", [False, True])
@pytest.mark.parametrize("path", ["a.eml", "a.txt"])
def test_mail_is_read_with_its_subject_and_names_what_it_left_out(path: str, html: bool) -> None:
    extracted = read(mail(html=html), path=path)
    assert extracted.text == "Grüße\n\nFrom: Ann <ann@example.org>\nTo: bo@example.org\n\nHello you"
    assert extracted.warnings == ("attachment not read: plan.pdf",)


# Refusals


@pytest.mark.parametrize(
    ("data", "path", "says"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a.png", "picture"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a.txt", "picture"),
        (b"{\\rtf1 words}", "a.rtf", "rich text"),
        (bytes(range(256)) * 10, "a.dat", "What is read: PDF"),
        (bytes(range(256)) * 10, "a.PDF", "is named .pdf, but its content is something else"),
        (zip_of({"a.txt": b"x"}), "a.zip", "archive"),
        (zip_of({"mimetype": b"application/epub+zip"}), "a.epub", "EPUB"),
        (zip_of({"mimetype": b"application/vnd.oasis.opendocument.text"}), "a.odt", "OpenDocument"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "Workbook".encode("utf-16-le"), "a.xls", "old Excel file (.xls)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "a.docx", "old Word file"),
    ],
)
def test_other_kinds_are_refused_by_name(data: bytes, path: str, says: str) -> None:
    error = refusal(data, path=path)
    assert error.code is ErrorCode.DOCUMENT_TYPE
    assert says in error.message


def test_an_office_file_with_a_password_is_encrypted() -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    assert refusal(data, path="a.docx").code is ErrorCode.DOCUMENT_ENCRYPTED


@pytest.mark.parametrize("path", ["a.txt", "a.pdf", "a.md", "a.html", "a.docx"])
@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_file_is_told_apart_from_a_broken_one(path: str, data: bytes) -> None:
    error = refusal(data, path=path)
    assert error.code is ErrorCode.DOCUMENT_NO_TEXT
    assert error.message == "The file is empty."


def test_limits_hold_for_pages_and_characters() -> None:
    pages = refusal(pdf_of([(1, "a")], [(1, "b")]), path="a.pdf", limits=ReadLimits(n_pages=1))
    characters = refusal(b"word " * 100, path="a.txt", limits=ReadLimits(n_characters=300))
    assert {pages.code, characters.code} == {ErrorCode.DOCUMENT_TOO_LARGE}


def test_lone_surrogates_never_reach_the_text() -> None:
    assert read(b"<p>a&#xD800;b</p>", path="a.html").text.encode()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "data",
    [b" " * 300_000 + b"x", b"\n \t" * 200_000 + b"x", b"<!-- -->" * 2_000 + b"x", b"A: b\n" * 2_000, b"=\n" * 100_000],
    ids=["spaces", "blank lines", "comments", "headers", "rules"],
)
@pytest.mark.parametrize("path", ["a.txt", "a.html", "a.csv", "a.rst"])
def test_repetition_takes_no_quadratic_time(data: bytes, path: str) -> None:
    started = time.process_time()
    with contextlib.suppress(DocumentError):
        read(data, path=path)
    assert time.process_time() - started < 5
