"""Files that are written whole or not at all, with the same bytes each time."""

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What JSON can hold: it has no better name in Python's types."""

SIGNIFICANT_DIGITS = 9
"""Digits kept of a computed float: far below what a clock can tell, far above rounding noise."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and rename it there; the folder is made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """As `write_bytes`, in UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: object) -> None:
    """Indented JSON with rounded floats; not-a-number becomes null."""
    write_text(path, json.dumps(rounded(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """RFC 4180 with ``\\n`` line ends; None is an empty field."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([rounded(field) for field in row] for row in rows)
    return buffer.getvalue()


def rounded(content: Json) -> Json:
    """``content`` with each float at `SIGNIFICANT_DIGITS`, and None for a float that is not finite."""
    if isinstance(content, float):
        return float(f"{content:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(content) else None
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content
