"""Write files atomically and reproducibly, and parse JSON from runs of other users."""

import csv
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from mplab.analysis.text import UNPRINTABLE, printable

Json: TypeAlias = object
"""Parsed JSON of unknown structure: check its types before use."""

SIGNIFICANT_DIGITS = 9
"""Significant digits to which floats are rounded: finer than a clock's resolution, coarser than rounding noise."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file to write; rename it to ``path`` at the end, or remove it after an error."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by a file with ``content``, atomically (`replacing`); a missing folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Replace ``path`` by a file with ``content`` in UTF-8, atomically; a missing folder is created."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: object) -> None:
    """Replace ``path`` by a file with ``content`` as indented JSON; floats are rounded, NaN and infinity are null."""
    write_text(path, json.dumps(rounded(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


_MOST_DIGITS = 18
"""Maximum length of a parsed integer, characters: all of these fit into 64 bits. Longer ones become floats."""

_DECODER = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else float(digits))
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
FORMULA = re.compile(r"[=+@\t\r-]")
"""Matches a first character by which a spreadsheet recognises a formula."""


def parse_json(text: str | bytes) -> Json:
    """Parse a JSON text from a run that another user may have made.

    Characters of `UNPRINTABLE` become U+FFFD; integers of more than 18 digits become floats.

    Raises:
        ValueError: the text is no JSON, or is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode()
    try:
        content = _DECODER.decode(text)
        return _printable(content) if UNPRINTABLE.search(text) or _ESCAPE.search(text) else content
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def inside(folder: Path, name: object) -> Path:
    """Return the path of the file ``name`` in ``folder``; the name can come from a run of another user.

    Raises:
        ValueError: the path, with links resolved, is outside of ``folder``.
    """
    path = folder / str(name)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{str(name)!r} is not a file of this folder")
    return path


def _printable(content: Json) -> Json:
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, dict):
        return {printable(key): _printable(value) for key, value in content.items()}
    return [_printable(value) for value in content] if isinstance(content, list) else content


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a header line of ``columns`` and a line per row as CSV (RFC 4180) with ``\\n`` line ends.

    Floats are rounded; None, NaN and infinity are empty fields. A text that a spreadsheet would take for a formula
    gets a leading ``'``.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return buffer.getvalue()


def _field(value: Json) -> Json:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else rounded(value)


def rounded_float(value: float) -> float:
    """Round a finite number to `SIGNIFICANT_DIGITS`."""
    return float(f"{float(value):.{SIGNIFICANT_DIGITS}g}")


def rounded(content: Json) -> Json:
    """Return ``content`` with floats rounded to `SIGNIFICANT_DIGITS`; floats that are not finite become None."""
    if isinstance(content, float):
        return rounded_float(content) if math.isfinite(content) else None
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content
