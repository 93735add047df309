"""Labs that run on this machine now, found by their processes: nothing is written down that could become stale."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from orchestrator.errors import LabNotReadyError
from orchestrator.lab.enter import IN_LAB_VARIABLE
from orchestrator.lab.nodes import NODE_VARIABLE
from orchestrator.programs import NSENTER

_HOLDER = "sleep"


@dataclass(frozen=True)
class RunningNode:
    """A node of a running lab, with its holder's process id as seen from here."""

    lab: str
    name: str
    pid: int
    started: float
    """Unix time, seconds."""


def running_nodes() -> Iterator[RunningNode]:
    """Every node of every lab that this user may enter."""
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != _HOLDER:
            continue
        try:
            environment = process.environ()
            started = process.create_time()
        except psutil.Error:
            continue
        if NODE_VARIABLE in environment and IN_LAB_VARIABLE in environment:
            yield RunningNode(environment[IN_LAB_VARIABLE], environment[NODE_VARIABLE], process.pid, started)


def find_node(name: str, *, lab: str = "") -> RunningNode:
    """The node `name` of the lab whose id begins with `lab`; of the youngest one by default.

    Raises:
        LabNotReadyError: no lab runs, or it has no such node.
    """
    nodes = [node for node in running_nodes() if node.lab.startswith(lab)]
    if not nodes:
        raise LabNotReadyError(
            f"no lab{f' {lab}' if lab else ''} is running: 'mplab lab up --keep' holds one open, "
            "and every run has one of its own"
        )
    youngest = max(nodes, key=lambda node: node.started).lab
    found = {node.name: node for node in nodes if node.lab == youngest}
    if name not in found:
        raise LabNotReadyError(f"lab {youngest}: no node {name!r}; it has {', '.join(sorted(found))}")
    return found[name]


def enter_argv(node: RunningNode, command: list[str]) -> list[str]:
    """The command line that runs `command` in a node of another process's lab."""
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
