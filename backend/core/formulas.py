"""Cells of a table that a spreadsheet would run as a formula, made harmless, and back again.

An apostrophe before the text is what spreadsheets themselves write for "this is text". `arm(disarm(x)) == x` for every
x: a text that begins with apostrophes and then a sign gets one more.
"""

import re

# = + - @ begin a formula, also in their full-width forms; a tab or line end before them is skipped by some programs.
_RISKY = re.compile("'*[\\s\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")


def disarm(cell: str) -> str:
    """The cell as text for a spreadsheet."""
    return f"'{cell}" if _RISKY.match(cell) else cell


def arm(cell: str) -> str:
    """What `disarm` was given."""
    return cell[1:] if cell.startswith("'") and _RISKY.match(cell) else cell
