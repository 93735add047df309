"""The files of ``dl.lab``: beginnings of one fixed stream of random bytes, so that a receiver can check every byte."""

import os
import tempfile
from pathlib import Path

from mplab.base.deferred import deferred

STREAM_SEED = 2015
STREAM_NAME = "stream"
STREAM_BYTES = 100_000_000
"""``/stream``: any size up to this by a byte range."""
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
"""``/<bytes>``: whole files."""


def stream_bytes(size: int) -> bytes:
    """The first `size` bytes of the stream: raw 64-bit outputs of PCG64, little endian (the same in every numpy)."""
    with deferred("slow to import, needed once"):
        import numpy as np
    words = np.random.PCG64(STREAM_SEED).random_raw(-(-size // 8))
    return np.asarray(words, dtype="<u8").tobytes()[:size]


def ensure_file(folder: Path, size: int, name: str = "") -> Path:
    """The file ``folder/<size>`` (or `name`), made when it is not there."""
    path = folder / (name or str(size))
    if not path.exists() or path.stat().st_size != size:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as partial:
            partial.write(stream_bytes(size))
        Path(partial.name).chmod(0o644)
        os.replace(partial.name, path)  # noqa: PTH105 - both names are complete
    return path


def build_files(target: Path) -> Path:
    """All files of ``dl.lab`` in ``target/files``."""
    folder = target / "files"
    for size in SIZES_BYTES:
        ensure_file(folder, size)
    ensure_file(folder, STREAM_BYTES, STREAM_NAME)
    return folder
