"""Start a command inside the namespaces of a virtual lab, or on the host for a lab of real devices."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from mplab.base.errors import LabNotReadyError
from mplab.base.kernel import die_with_parent
from mplab.base.programs import UNSHARE
from mplab.base.supervisor import END_TIMEOUT_S

IN_LAB_VARIABLE = "MPLAB_LAB"
"""Environment variable of all processes of a lab: the lab's id."""

_PRIVATE_END_S = 5.0
"""Time for the kernel to kill the processes of the namespaces, seconds."""
_KNOBS = (("kernel.apparmor_restrict_unprivileged_userns", "0"), ("kernel.unprivileged_userns_clone", "1"))
"""Kernel parameters that can forbid user namespaces, with the value that allows them."""
_CONTAINER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman make in each container."""
_USER_OPTIONS = tuple(f"--security-opt {option}=unconfined" for option in ("seccomp", "systempaths", "apparmor"))
"""Options of ``docker run`` that allow an ordinary user's namespaces; docs/install.md gives the reasons."""
_CAPABILITIES = {"SYS_ADMIN": 21, "SYS_CHROOT": 18, "NET_ADMIN": 12, "NET_RAW": 13, "NET_BIND_SERVICE": 10}
"""Capabilities that root needs for a virtual lab, with their bits (``linux/capability.h``)."""
_STATUS = Path("/proc/self/status")
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Inherited:
    """Environment variables and open file descriptors that a process inside a lab inherits.

    The descriptors have the same numbers in that process.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()


NOTHING = Inherited()


def in_lab() -> bool:
    """Return True in a process that `lab_process` has started."""
    return IN_LAB_VARIABLE in os.environ


def unshare_argv() -> list[str]:
    """Return the command that creates the namespaces of a virtual lab; without root, also a user namespace.

    Raises:
        LabNotReadyError: ``unshare`` is not installed.
    """
    argv = [str(UNSHARE.path())]
    if os.geteuid() != 0:
        argv += ["--user", "--map-root-user"]
    return [*argv, "--net", "--mount", "--mount-proc", "--pid", "--ipc", "--fork", "--kill-child=SIGKILL"]


def check_namespaces() -> None:
    """Check that this host can create the namespaces of a virtual lab, by creating them once.

    Raises:
        LabNotReadyError: the host does not allow it; the message names the missing permission.
    """
    if os.geteuid() == 0 and (missing := _missing_capabilities()):
        raise LabNotReadyError(f"virtual lab: root has not all capabilities here: {missing}. {_namespace_hint()}")
    result = subprocess.run([*unshare_argv(), "true"], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return
    problem = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else f"exit code {result.returncode}"
    raise LabNotReadyError(f"virtual lab: private namespaces cannot be made here: {problem}. {_namespace_hint()}")


def _missing_capabilities() -> str:
    """Return the names of the capabilities that this process needs as root but does not have; "": it has all."""
    (effective,) = re.findall(r"^CapEff:\s*(\w+)$", _STATUS.read_text(), re.MULTILINE)
    return ", ".join(name for name, bit in _CAPABILITIES.items() if not int(effective, 16) >> bit & 1)


def _namespace_hint() -> str:
    if os.geteuid() == 0:
        options = " ".join(f"--cap-add {name}" for name in _CAPABILITIES)
        return f"In a container, 'docker run' needs as root: {options} --security-opt apparmor=unconfined"
    for knob, value in _KNOBS:
        path = Path("/proc/sys") / knob.replace(".", "/")
        if path.exists() and path.read_text().strip() != value:
            return f"Run as root, or allow it: sudo sysctl {knob}={value}"
    if any(path.exists() for path in _CONTAINER_FILES):
        return f"In a container, 'docker run' needs: {' '.join(_USER_OPTIONS)}"
    return "Run as root, or allow unprivileged user namespaces (user.max_user_namespaces > 0)."


class LabProcess:
    """A command that runs inside a new lab, as a child of this process."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int, lab_id: str, *, patience_s: float) -> None:
        self._process = process
        self._patience_s = patience_s
        self._lifeline = lifeline
        self.lab_id = lab_id

    def signal(self, number: int) -> None:
        """Send a signal to the command inside the lab."""
        with contextlib.suppress(BrokenPipeError, OSError):
            os.write(self._lifeline, bytes([number]))

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the command's end and return its exit code, 128 + n after signal n.

        None: the command still runs after `timeout_s` seconds. Without `timeout_s`, the wait has no limit.
        """
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        """End the lab with all its processes and wait until it is gone."""
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self._patience_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def lab_process(
    command: Sequence[str],
    *,
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    inherited: Inherited = NOTHING,
    private: bool = True,
) -> Iterator[LabProcess]:
    """Start `command` inside the namespaces of a new lab.

    SIGINT, SIGTERM and SIGHUP that this process receives within the context go to the command, once each. No process
    of the lab outlives the context or this process. The variables of `inherited` are added to the command's
    environment.

    Without `private` there are no namespaces, because the devices of the lab are elsewhere (a phone, routers, a
    container engine). If this process dies, the command receives SIGTERM and releases the devices.

    Raises:
        LabNotReadyError: ``unshare`` is not installed.
    """
    lab_id = secrets.token_hex(4)
    read_end, write_end = os.pipe()
    parent = os.getpid()
    descriptors = ",".join(map(str, (read_end, *inherited.descriptors)))
    first = [*unshare_argv(), "--", sys.executable, "-m", "mplab.lab.init"]
    # The child gets its own process group so that Ctrl-C reaches it once, through the lifeline.
    process = subprocess.Popen(
        [*(first if private else [sys.executable, "-m", "mplab.base.supervisor"]), descriptors, "--", *command],
        pass_fds=(read_end, *inherited.descriptors),
        process_group=0,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **inherited.environment, IN_LAB_VARIABLE: lab_id},
        preexec_fn=(lambda: die_with_parent(parent)) if private else None,  # noqa: PLW1509 - prctl only
    )
    os.close(read_end)
    patience_s = _PRIVATE_END_S if private else END_TIMEOUT_S + _PRIVATE_END_S
    lab = LabProcess(process, write_end, lab_id, patience_s=patience_s)

    def forward(number: int, _frame: FrameType | None) -> None:
        lab.signal(number)

    previous = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield lab
    finally:
        lab.close()
        for number, handler in previous.items():
            signal.signal(number, handler)
