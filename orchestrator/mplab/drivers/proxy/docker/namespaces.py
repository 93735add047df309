"""Open the network namespace of a container of an engine on this machine."""

import os
from contextlib import suppress
from pathlib import Path

from docker.models.containers import Container

from mplab.base.errors import LabNotReadyError

_PROC = Path("/proc")


def open_network(container: Container, service: str) -> int:
    """Return a file descriptor of a container's network namespace.

    A process of the container is found by its control group. The engine's process ids are wrong on this machine when
    the engine runs in its own PID namespace.

    Args:
        container: a running container.
        service: name of the container in messages.

    Raises:
        LabNotReadyError: this machine sees no process of the container.
    """
    for process in _PROC.iterdir():
        if process.name.isdigit():
            # The process has just ended, or belongs to another user.
            with suppress(OSError):
                if str(container.id) in (process / "cgroup").read_text():
                    return os.open(process / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
    raise LabNotReadyError(
        f"no process of the container of {service} is seen here: the engine is on another machine, or hidden; the "
        "virtual phone needs one on this machine"
    )
