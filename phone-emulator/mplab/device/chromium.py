"""Run this machine's Chromium as the browser behind Chrome, a scripted app of the emulated device.

``python -m mplab.device.chromium serve NAME`` runs Chromium without a screen in the caller's network. Its DevTools are
at the abstract socket NAME, like those of Chrome on Android. With an empty NAME, ``serve`` ends at once.
``load NAME URL`` opens a page in this Chromium. After the load event it prints ``bytes=B objects=N seconds=S``, like
``apps/page.py``.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mplab.base.browser import Event
from mplab.base.browser.chromium import BY_PORT, PORT_FILE, PREFERENCES, Wrapper, nss_database, switches
from mplab.base.browser.tab import DevTools
from mplab.base.errors import MplabError
from mplab.base.polling import wait_until
from mplab.device.screen.script import CACERT

_PRIVATE = Path("/dev/shm")  # noqa: S108 - of the device, or of its lab: it goes with them
_START_TIMEOUT_S = 30.0
_LOAD_TIMEOUT_S = 60.0
_POLL_S = 0.05


def connect(name: str) -> socket.socket:
    """Return a socket that is connected to the abstract socket `name`. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(b"\0" + name.encode())
    except OSError:
        sock.close()
        raise
    return sock


async def serve(name: str, cacert: str, proxy: str) -> None:
    """Run Chromium until it ends, the parent of this process ends, or SIGTERM arrives.

    Args:
        name: name of the abstract socket for DevTools. A client that connects before Chromium is up has to wait.
        cacert: PEM file of the certificate authority that Chromium trusts. If it is `CACERT`, the system's list,
            Chromium uses its built-in list instead.
        proxy: HTTP proxy of Chromium, ``HOST:PORT``; "": no proxy. Unlike the proxy of Chrome on Android, it cannot
            change while Chromium runs.

    Raises:
        LabNotReadyError: Chromium, or a program that is needed to run it, is missing.
        MplabError: Chromium has ended by itself.
        OSError: the socket is in use.
    """
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a client's connection to Chromium, as soon as Chromium is up."""
        with contextlib.suppress(OSError), contextlib.closing(writer):
            to_browser = await asyncio.open_connection("127.0.0.1", await port)
            with contextlib.closing(to_browser[1]):
                await asyncio.gather(_copy(reader, to_browser[1]), _copy(to_browser[0], writer))

    sock = socket.socket(socket.AF_UNIX)
    sock.bind(b"\0" + name.encode())
    server = await asyncio.start_unix_server(relay, sock=sock)
    with tempfile.TemporaryDirectory(prefix="chrome-", dir=_PRIVATE, ignore_cleanup_errors=True) as folder:
        with _browser(Path(folder), cacert, proxy) as process:
            parent, end = os.getppid(), asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, end.set)
            while process.poll() is None and not end.is_set() and os.getppid() == parent:
                if not port.done() and (listening := _port(Path(folder) / "profile")):
                    port.set_result(listening)
                await asyncio.sleep(_POLL_S)
        server.close()
    if not end.is_set() and os.getppid() == parent:
        raise MplabError("Chromium has ended")


@contextlib.contextmanager
def _browser(folder: Path, cacert: str, proxy: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Chromium with all its files in `folder`. It is killed at exit, and also if this process is killed."""
    home, profile = folder / "home", folder / "profile"
    (profile / "Default").mkdir(parents=True)
    (profile / "Default" / "Preferences").write_text(json.dumps(PREFERENCES))
    home.mkdir()
    if cacert != CACERT:
        nss_database(home / ".pki" / "nssdb", Path(cacert))
    proxy_switches = [f"--proxy-server=http://{proxy}"] if proxy else []
    wrapper = Wrapper.write(folder, enter=["setpriv", "--pdeathsig", "KILL", "--"], home=home)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(wrapper.path), *switches(profile, driven=BY_PORT), *proxy_switches],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # SIGTERM must not reach it: apps on Android end at once, by SIGKILL
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _port(profile: Path) -> int:
    """Return the TCP port of DevTools, which Chromium writes to its profile folder; 0 before Chromium has done so."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((profile / PORT_FILE).read_text().splitlines()[0])
    return 0


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()


def load(name: str, url: str) -> str:
    """Open a page in the Chromium at the socket `name`. Return ``bytes=B objects=N seconds=S`` for the load.

    Raises:
        MplabError: Chromium does not answer, or the page was not loaded.
    """
    if not wait_until(lambda: _answers(name), _START_TIMEOUT_S, interval_s=_POLL_S):
        raise MplabError("Chromium does not answer")
    with DevTools("Chromium", lambda: connect(name)).tab(timeout_s=_START_TIMEOUT_S) as tab:
        began = time.monotonic()
        tab.open(url, timeout_s=_LOAD_TIMEOUT_S)
        seconds = time.monotonic() - began
        objects = _transferred_bytes(tab.network_events())
    return f"bytes={sum(objects.values())} objects={len(objects)} seconds={seconds:.3f}"


def _transferred_bytes(events: Sequence[Event]) -> dict[str, int]:
    """Return request id → size of the response on the network, bytes with headers, for HTTP requests in `events`."""
    requests: dict[str, int] = {}
    for event in events:
        method, parameters = event["method"], event["params"]
        if method == "Network.requestWillBeSent" and parameters["request"]["url"].startswith(("http://", "https://")):
            requests[parameters["requestId"]] = 0
        elif method == "Network.loadingFinished" and parameters["requestId"] in requests:
            requests[parameters["requestId"]] = int(parameters["encodedDataLength"])
    return requests


def _answers(name: str) -> bool:
    with contextlib.suppress(OSError):
        connect(name).close()
        return True
    return False  # the browser may still be starting


def main() -> int:
    """Run the program. Return the exit code: 0, or 1 if Chromium failed or the page was not loaded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("serve", "load"))
    parser.add_argument("name")
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--cacert", default=CACERT)
    parser.add_argument("--proxy", default="")
    options = parser.parse_args()
    try:
        if options.verb == "load":
            print(load(options.name, options.url))
        elif options.name:
            asyncio.run(serve(options.name, options.cacert, options.proxy))
    except (MplabError, OSError) as error:
        print(str(error).splitlines()[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
