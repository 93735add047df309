"""Nodes of the virtual lab: each is a network and a mount namespace, held open by a sleeping process."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mplab.base.errors import DeviceError
from mplab.base.machine import CommandResult
from mplab.base.programs import IP, NSENTER, Program

NODE_VARIABLE = "MPLAB_NODE"
"""Environment variable of a node's holder process: the node's name. `mplab lab shell` finds nodes by it."""

_START_TIMEOUT_S = 10.0
_KILL_GRACE_S = 2.0
_POLL_S = 0.01


class NodeProcess:
    """A program that runs in a node."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id of the program. It is also that of nsenter, which replaces itself by the program."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while the program runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code, or None when the program still runs after `timeout_s`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM, wait up to `timeout_s`, then send SIGKILL; return the exit code.

        If the program has ended by itself, kill the processes that it left running.
        """
        if self._process.poll() is None:
            self._process.terminate()
            if self.wait(timeout_s) is None:
                self._process.kill()
        else:
            self._end_group()
        return self._process.wait(_KILL_GRACE_S)

    def _end_group(self) -> None:
        """Kill the remaining processes of the program's process group, and wait up to `_KILL_GRACE_S` for their end.

        For example, workers of a server that has ended would keep the server's ports open.
        """
        deadline = time.monotonic() + _KILL_GRACE_S
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(self.pid, signal.SIGKILL)
                time.sleep(_POLL_S)


@dataclass(frozen=True)
class Node:
    """A running node. A sleeping process, its holder, keeps the node's namespaces; commands enter those of the holder.

    Attributes:
        name: name of the node.
        pid: process id of the holder.
        holder: the holder, if this process started it; otherwise None.
        launcher: words that precede each command line in the node, e.g. those of a program that preloads a library.
    """

    name: str
    pid: int
    holder: "subprocess.Popen[str] | None" = field(default=None, compare=False, repr=False)
    launcher: tuple[str, ...] = ()

    def check_alive(self) -> None:
        """Raise DeviceError if the holder has ended. A holder that another process started is not checked."""
        if self.holder is not None and (code := self.holder.poll()) is not None:
            raise DeviceError(self.name, f"the process that holds this node open has ended ({code})")

    def argv(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in this node."""
        return [*self.prefix, *argv]

    @property
    def prefix(self) -> list[str]:
        """Words that precede a command line to run it in this node."""
        return [str(NSENTER.path()), "--target", str(self.pid), "--net", "--mount", "--", *self.launcher]

    def run(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command and wait for its end.

        Raises:
            DeviceError: the command did not end within `timeout_s`, or (with `check`) its exit code is not 0.
        """
        try:
            completed = subprocess.run(
                self.argv(argv), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceError(self.name, f"no answer within {timeout_s:g} s", command=tuple(argv)) from error
        if check and completed.returncode != 0:
            raise DeviceError(
                self.name,
                "a command failed",
                command=tuple(argv),
                exit_code_found=completed.returncode,
                stderr=completed.stderr or completed.stdout,
            )
        return CommandResult(completed.returncode, completed.stdout, completed.stderr)

    def program(self, program: Program) -> str:
        """Return the absolute path of a program: nodes and host share their files. Raises LabNotReadyError."""
        return str(program.path())

    def outbox(self, target: Path) -> str:
        """Return `target` itself: nodes and host share their files."""
        return str(target)

    def bring(self, target: Path) -> None:
        """Do nothing: the program has written `target` itself."""

    def spawn(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> NodeProcess:
        """Start a program; its output is appended to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.argv(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        return NodeProcess(process)

    def ip(self, *lines: str) -> None:
        """Run `ip` commands as one batch, e.g. ``"addr add 10.0.0.1/24 dev eth0"``. Raises DeviceError: one failed."""
        self.run([str(IP.path()), "-batch", "-"], stdin="\n".join(lines) + "\n")

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set kernel parameters (sysctl) of this node's network namespace. Raises DeviceError: one cannot be set."""
        script = "".join(f'echo "{value}" > /proc/sys/{key.replace(".", "/")}\n' for key, value in values.items())
        self.run(["sh", "-e"], stdin=script)


_HOLDER_SCRIPT = """
set -e
for pair in "$@"; do mount --bind "${pair%%:*}" "${pair#*:}"; done
echo ready
exec sleep infinity
"""


def start_node(name: str, *, binds: Mapping[Path, Path] | None = None, network: int | None = None) -> Node:
    """Create a node and bring its loopback interface up.

    Args:
        name: name of the node.
        binds: source → target of bind mounts in this node, e.g. for its ``/etc/resolv.conf``. Targets that do not
            exist on this host are skipped.
        network: descriptor of an existing network namespace; None: create one.

    Raises:
        DeviceError: the holder process did not start, or the loopback interface cannot be brought up.
    """
    pairs = [f"{source}:{target.resolve()}" for source, target in (binds or {}).items() if target.exists()]
    process = subprocess.Popen(
        [*_namespaces(network), "--", "sh", "-c", _HOLDER_SCRIPT, "mplab-node", *pairs],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, NODE_VARIABLE: name},
        start_new_session=True,
        pass_fds=[network] if network is not None else [],
    )
    assert process.stdout is not None  # noqa: S101 - PIPE was asked for
    assert process.stderr is not None  # noqa: S101
    if process.stdout.readline().strip() != "ready":
        process.wait(_START_TIMEOUT_S)
        raise DeviceError(name, "the node could not be started", stderr=process.stderr.read())
    node = Node(name, process.pid, process)
    node.ip("link set lo up")
    return node


def _namespaces(network: int | None) -> list[str]:
    if network is None:
        return ["unshare", "--net", "--mount"]
    return [str(NSENTER.path()), f"--net=/proc/self/fd/{network}", "unshare", "--mount"]
