"""Write a cell's observations, one JSON object a line.

The text of each observation ``warning`` is also stored: it becomes one of the cell's warnings.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

WARNING = "warning"


class ObservationLog:
    """``scenario.jsonl`` of one cell; call it to record an event.

    Args:
        path: path of the file, which must not exist yet.
        clock: Unix time, s.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._file: IO[str] | None = None
        self.warnings: list[str] = []
        """Texts of the observations ``warning``, without duplicates."""

    def __enter__(self) -> Self:
        """Open the file."""
        self._file = self._path.open("x", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __call__(self, event: str, **fields: object) -> None:
        """Record `event` with the wall-clock time and `fields`, each a JSON value. Raises RuntimeError if not open."""
        if self._file is None:
            raise RuntimeError(f"{self._path} is not open")
        record = {"t": round(self._clock(), 6), "event": event, **fields}
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._file.flush()
        if event == WARNING and (text := str(fields["text"])) not in self.warnings:
            self.warnings.append(text)
