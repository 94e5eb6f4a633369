"""HTML to text: what a reader of the page sees, block by block, tables row by row."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backend.core.types import ExtractedText
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w.:-]+)""", re.I)
_DROPPED = frozenset(
    {
        "script", "style", "noscript", "template", "svg", "math", "nav", "head", "iframe", "object",
        "embed", "audio", "video", "canvas", "datalist", "-comment", "!doctype",
    }
)  # fmt: skip
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
        "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header",
        "hgroup", "hr", "html", "legend", "li", "main", "ol", "p", "pre", "section", "summary",
        "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "option", "h1", "h2", "h3",
        "h4", "h5", "h6",
    }
)  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LAYOUT_SIGNS = frozenset({"table", *_HEADINGS})
_HIDDEN = re.compile(r"display\s*:\s*none", re.I)
_SPACES = re.compile(r"[ \t\r\n\f]+")

# (opening?, tag, text of a text node or alt text)
_Event = tuple[bool, str, str]


def declared_charset(data: bytes) -> str | None:
    found = _CHARSET.search(data[:4096])
    return (found[1] or found[2]).decode("ascii") if found else None


def read(text: str, *, reader: str = "html", limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    builder = TextBuilder(limits=limits)
    write(text, builder)
    return builder.build(reader=reader)


def write(text: str, builder: TextBuilder) -> None:
    """Adds a page, or a fragment of one, to a text being built.

    A page without an <h1> is headed by its <title>. A table that holds tables or headings is layout: its cells
    are blocks, not the cells of a row.
    """
    # Heavy to import, and not needed by every document.
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    root = tree.root
    if root is None:
        return
    events = list(_events(root))
    title = tree.css_first("head > title")
    if title is not None and not any(tag == "h1" for _, tag, _ in events):
        builder.heading(title.text(), level=1)
    _Walk(builder, layout=_layout_tables(events)).run(events)


def _events(root: "LexborNode") -> Iterator[_Event]:
    """Opening and closing of every shown node, in order. Not recursive: pages nest as deep as they like."""
    node: LexborNode | None = root
    path: list[tuple[LexborNode, str]] = []
    while node is not None:
        tag = node.tag or ""
        descend = None
        if tag == "-text":
            yield True, tag, node.text_content or ""
        elif tag == "img":
            yield True, tag, node.attributes.get("alt") or ""
        elif tag not in _DROPPED and not _is_hidden(node):
            yield True, tag, ""
            descend = node.child
            if descend is None:
                yield False, tag, ""
        if descend is not None:
            path.append((node, tag))
            node = descend
            continue
        while node is not None and node.next is None:
            if not path:
                return
            node, closed = path.pop()
            yield False, closed, ""
        if not path:
            return
        node = node.next


def _is_hidden(node: "LexborNode") -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    style = attributes.get("style")
    return (
        "hidden" in attributes
        or attributes.get("role") == "navigation"
        or (style is not None and _HIDDEN.search(style) is not None)
    )


def _layout_tables(events: list[_Event]) -> frozenset[int]:
    """Places (in events) of the tables that hold a table or a heading."""
    layout: set[int] = set()
    open_tables: list[int] = []
    for place, (opening, tag, _) in enumerate(events):
        if opening and tag in _LAYOUT_SIGNS and open_tables:
            layout.add(open_tables[-1])
        if tag == "table":
            if opening:
                open_tables.append(place)
            elif open_tables:
                open_tables.pop()
    return frozenset(layout)


class _Walk:
    def __init__(self, builder: TextBuilder, *, layout: frozenset[int]) -> None:
        self._builder = builder
        self._layout = layout
        self._inline: list[str] = []
        self._raw: list[str] = []
        self._pre = 0
        self._tables: list[bool] = []  # is it a layout table?
        self._lists: list[int | None] = []  # the next number of an ordered list
        self._row: list[str] | None = None
        self._joined = False  # the next flushed block continues the block before it
        self._prefix = ""

    def run(self, events: list[_Event]) -> None:
        for place, (opening, tag, text) in enumerate(events):
            if tag in ("-text", "img"):
                self._text(text if tag == "-text" else f" {text} ")
            elif tag == "br":
                if opening:
                    self._raw.append("\n") if self._pre else self._inline.append("\n")
            elif tag in _BLOCKS:
                self._open(tag, place) if opening else self._close(tag)
        self._flush()

    def _text(self, text: str) -> None:
        if self._pre:
            self._raw.append(text)
        elif text:
            self._inline.append(_SPACES.sub(" ", text))

    @property
    def _in_row(self) -> bool:
        return self._row is not None and bool(self._tables) and not self._tables[-1]

    def _open(self, tag: str, place: int) -> None:
        if self._in_row and tag not in ("td", "th", "tr"):
            self._inline.append(" ")
            return
        self._flush()
        match tag:
            case "pre":
                self._pre += 1
            case "table":
                self._tables.append(place in self._layout)
                self._joined = False
            case "tr":
                self._row = []
            case "ul" | "ol":
                self._lists.append(1 if tag == "ol" else None)
            case "li":
                self._item()
            case "option":
                self._joined = True

    def _item(self) -> None:
        depth = max(0, len(self._lists) - 1)
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        self._prefix = "  " * depth + (f"{number}. " if number is not None else "- ")

    def _close(self, tag: str) -> None:
        if tag in ("td", "th") and self._in_row:
            cell = _SPACES.sub(" ", "".join(self._inline)).strip()
            self._inline.clear()
            if self._row is not None and cell:
                self._row.append(cell)
            return
        if tag == "tr" and self._row is not None:
            self._inline.clear() if self._in_row else self._flush()
            self._write(" | ".join(self._row), joined=self._joined)
            self._joined = bool(self._row) or self._joined
            self._row = None
            return
        if self._in_row and tag != "table":
            self._inline.append(" ")
            return
        level = _HEADINGS.get(tag)
        if level is not None:
            title = "".join(self._inline)
            self._inline.clear()
            self._builder.heading(title, level=level)
            self._joined = False
            return
        self._flush()
        match tag:
            case "pre":
                self._pre = max(0, self._pre - 1)
            case "table":
                if self._tables:
                    self._tables.pop()
                self._row = None
                self._joined = False
            case "ul" | "ol":
                if self._lists:
                    self._lists.pop()
                if not self._lists:
                    self._joined = False
                    self._prefix = ""

    def _flush(self) -> None:
        if self._raw:
            text = "".join(self._raw).strip("\n")
            self._raw.clear()
            self._write(text, joined=False)
        if not self._inline:
            return
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._inline).split("\n"))
        self._inline.clear()
        text = "\n".join(line for line in lines if line)
        if not text:
            return
        self._write(self._prefix + text, joined=self._joined)
        self._joined = self._joined or bool(self._lists)
        self._prefix = ""

    def _write(self, text: str, *, joined: bool) -> None:
        if joined:
            self._builder.line(text)
        else:
            self._builder.block(text)
