"""Start a Chromium of mplab's own on this host, for mplab's own pages: to print them, or to test them."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mplab.base.browser.chromium import PORT_FILE, own_switches
from mplab.base.browser.tab import DevTools
from mplab.base.errors import StepError
from mplab.base.polling import wait_until
from mplab.base.programs import CHROMIUM

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 10.0
_POLL_S = 0.05
NAME = "Chromium"


@contextlib.contextmanager
def own_chromium() -> Iterator[DevTools]:
    """Start Chromium with an empty profile; yield its DevTools for the duration of the context.

    Raises:
        LabNotReadyError: Chromium is not installed.
        StepError: it did not start.
    """
    with TemporaryDirectory(prefix="mplab-chromium-", ignore_cleanup_errors=True) as folder:
        profile, log = Path(folder) / "profile", Path(folder) / "chromium.log"
        with log.open("wb") as output:
            argv = [str(CHROMIUM.path()), *own_switches(profile), "about:blank"]
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        try:
            port = wait_until(lambda: _port(process, profile), _START_TIMEOUT_S, interval_s=_POLL_S)
            if port is None:
                last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
                raise StepError(f"{NAME} did not start within {_START_TIMEOUT_S:g} s: {last[0]}")
            yield DevTools(NAME, lambda: socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT_S))
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _port(process: subprocess.Popen[bytes], profile: Path) -> int | None:
    """Return the port of the browser's DevTools; None: it does not listen yet. Raises StepError: it has ended."""
    if (status := process.poll()) is not None:
        raise StepError(f"{NAME} has ended ({status})")
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((profile / PORT_FILE).read_text().splitlines()[0])
    return None
