"""A Docker engine for the tests only, in its own network, mount and PID namespaces. It touches nothing of the host.

Images stay in ``build/docker`` for the next time, or in another folder of ``build`` that ``MPLAB_TEST_ENGINE`` names;
everything else is removed with the engine.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock

from mplab.base.errors import LabNotReadyError
from mplab.base.nodes import Node
from mplab.base.places import ROOT
from mplab.drivers.proxy.docker.base import CACHE_DIR, SUITE
from mplab.drivers.proxy.docker.compose import compose_command

DATA_ROOT = ROOT / "build" / os.environ.get("MPLAB_TEST_ENGINE", "docker")
"""Folder of the images. Engines at the same time need different ones."""
FOR_BASE = {} if (CACHE_DIR / f"{SUITE}.tar").exists() else {"mmdebstrap": "mmdebstrap"}
PROGRAMS = {
    "dockerd": "docker.io",
    "docker-init": "tini",
    "slirp4netns": "slirp4netns",
    "iptables": "iptables",
    **FOR_BASE,
}
"""Program → its Debian package."""

_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin", "/usr/local/sbin"])
_READY_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 30.0
_LOCK_TIMEOUT_S = 240.0
_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_TRY = """
set -e
mount -t tmpfs tmpfs /run
iptables -t nat -L -n >/dev/null
cd "$0" && mkdir lower upper work merged
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay merged
umount merged
mkdir /sys/fs/cgroup/mplab-try 2>/dev/null || mkdir /sys/fs/cgroup/memory/mplab-try
rmdir /sys/fs/cgroup/mplab-try /sys/fs/cgroup/memory/mplab-try 2>/dev/null || true
"""
_SCRIPT = """
set -e
mount -t tmpfs tmpfs /run
ip link set lo up
exec dockerd "$@"
"""


def why_not() -> str:
    """Return why no engine can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "a Docker engine of the tests' own needs root"
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program, path=_PATH) is None]
    try:
        compose_command()
    except LabNotReadyError:
        missing.append("docker-compose")
    return f"not installed: {', '.join(missing)}" if missing else _why_not_here()


@cache
def _why_not_here() -> str:
    """Return which operation of an engine fails here, for example in a container; "" if none does."""
    if not Path("/dev/net/tun").exists():
        return "a Docker engine of the tests' own needs /dev/net/tun"
    DATA_ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA_ROOT) as folder:
        tried = subprocess.run(
            [
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "sh",
                "-c",
                _TRY,
                folder,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": _PATH},
        )
    errors = tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"]
    return f"this machine lets no Docker engine run: {errors[-1]}" if tried.returncode != 0 else ""


class Engine:
    """The engine; it runs until the end of its context.

    Args:
        directory: for its socket and log.
        data_root: folder of the images.
    """

    def __init__(self, directory: Path, data_root: Path = DATA_ROOT) -> None:
        self.socket = directory / "docker.sock"
        self.log = directory / "dockerd.log"
        self._directory = directory
        self._data_root = data_root
        self._stack = ExitStack()
        self._pid = 0

    @property
    def url(self) -> str:
        """Value for ``DOCKER_HOST``."""
        return f"unix://{self.socket}"

    @property
    def node(self) -> Node:
        """The engine's host: its network and its mounts."""
        return Node("engine", self._pid)

    def __enter__(self) -> Self:
        """Start the engine with Internet access through this host's sockets, and wait until it answers.

        Raises:
            RuntimeError: the engine does not start, or does not answer in time.
        """
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the engine and everything that it runs."""
        self._stack.close()

    def _start(self) -> None:
        self._data_root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._data_root.with_suffix(".lock"))
        self._stack.enter_context(lock.acquire(timeout=_LOCK_TIMEOUT_S))
        for folder in ("containers", "network", "volumes"):  # left by an engine that was killed
            shutil.rmtree(self._data_root / folder, ignore_errors=True)
        root = Path("/sys/fs/cgroup")
        for path in (*root.glob("mplab-test-*"), *root.glob("*/mplab-test-*")):  # left by tests that were killed
            if not Path("/proc", path.name.rpartition("-")[2]).exists():
                _remove_cgroups(path.name)
        cgroup = f"mplab-test-{os.getpid()}"
        self._stack.callback(_remove_cgroups, cgroup)
        argv = [
            *("--data-root", str(self._data_root), "--exec-root", "/run/docker", "--pidfile", "/run/docker.pid"),
            *("-H", self.url, "--cgroup-parent", f"/{cgroup}"),
            *("--exec-opt", "native.cgroupdriver=cgroupfs", "--storage-driver", "overlay2"),
            *("--bip", "172.26.0.1/24", "--default-address-pool", "base=172.27.0.0/16,size=24"),
        ]
        process = self._spawn(
            [
                *_UNSHARE,
                *("sh", "-c", _SCRIPT, "dockerd", *argv),
            ]
        )
        self._pid = self._first_child(process)
        self._spawn(["slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback", str(self._pid), "tap0"])
        self._wait(process)

    def _spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv],  # ends also if the tests are killed
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PATH": _PATH},
                start_new_session=True,
            )
        self._stack.callback(_end, process, self)
        return process

    def _first_child(self, process: subprocess.Popen[bytes]) -> int:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            if pids := children.read_text().split():
                return int(pids[0])
            time.sleep(0.02)
        raise RuntimeError(f"no engine: {self.log.read_text()[-500:]}")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            if "API listen on" in self.log.read_text():
                return
            time.sleep(0.05)
        raise RuntimeError(f"the engine does not answer: {self.log.read_text()[-1500:]}")

    def end_gently(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGTERM to the engine itself if `process` has started it, otherwise to `process`."""
        with suppress(ProcessLookupError, FileNotFoundError):
            is_engine = str(self._pid) in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(self._pid if is_engine else process.pid, 15)


def _remove_cgroups(name: str) -> None:
    """Remove the cgroups of an ended engine from each hierarchy."""
    root = Path("/sys/fs/cgroup")
    for top in (root / name, *root.glob(f"*/{name}")):
        for folder in (*sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True), top):
            with suppress(OSError):
                folder.rmdir()


def _end(process: subprocess.Popen[bytes], engine: Engine) -> None:
    engine.end_gently(process)
    try:
        process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
