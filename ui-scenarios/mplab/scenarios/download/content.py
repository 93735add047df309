"""The files of ``dl.lab``: prefixes of one fixed stream of random bytes."""

import hashlib
from functools import cache
from typing import Literal

from mplab.base.deferred import deferred

Server = Literal["dl", "video", "store", "messages"]
"""Names of one server, by which the rules of a policy can distinguish apps."""
MAX_SIZE_BYTES = 100_000_000
WHOLE_FILES_BYTES = frozenset(
    {
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
    }
)
"""Sizes with a separate file, ``/<bytes>``; other sizes are a byte range of ``/stream``."""
_STREAM_SEED = 2015


@cache
def stream_sha256(size: int) -> str:
    """Return the SHA-256 of the first `size` bytes of the stream (raw 64-bit outputs of PCG64, little endian)."""
    with deferred("slow to import, needed in cells alone"):
        import numpy as np
    words = np.random.PCG64(_STREAM_SEED).random_raw(-(-size // 8))
    return hashlib.sha256(np.asarray(words, dtype="<u8").tobytes()[:size]).hexdigest()
