"""Where the reference data sets lie: beside the repository, never in it."""

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent


def shared_data(*parts: str) -> Path:
    """The path of a shared data file or folder; skips the calling test, with the reason, where it is missing."""
    base = Path(os.environ.get("TOUCHSTONE_SHARED", _ROOT.parent / "shared"))
    path = base.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"reference data is not here: {'/'.join(parts)} (set TOUCHSTONE_SHARED to its folder)")
    return path
