"""Markdown to readable text: headings, lists, tables and code without their syntax."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.core.types import ExtractedText
from backend.readers import markup, plain
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, clean

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(?P<body>.*?)\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.S)
_BREAK = re.compile(r"<br\s*/?>", re.I)
# The parser takes seconds a megabyte on hostile input: what is no hand-written document is read as plain text.
_MOST_CHARACTERS = 5_000_000


def read(text: str, *, limits: ReadLimits = DEFAULT_LIMITS) -> ExtractedText:
    """Offsets are over the rendered words, not over the source: `**bold**` becomes `bold`, a link its label."""
    if len(text) > _MOST_CHARACTERS:
        return plain.read(text, reader="markdown", limits=limits)
    # Heavy to import, and not needed by every document.
    from markdown_it import MarkdownIt

    builder = TextBuilder(limits=limits)
    source = clean(text)
    front = _FRONT_MATTER.match(source)
    if front is not None:
        builder.block(front["body"])
        source = source[front.end() :]
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    _Walk(builder).run(parser.parse(source))
    return builder.build(reader="markdown")


class _Walk:
    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._lists: list[int | None] = []
        self._row: list[str] = []
        self._prefix = ""
        self._joined = False

    def run(self, tokens: Sequence["Token"]) -> None:
        heading = 0
        in_cell = False
        for token in tokens:
            match token.type:
                case "heading_open":
                    heading = int(token.tag[1:])
                case "bullet_list_open":
                    self._lists.append(None)
                case "ordered_list_open":
                    self._lists.append(int(token.attrGet("start") or 1))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                    self._joined = bool(self._lists)
                case "list_item_open":
                    self._item()
                case "table_open" | "table_close":
                    self._joined = False
                case "tr_open":
                    self._row = []
                case "tr_close":
                    self._write(" | ".join(cell for cell in self._row if cell))
                    self._joined = True
                case "th_open" | "td_open":
                    in_cell = True
                case "inline":
                    text = _inline(token.children or ())
                    if heading:
                        self._builder.heading(text, level=heading)
                        heading = 0
                    elif in_cell:
                        self._row.append(text.replace("\n", " "))
                        in_cell = False
                    else:
                        self._write(text)
                case "fence" | "code_block":
                    self._builder.block(token.content)
                case "html_block":
                    markup.write(token.content, self._builder)

    def _item(self) -> None:
        number = self._lists[-1]
        if number is not None:
            self._lists[-1] = number + 1
        depth = len(self._lists) - 1
        self._prefix = "  " * depth + (f"{number}. " if number is not None else "- ")

    def _write(self, text: str) -> None:
        text = self._prefix + text
        self._prefix = ""
        if self._joined:
            self._builder.line(text)
        else:
            self._builder.block(text)
        self._joined = bool(self._lists)


def _inline(children: Sequence["Token"]) -> str:
    parts: list[str] = []
    for child in children:
        match child.type:
            case "text" | "code_inline":
                parts.append(child.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(child.content)
            case "html_inline" if _BREAK.match(child.content):
                parts.append("\n")
    return "".join(parts)
