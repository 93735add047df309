"""Start a Chromium of mplab's own on this host, for mplab's own pages: to print them, or to test them.

Only this process can drive it: its connection is a pipe, and it opens no port.
"""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mplab.base.browser.chromium import own_switches
from mplab.base.browser.session import BrowserSession, Pipe, SessionError
from mplab.base.browser.tab import Tab
from mplab.base.errors import StepError
from mplab.base.programs import CHROMIUM

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0
NAME = "Chromium"
_WITH_PIPE = ("sh", "-c", 'exec "$@" 3<&0 4>&0 0</dev/null', "sh")
"""Prefix of a command that moves its standard input, a socket, to the file descriptors that Chromium expects."""


@dataclass(frozen=True)
class OwnChromium:
    """A running Chromium with one empty page."""

    session: BrowserSession

    def page(self, *, timeout_s: float) -> BrowserSession:
        """Return the session with the page; wait until there is a page. Raises StepError."""
        try:
            self.session.attach(timeout_s=timeout_s)
        except SessionError as error:
            raise StepError(f"{NAME}: DevTools: {error}") from error
        return self.session

    @contextlib.contextmanager
    def tab(self, *, timeout_s: float) -> Iterator[Tab]:
        """Yield the page for the duration of the context; wait until there is a page.

        Raises:
            StepError: no page exists within `timeout_s`.
        """
        yield Tab(NAME, self.page(timeout_s=timeout_s))


@contextlib.contextmanager
def own_chromium() -> Iterator[OwnChromium]:
    """Start Chromium with an empty profile; yield it for the duration of the context.

    Raises:
        LabNotReadyError: Chromium is not installed.
        StepError: it did not start.
    """
    with TemporaryDirectory(prefix="mplab-chromium-", ignore_cleanup_errors=True) as folder:
        profile, log = Path(folder) / "profile", Path(folder) / "chromium.log"
        argv = [*_WITH_PIPE, str(CHROMIUM.path()), *own_switches(profile), "about:blank"]
        mine, browsers = socket.socketpair()
        with log.open("wb") as output, browsers:
            process = subprocess.Popen(
                argv, stdin=browsers.fileno(), stdout=output, stderr=output, start_new_session=True
            )
        try:
            with BrowserSession(Pipe(mine)) as session:
                _check_started(session, log)
                yield OwnChromium(session)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _check_started(session: BrowserSession, log: Path) -> None:
    """Wait until the browser answers. Raises StepError with the last line of its log if it does not."""
    try:
        session.command("Browser.getVersion", timeout_s=_START_TIMEOUT_S)
    except SessionError as error:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise StepError(f"{NAME} did not start: {error}: {last[0]}") from error
