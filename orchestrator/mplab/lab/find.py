"""Find the running labs in the list of this machine's processes. No state is stored that could become stale."""

import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from mplab.base.enter import IN_LAB_VARIABLE
from mplab.base.errors import LabNotReadyError
from mplab.base.nodes import NODE_VARIABLE
from mplab.base.programs import NSENTER

_HOLDER = "sleep"
_NS_GET_OWNER_UID = 0xB704
"""ioctl_ns(2): returns the user who owns a user namespace."""


@dataclass(frozen=True)
class RunningNode:
    """A node (network namespace) of a running lab.

    `pid` is the process that holds the namespace, in the caller's PID namespace.
    """

    lab: str
    name: str
    pid: int
    started: float
    """Unix time, seconds."""


def running_nodes() -> Iterator[RunningNode]:
    """Yield every node of the labs that the caller has started.

    A node is recognised by the name and the environment of its process. Another user could imitate both, and ``mplab
    lab shell`` would then run the ``/bin/sh`` of the imitation. Therefore, only processes of the caller are
    considered, in a user namespace that the caller owns (for root: in root's own user namespace).
    """
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != _HOLDER:
            continue
        try:
            if not _is_own(process):
                continue
            environment = process.environ()
            started = process.create_time()
        except psutil.Error:
            continue
        if NODE_VARIABLE in environment and IN_LAB_VARIABLE in environment:
            yield RunningNode(environment[IN_LAB_VARIABLE], environment[NODE_VARIABLE], process.pid, started)


def _is_own(process: psutil.Process) -> bool:
    """Return whether all user ids of a process are the caller's, and the caller owns its user namespace.

    If the caller is root, the process must be in the caller's user namespace.
    """
    caller = os.geteuid()
    user_namespace = Path("/proc", str(process.pid), "ns", "user")
    if set(process.uids()) != {caller}:
        return False
    try:
        if caller == 0:
            return user_namespace.samefile("/proc/self/ns/user")
        with user_namespace.open("rb") as namespace:
            owner = fcntl.ioctl(namespace, _NS_GET_OWNER_UID, struct.pack("I", 0))
    except OSError:
        return False
    return bool(struct.unpack("I", owner)[0] == caller)


def find_node(name: str, *, lab: str = "") -> RunningNode:
    """Return the node `name` of the most recent lab whose id begins with `lab`; "": of the most recent lab.

    Raises:
        LabNotReadyError: no such lab runs, or it has no such node.
    """
    nodes = [node for node in running_nodes() if node.lab.startswith(lab)]
    if not nodes:
        raise LabNotReadyError(
            f"no lab{f' {lab}' if lab else ''} of this user is running: 'mplab lab up --keep' keeps one up, "
            "and every run starts its own"
        )
    youngest = max(nodes, key=lambda node: node.started).lab
    nodes_by_name = {node.name: node for node in nodes if node.lab == youngest}
    if name not in nodes_by_name:
        raise LabNotReadyError(f"lab {youngest}: no node {name!r}; it has {', '.join(sorted(nodes_by_name))}")
    return nodes_by_name[name]


def enter_argv(node: RunningNode, command: list[str]) -> list[str]:
    """Return the command line that runs `command` in a node of another process's lab."""
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return [
        str(NSENTER.path()),
        "--target",
        str(node.pid),
        *user,
        "--net",
        "--mount",
        "--pid",
        "--",
        *command,
    ]
