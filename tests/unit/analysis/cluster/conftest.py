"""A scheduler and workers as separate programs, on loopback."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
START_S = 60.0
_NO_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
_LISTENS = re.compile(r"Scheduler at:\s+(t\w+://\S+)")


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = START_S) -> None:
    """Wait until `condition` holds; fail the test after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


@dataclass
class Programs:
    """Runs ``dask scheduler`` and ``dask worker`` for a test."""

    folder: Path
    options: tuple[str, ...] = ()
    """Options for encryption."""
    address: str = ""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def scheduler(self) -> str:
        """Start the scheduler and return its address."""
        log = self.folder / "scheduler.log"
        self._start(log, "scheduler", "--host", "127.0.0.1", "--port", "0", *_NO_PAGES, *self._protocol())
        wait_for(lambda: bool(_LISTENS.search(log.read_text())), "a scheduler that listens")
        match = _LISTENS.search(log.read_text())
        assert match is not None
        self.address = match[1]
        return self.address

    def worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker that nothing restarts."""
        name = f"worker-{len(self.running)}"
        where = ("--host", "127.0.0.1", *_NO_PAGES, "--local-directory", str(self.folder / name))
        arguments = (self.address, "--nthreads", "1", "--no-nanny", *where, *self._protocol())
        return self._start(self.folder / f"{name}.log", "worker", *arguments, **environment)

    def _protocol(self) -> tuple[str, ...]:
        return ("--protocol", "tls", *self.options) if self.options else ()

    def _start(self, log: Path, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        search = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
        with log.open("wb") as file:
            program = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": search, **environment},
            )
        self.running.append(program)
        return program


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Starts the programs; all of them end with the test."""
    folder = tmp_path / "programs"
    folder.mkdir()
    started = Programs(folder)
    yield started
    for program in started.running:
        program.send_signal(signal.SIGKILL)
        program.wait()
