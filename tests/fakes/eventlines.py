"""Reads the lines of an event log without a model."""

import json
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the decoded lines; an incomplete last line is left out."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]
