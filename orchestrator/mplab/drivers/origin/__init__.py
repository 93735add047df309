"""Origin servers behind the proxy: 25 generated web sites, files to download, and a name server for the lab's names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mplab.base.machine import MachineProcess


class OriginHost(Protocol):
    """Machine on which the origin's servers run; it has all addresses of 10.65.0.0/16."""

    def spawn(self, argv: Sequence[str], *, log: Path) -> MachineProcess:
        """Start a program that writes its output to `log`; return its process."""
