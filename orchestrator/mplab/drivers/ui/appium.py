"""Run Appium, a server that automates browsers and phone apps, as a child process on a loopback port."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.fetched import SETUP
from mplab.base.places import cache_folder
from mplab.base.polling import wait_until
from mplab.base.ports import free_port
from mplab.base.programs import APPIUM_DIR, NODE

CODE_DIR = cache_folder("node")
"""Folder where Node keeps compiled code (18 MB), which saves a third of the time that Appium takes to start."""
READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5.0
_POLL_S = 0.05
_STATUS_TIMEOUT_S = 2.0


class AppiumServer:
    """Appium server with its drivers for Chromium and Android; it runs during its context.

    Args:
        log: file for the output of Appium.
        appium_dir: folder with ``package.json`` and ``node_modules``; it is Appium's home.
        node: the Node.js program; by default mplab's.
    """

    def __init__(self, log: Path, *, appium_dir: Path = APPIUM_DIR, node: Path | None = None) -> None:
        self.log = log
        self._dir = appium_dir
        self._node = node
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """URL of the server: ``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            LabNotReadyError: Appium is not installed, has ended, or did not answer within 60 s.
        """
        main = self._dir / "node_modules" / "appium" / "index.js"
        if not main.exists():
            raise LabNotReadyError(f"appium was not found ({main}); install it: {SETUP}")
        self.port = free_port()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        argv = [str(self._node or NODE.path()), str(main), "server", "--address", "127.0.0.1"]
        argv += ["--port", str(self.port), "--log-no-colors", "--log-timestamp", "--log-level", "info"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    "NODE_COMPILE_CACHE": str(CODE_DIR),
                    **android_home(),
                    **os.environ,
                    "APPIUM_HOME": str(self._dir),
                },
                start_new_session=True,
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def revive(self) -> list[str]:
        """Start the server again, on another port, if it has ended unexpectedly.

        Returns:
            One sentence about the restart; [] if the server was still running or was never started.

        Raises:
            LabNotReadyError: the server did not start.
        """
        if self._process is None or self._process.poll() is None:
            return []
        self.stop()
        self.start()
        return ["appium had ended and was started again"]

    def check_alive(self) -> None:
        """Raise DeviceError when the server has ended unexpectedly."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise DeviceError("appium", f"has ended by itself ({code}); see {self.log}")

    def stop(self) -> None:
        """Stop the server and its children: SIGTERM, then SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the whole session, including drivers that still run
        process.wait()

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        def answers() -> bool:
            if self._answers():
                return True
            if (code := process.poll()) is not None:
                raise LabNotReadyError(f"appium has ended ({code}) before it was ready; see {self.log}")
            return False

        if not wait_until(answers, READY_TIMEOUT_S, interval_s=_POLL_S):
            raise LabNotReadyError(f"appium: no answer after {READY_TIMEOUT_S:g} s; see {self.log}")

    def _answers(self) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/status", timeout=_STATUS_TIMEOUT_S) as answer:
                return bool(json.load(answer)["value"]["ready"])
        except (OSError, ValueError, KeyError, urllib.error.URLError):
            return False


def android_home() -> dict[str, str]:
    """Return ``{"ANDROID_HOME": FOLDER}`` of the Android SDK that contains the adb in ``PATH``; {} if none does.

    Appium's driver needs only adb of the SDK, unless it must install its server on phones.
    """
    adb = shutil.which("adb")
    folder = Path(adb).resolve().parent if adb else None
    return {"ANDROID_HOME": str(folder.parent)} if folder and folder.name == "platform-tools" else {}
