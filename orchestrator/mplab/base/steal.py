"""Processor time that other virtual machines have taken from this one."""

import os
from pathlib import Path

_COLUMN = 8
"""Of ``steal`` in the first line of ``/proc/stat`` (proc(5))."""


def steal_s(proc: Path = Path("/proc")) -> float:
    """Return the time that other virtual machines have taken since the boot, all processors together, seconds."""
    return int((proc / "stat").read_text().splitlines()[0].split()[_COLUMN]) / os.sysconf("SC_CLK_TCK")
