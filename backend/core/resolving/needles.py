"""Many texts looked for in many others at once.

Each needle is entered in a table under the hash of its first 16, 8 or 4 characters; the hashes of all places of the
haystack are computed together, and only where the table has one is the text itself compared. The cost is that of one
pass over the haystack, whatever the number of needles.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

_LENGTHS: Final = (16, 8, 4)
_FACTORS: Final = tuple(np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB8))
_TABLE_BITS: Final = 20
_SHIFT: Final = np.uint64(64 - _TABLE_BITS)
_MIX: Final = np.uint64(0xFF51AFD7ED558CCD)
# In no text: PostgreSQL keeps none, and folded labels hold none. Keeps a match from reaching over into the next text.
_BETWEEN: Final = "\x00"

_Hashes = npt.NDArray[np.uint64]


class Needles:
    """Texts to look for, compared as they are (fold them before)."""

    def __init__(self, needles: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(needle for needle in needles if needle and _BETWEEN not in needle))
        self._short = [needle for needle in distinct if len(needle) < _LENGTHS[-1]]
        by_length: dict[int, list[str]] = {}
        for needle in distinct:
            length = next((n for n in _LENGTHS if n <= len(needle)), None)
            if length is not None:
                by_length.setdefault(length, []).append(needle)
        self._tables = {length: _table(found, length) for length, found in by_length.items()}

    def scan(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        """(place in `texts`, needle) for every text that holds a needle, each pair once."""
        if not self._tables and not self._short:
            return
        joined = _BETWEEN.join(texts)
        ends = list(accumulate(len(text) + 1 for text in texts))
        told: set[tuple[int, str]] = set()
        if self._tables:
            hashes = _hashes(joined, shortest=min(self._tables), longest=max(self._tables))
            for length, (table, heads) in self._tables.items():
                for start in np.flatnonzero(table[_slots(hashes[length])]).tolist():
                    for needle in heads.get(joined[start : start + length], ()):
                        if joined.startswith(needle, start):
                            found = (bisect_right(ends, start), needle)
                            if found not in told:
                                told.add(found)
                                yield found
        for needle in self._short:
            for place, text in enumerate(texts):
                if needle in text:
                    yield place, needle


def _table(needles: Sequence[str], length: int) -> tuple[npt.NDArray[np.bool_], dict[str, list[str]]]:
    heads: dict[str, list[str]] = {}
    for needle in needles:
        heads.setdefault(needle[:length], []).append(needle)
    table = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)
    joined = "".join(heads)
    table[_slots(_hashes(joined, shortest=length, longest=length)[length][::length])] = True
    return table, heads


def _hashes(text: str, *, shortest: int, longest: int) -> dict[int, _Hashes]:
    """By length: the hash of the characters from each place on. Each length is made of two of half of it."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    found: dict[int, _Hashes] = {}
    length = 1
    for factor in _FACTORS:
        if len(codes) <= length:
            codes = codes[:0]
        else:
            codes = codes[:-length] * factor + codes[length:]
            codes = (codes ^ (codes >> np.uint64(29))) * _MIX
        length *= 2
        if shortest <= length <= longest:
            found[length] = codes
        if length >= longest:
            break
    return found


def _slots(hashes: _Hashes) -> npt.NDArray[np.intp]:
    return (hashes >> _SHIFT).astype(np.intp)
