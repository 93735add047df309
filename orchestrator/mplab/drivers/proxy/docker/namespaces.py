"""The network namespace of a container, where the engine runs on this machine."""

import os
from contextlib import suppress
from pathlib import Path

from docker.models.containers import Container

from mplab.base.errors import LabNotReadyError

_PROC = Path("/proc")


def open_network(container: Container, service: str) -> int:
    """A descriptor of a container's network namespace.

    The engine's own numbers of processes mean nothing here when it is in a PID namespace of its own: a process of the
    container is found by its control group.

    Args:
        container: that runs.
        service: its name in messages.

    Raises:
        LabNotReadyError: none of its processes is seen here.
    """
    for process in _PROC.iterdir():
        if process.name.isdigit():
            # One that has just ended, or is somebody else's.
            with suppress(OSError):
                if str(container.id) in (process / "cgroup").read_text():
                    return os.open(process / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
    raise LabNotReadyError(
        f"no process of the container of {service} is seen here: the engine is on another machine, or hidden; the "
        "virtual phone needs one on this machine"
    )
