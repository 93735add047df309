"""Files of ``dl.lab``: prefixes of one fixed stream of random bytes, so that a receiver can check every byte."""

import os
import tempfile
from pathlib import Path

from mplab.base.deferred import deferred

STREAM_SEED = 2015
STREAM_NAME = "stream"
STREAM_BYTES = 100_000_000
"""Size of the file ``/stream``, bytes; requests for byte ranges give any smaller size."""
SIZES_BYTES = (
    1_000,
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
)
"""Sizes of the files ``/<size>``, bytes."""


def stream_bytes(size: int) -> bytes:
    """Return the first `size` bytes of the stream: raw PCG64 outputs, 64 bit, little endian, equal in every numpy."""
    with deferred("slow to import, needed once"):
        import numpy as np
    words = np.random.PCG64(STREAM_SEED).random_raw(-(-size // 8))
    return np.asarray(words, dtype="<u8").tobytes()[:size]


def ensure_file(folder: Path, size: int, name: str = "") -> Path:
    """Make the file ``folder/<size>`` (or `name`) unless it exists; return its path."""
    path = folder / (name or str(size))
    if not path.exists() or path.stat().st_size != size:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as partial:
            partial.write(stream_bytes(size))
        Path(partial.name).chmod(0o644)
        os.replace(partial.name, path)  # noqa: PTH105 - both names are complete
    return path


def build_files(target: Path) -> Path:
    """Make all files of ``dl.lab`` in ``target/files``; return that folder."""
    folder = target / "files"
    for size in SIZES_BYTES:
        ensure_file(folder, size)
    ensure_file(folder, STREAM_BYTES, STREAM_NAME)
    return folder
