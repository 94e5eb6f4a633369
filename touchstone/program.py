"""How this program is called from the shell that it was started in."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def name() -> str:
    """`touchstone` where PATH leads to this very program, else the path to it, ready to be pasted."""
    script = Path(sys.executable).parent / "touchstone"
    found = shutil.which("touchstone")
    if not script.is_file() or (found is not None and Path(found).absolute() == script.absolute()):
        return "touchstone"
    relative = os.path.relpath(script)
    if relative == script.name:
        return f"./{relative}"
    return shlex.quote(str(script) if relative.startswith("..") else relative)
