"""Plain text, code, logs and reStructuredText: the words as they stand."""

import re

from backend.core.types import ExtractedText
from backend.readers.building import DEFAULT_LIMITS, ReadLimits, TextBuilder, clean, tidy

_UNDERLINED = re.compile(r"(?:^|\n\n)(?P<title>[^\s][^\n]*)\n(?P<line>([=\-~^\"'`#*+.:_])\3{2,})(?=\n|$)")


def read(
    text: str, *, sections: bool = False, reader: str = "text", limits: ReadLimits = DEFAULT_LIMITS
) -> ExtractedText:
    """`sections` takes lines underlined with punctuation for headings (reStructuredText)."""
    builder = TextBuilder(limits=limits)
    if not sections:
        builder.block(text)
        return builder.build(reader=reader)
    source = tidy(clean(text))
    levels: list[str] = []
    position = 0
    for found in _UNDERLINED.finditer(source):
        title, line = found["title"].strip(), found["line"]
        if len(line) < len(title):
            continue
        builder.block(source[position : found.start("title")])
        if line[0] not in levels:
            levels.append(line[0])
        builder.heading(title, level=levels.index(line[0]) + 1)
        position = found.end()
    builder.block(source[position:])
    return builder.build(reader=reader)
