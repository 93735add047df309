"""The lines of an event log as they are in the file."""

import json
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]
