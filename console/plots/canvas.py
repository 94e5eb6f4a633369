"""Pictures drawn: SVG or PNG bytes, the same for the same numbers.

The plotting library is imported when the first picture is drawn, and never its global state (`pyplot`): pages are
answered by several threads.
"""

import io
import os
import re
import threading
from functools import cache
from typing import Any

from django.conf import settings

from console.plots.picture import THEMES, Picture

FORMS = {"svg": "image/svg+xml", "png": "image/png"}
_FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_PNG_DPI = 192
_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "touchstone",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    # A dollar in a name is no formula.
    "text.parse_math": False,
}
_import_lock = threading.Lock()
_STYLE = re.compile(r' style="([^"]*)"')
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"')


@cache
def _figure_class() -> Any:
    with _import_lock:
        # The library keeps a list of the machine's fonts there; without it, each process makes its own, in seconds.
        os.environ.setdefault("MPLCONFIGDIR", str(settings.HOME / "cache" / "matplotlib"))
        import matplotlib  # heavy: processes that draw nothing do without  # noqa: ICN001
        from matplotlib.figure import Figure

        for name, value in _RC.items():
            matplotlib.rcParams[name] = value  # type: ignore[index]  # the names it takes are a list of literals
        return Figure


def render(picture: Picture, *, form: str, theme: str) -> bytes:
    """`form` is svg or png, `theme` light or dark."""
    colours = THEMES[theme]
    figure = _figure_class()(figsize=(picture.width / 72, picture.height / 72), dpi=72, layout="constrained")
    figure.patch.set_facecolor(colours.ground if form == "png" else "none")
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours.line)
    axes.tick_params(colors=colours.soft, length=0)
    axes.xaxis.label.set_color(colours.soft)
    axes.yaxis.label.set_color(colours.soft)
    picture.draw(axes, colours)
    out = io.BytesIO()
    if form == "png":
        figure.savefig(out, format="png", dpi=_PNG_DPI, metadata={"Software": None})
        return out.getvalue()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _plain(out.getvalue().decode(), picture=picture).encode()


def _plain(text: str, *, picture: Picture) -> str:
    """Styles as attributes of their own: a strict content security policy forbids style attributes and sheets."""
    text = _METADATA.sub("", text)
    text = _SHEET.sub("", text)
    text = _STYLE.sub(lambda match: _attributes(match[1]), text)
    return _SIZE.sub(
        lambda match: f'{match[1]}width="{picture.width}" height="{picture.height}" stroke-linejoin="round"',
        text,
        count=1,
    )


def _attributes(style: str) -> str:
    found = []
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font-family":
            value = _FONT
        if name:
            found.append(f' {name}="{value}"')
    return "".join(found)
