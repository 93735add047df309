"""Read and write style files of figures: Matplotlib parameters, one ``key: value`` per line."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager

from mplab.analysis.errors import FigureError
from mplab.analysis.figures.style import PNG_DPI, STYLE, WIDTH_IN
from mplab.base.suggest import did_you_mean

_GROUPS = (
    "axes", "boxplot", "figure", "font", "grid", "hatch", "legend", "lines", "mathtext", "patch", "pdf", "savefig",
    "svg", "text", "xtick", "ytick",
)  # fmt: skip
_REFUSED = frozenset(
    {
        "figure.hooks",
        "svg.hashsalt",
        "svg.id",
        "text.usetex",
        "text.latex.preamble",
        "text.parse_math",
        "savefig.format",
    }
)
"""Parameters that run programs, that read texts of a run as commands, or that make the bytes of a figure differ."""
_LINE = re.compile(r"\s*(?P<key>[^:#\s][^:#]*?)\s*:\s*(?P<value>.*?)\s*")
_COMMENT = re.compile(r"(^|\s)#(\s.*)?$")
_SIZES = ("axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
_GENERIC = ("serif", "sans-serif", "monospace")


def style_text() -> str:
    """Return the style of mplab's figures as a style file."""
    lines = [
        "# Style of the figures of mplab: 'mplab figures --style FILE' draws with a changed copy of this file.",
        "# Keys and values are those of Matplotlib. A size that is not set is scaled with font.size.",
        f"# The default width is {WIDTH_IN:g} inches: see --width and --height.",
        *(f"{key}: {_text(value)}" for key, value in (*STYLE.items(), ("savefig.dpi", PNG_DPI)) if key not in _REFUSED),
    ]
    return "\n".join(lines) + "\n"


def read_style(file: Path) -> dict[str, Any]:
    """Return the Matplotlib parameters in a style file.

    Raises:
        FigureError: the file cannot be read, or a line has no parameter of figures, or a wrong value.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise FigureError(f"{file}: cannot be read: {reason}") from None
    known: Any = matplotlib.RcParams()
    for number, line in enumerate(lines, 1):
        text = _COMMENT.sub("", line)
        if not text.strip():
            continue
        place, match = f"{file}:{number}", _LINE.fullmatch(text)
        if match is None:
            raise FigureError(f"{place}: found {line.strip()!r}, 'key: value' is needed")
        key = match["key"]
        allowed = [name for name in matplotlib.rcParams if name.startswith(_GROUPS) and name not in _REFUSED]
        if key not in allowed:
            raise FigureError(f"{place}: {key}: not a parameter of figures.{did_you_mean(key, allowed)}")
        try:
            known[key] = match["value"].strip("\"'")
        except ValueError as error:
            reason = " ".join(str(error).removeprefix(f"Key {key}: ").split())
            raise FigureError(f"{place}: {key}: {reason}") from None
    return dict(known)


def parameters(style: Mapping[str, Any], font: str = "", size_pt: float | None = None) -> dict[str, Any]:
    """Return Matplotlib parameters: those of ``style``, with a font and a size of text, points.

    Sizes that ``style`` does not set are scaled with the size of text.

    Raises:
        FigureError: this machine has no font called ``font``.
    """
    result = dict(style)
    if font:
        _check_font(font)
        result["font.family"] = [font]
    if size_pt is not None:
        result["font.size"] = size_pt
    scale = float(result.get("font.size", STYLE["font.size"])) / STYLE["font.size"]
    return {**({key: STYLE[key] * scale for key in _SIZES} if scale != 1 else {}), **result}


def _check_font(font: str) -> None:
    names = sorted({entry.name for entry in font_manager.fontManager.ttflist})
    if font not in names and font not in _GENERIC:
        near = did_you_mean(font, [*names, *_GENERIC])
        raise FigureError(f"font {font!r}: not on this machine.{near} Fonts: {', '.join((*_GENERIC, *names))}")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
