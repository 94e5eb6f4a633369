"""JSON with the places of its parts: Python's decoder tells them only when it fails."""

import json
import math
import re
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

_WHITE = re.compile(r"[ \t\n\r]*")
_LONGEST_NUMBER = 400  # digits; more cannot be a grade, and Python refuses to convert them


class BadJson(Exception):  # noqa: N818  internal: becomes a fault with its line
    """Text that is not JSON, with the offset at which it stops being so."""

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Doubled(dict[str, Any]):
    """An object in which fields come twice; `twice` names them. Python would silently keep the last ones."""

    twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    numbers = Counter(name for name, _ in pairs)
    doubled = Doubled(plain)
    doubled.twice = tuple(name for name, n in numbers.items() if n > 1)
    return doubled


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else math.inf


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def skip_white(text: str, position: int = 0) -> int:
    match = _WHITE.match(text, position)
    return match.end() if match else position


def read_value(text: str, position: int = 0) -> tuple[Any, int]:
    """The value that begins at `position` (white space before it is skipped) and the offset after it."""
    start = skip_white(text, position)
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise BadJson(error.msg, position=error.pos) from None
    except RecursionError:
        raise BadJson("nested too deeply", position=start) from None


def read_whole(text: str) -> Any:
    """The one value that `text` is; anything behind it is an error."""
    value, end = read_value(text)
    end = skip_white(text, end)
    if end != len(text):
        raise BadJson("more text behind the end of the value", position=end)
    return value


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a JSON text: an element of an array of cases, or a whole field of the top object."""

    field: str
    value: Any
    start: int
    is_element: bool


def walk(text: str, *, arrays: frozenset[str]) -> Iterator[Part]:
    """The elements of a top array, or the fields of a top object; those named in `arrays` come as an empty list
    and then element by element.

    Raises BadJson where the text stops being JSON; what came before has been yielded by then.
    """
    position = skip_white(text)
    if text[position : position + 1] == "[":
        position = yield from _elements(text, position, field="")
    else:
        position = yield from _fields(text, position, arrays=arrays)
    position = skip_white(text, position)
    if position != len(text):
        raise BadJson("more text behind the end of the value", position=position)


def _elements(text: str, position: int, *, field: str) -> Generator[Part, None, int]:
    position = skip_white(text, position + 1)
    if text[position : position + 1] == "]":
        return position + 1
    while True:
        start = skip_white(text, position)
        value, end = read_value(text, start)
        yield Part(field, value, start, is_element=True)
        position = skip_white(text, end)
        mark = text[position : position + 1]
        if mark == "]":
            return position + 1
        if mark != ",":
            raise BadJson("expected `,` or `]` after an element", position=position)
        position += 1


def _fields(text: str, position: int, *, arrays: frozenset[str]) -> Generator[Part, None, int]:
    position = skip_white(text, position + 1)
    if text[position : position + 1] == "}":
        return position + 1
    while True:
        name, end = read_value(text, position)
        if not isinstance(name, str):
            raise BadJson("a field name must be a text in double quotes", position=position)
        colon = skip_white(text, end)
        if text[colon : colon + 1] != ":":
            raise BadJson("expected `:` after a field name", position=colon)
        start = skip_white(text, colon + 1)
        if name in arrays and text[start : start + 1] == "[":
            yield Part(name, [], start, is_element=False)
            end = yield from _elements(text, start, field=name)
        else:
            value, end = read_value(text, start)
            yield Part(name, value, start, is_element=False)
        position = skip_white(text, end)
        mark = text[position : position + 1]
        if mark == "}":
            return position + 1
        if mark != ",":
            raise BadJson("expected `,` or `}` after a field", position=position)
        position = skip_white(text, position + 1)


class LineCounter:
    """The line of an offset, for offsets that are asked for in rising order (linear over the whole file)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1

    def line_at(self, position: int) -> int:
        if position < self._position:
            return self._text.count("\n", 0, position) + 1
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line
