"""Bytes to characters: byte order marks, UTF-8, UTF-16 without a mark, a declared charset, then detection."""

import codecs
import re
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CANDIDATES = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r", "mac_roman",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp874",
]  # fmt: skip
_LATIN = frozenset({"cp1252", "cp1250", "cp1254", "cp1257", "mac_roman"})
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# Short texts are told apart by the letters that only some languages have. ğ ı of Windows-1254 are Icelandic (or
# Czech) letters elsewhere, which come with á í ó ú.
_TURKISH = re.compile(rb"[\xf0\xfd\xd0\xdd]")
_NOT_TURKISH = re.compile(rb"[\xe1\xed\xf3\xfa\xe6]")
# Central European letters where Windows-1252 has signs (or letters that Western words hardly have), within words.
_CENTRAL = re.compile(rb"[A-Za-z][\x9a\x9d-\x9f\xb3\xb9\xba\xbe\xbf\xf5\xfb]|[\x8a\x8d-\x8f\xa3\xaf][A-Za-z]")
_SAMPLE = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, *, declared: str | None = None) -> Decoded | None:
    """None where the bytes are no text. What could not be decoded is replaced by U+FFFD, with a warning."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _replaced(data[len(bom) :], encoding)
    wide = _wide(data)
    if wide is not None:
        return Decoded(text=wide.text, encoding=wide.encoding)
    if _is_binary(data):
        return None
    if declared and declared.lower().startswith(("iso-2022", "iso2022", "hz")):
        return _replaced(data, declared)
    try:
        return Decoded(text=data.decode("utf-8"), encoding="utf-8")
    except UnicodeDecodeError:
        pass
    loose = data.decode("utf-8", errors="replace")
    n_bad = loose.count("\ufffd")
    n_wide = sum(character > "\x7f" for character in loose[:_SAMPLE]) - loose[:_SAMPLE].count("\ufffd")
    if n_wide > 10 * n_bad:
        return _replaced(data, "utf-8")
    return _replaced(data, _usable(declared) or _detected(data))


def _replaced(data: bytes, encoding: str) -> Decoded:
    try:
        text = data.decode(encoding, errors="replace")
    except (LookupError, UnicodeError):
        encoding = "cp1252"
        text = data.decode(encoding, errors="replace")
    n_bad = text.count("\ufffd")
    warnings = (f"{n_bad} bytes could not be read as {encoding}",) if n_bad else ()
    return Decoded(text=text, encoding=encoding, warnings=warnings)


def _wide(data: bytes) -> Decoded | None:
    """UTF-16 without a mark: nearly every second byte of Latin text is NUL."""
    sample = data[:_SAMPLE]
    half = len(sample) // 2
    if half < 2 or len(data) % 2 or b"\x00" not in sample:
        return None
    n_even, n_odd = sample[0::2].count(0), sample[1::2].count(0)
    for encoding, n_zero, n_other in (("utf-16-le", n_odd, n_even), ("utf-16-be", n_even, n_odd)):
        if n_zero >= 0.4 * half and n_other <= 0.02 * half:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                return None
            controls = sum(character < "\t" for character in text[:_SAMPLE])
            return Decoded(text=text, encoding=encoding) if controls <= len(text[:_SAMPLE]) // 50 else None
    return None


def _is_binary(data: bytes) -> bool:
    sample = data[:_SAMPLE]
    n_controls = len(_CONTROLS.findall(sample))
    return n_controls > max(2, len(sample) // 100)


def _usable(declared: str | None) -> str | None:
    if not declared:
        return None
    try:
        name = codecs.lookup(declared.strip()).name
    except (LookupError, ValueError):
        return None
    # The web's rule: what calls itself Latin-1 is Windows-1252, and Latin-5 is Windows-1254.
    return {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "utf-8": None}.get(name, name)


def _detected(data: bytes) -> str:
    # Heavy to import, and needed by few documents.
    from charset_normalizer import from_bytes

    first = next((place for place, byte in enumerate(data) if byte > 0x7F), 0)
    start = max(0, first - 2_000)
    sample = data[start : start + _SAMPLE]
    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    name = best.encoding if best is not None else "cp1252"
    if name in _LATIN:
        if _TURKISH.search(sample) and not _NOT_TURKISH.search(sample):
            return "cp1254"
        if name in {"mac_roman", "cp1254"} or (name == "cp1250" and not _CENTRAL.search(sample)):
            return "cp1252"
    if name == "cp949":
        text = sample.decode(name, errors="replace")
        n_wide = sum(character > "\u1000" for character in text)
        n_hangul = sum("\uac00" <= character <= "\ud7a3" for character in text)
        return name if n_hangul > 0.7 * n_wide else "gb18030"
    return name
