"""Define `Device`, a context manager that runs an emulated device in a separate process."""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from types import TracebackType
from typing import Self

from mplab.base.errors import DeviceError, InputError
from mplab.base.nodes import Node
from mplab.base.programs import UNSHARE
from mplab.device.control import ControlMessage, ask
from mplab.device.settings import DeviceSettings
from mplab.device.system.toolbox import NEEDED

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 15.0


class Device:
    """An emulated device in a separate process. As a context manager it runs from entry to exit.

    Args:
        settings: settings of the device.
        node: node of a lab whose network the device uses, like the lab's ``phone``. Without a node, the device has a
            private network: ``wlan0`` and ``rmnet0``, each with a router that forwards nothing.
    """

    def __init__(self, settings: DeviceSettings | None = None, node: Node | None = None) -> None:
        settings = settings or DeviceSettings()
        self._settings = replace(settings, network_pid=node.pid) if node else settings
        self._process: subprocess.Popen[str] | None = None
        self._facts: ControlMessage = {}

    def __enter__(self) -> Self:
        """Start the device, and wait until adb can connect.

        Raises:
            LabNotReadyError: a program that the emulator needs is missing.
            InputError: the phone file is wrong.
            DeviceError: the device cannot be started.
        """
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the device."""
        self.stop()

    def start(self) -> None:
        """Start the device, and wait until adb can connect. Raises the errors of `__enter__`."""
        for program in NEEDED:
            program.path()
        self._process = subprocess.Popen(
            device_argv(self._settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not reach it: its parent ends it, in its own order
        )
        assert self._process.stdout is not None  # noqa: S101 - PIPE was asked for
        line = self._process.stdout.readline()
        facts = json.loads(line) if line.startswith("{") else {"event": "failed", "error": "it ended at once"}
        if facts.pop("event") != "ready":
            self.stop()
            if facts.get("exit_code") == InputError.exit_code:
                raise InputError(facts["error"])
            raise DeviceError("emulated device", facts["error"])
        self._facts = facts

    def stop(self) -> None:
        """Stop the device. None of its processes and files remain."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def running(self) -> bool:
        """Return whether the device's process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Return the id of the process that runs the emulator."""
        return int(self._facts["pid"])

    @property
    def address(self) -> str:
        """Return the address for ``adb connect``, like ``127.0.0.1:40123``; adb also uses it as the device's serial."""
        return str(self._facts["address"])

    @property
    def serial(self) -> str:
        """Return the serial number of the phone: the value of ``getprop ro.serialno``."""
        return str(self._facts["serial"])

    @property
    def facts(self) -> ControlMessage:
        """Return facts about the device: its serial number, address, model, … (see `process.facts`)."""
        return dict(self._facts)

    def fault(self, name: str, **parameters: object) -> ControlMessage:
        """Cause the fault `name` of `faults.FAULTS`; ``clear`` ends faults. Return its result: for most faults, {}.

        Raises:
            DeviceError: the device does not answer, or refuses the fault or its parameters.
        """
        return dict(self.ask({"op": "fault", "name": name, **parameters}).get("result", {}))

    def state(self) -> ControlMessage:
        """Return the device's radios, battery, app in front, running agents and last log lines. Raises DeviceError."""
        return self.ask({"op": "state"})

    def ask(self, request: ControlMessage) -> ControlMessage:
        """Send a request to the device's control socket, and return the answer. Raises DeviceError."""
        return ask(self._facts["control"], request)


def device_argv(settings: DeviceSettings) -> list[str]:
    """Return the command line of the process that runs a device with these settings, in the foreground."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    python = [sys.executable, "-m", "mplab.device", "serve", json.dumps(asdict(settings))]
    return [str(UNSHARE.path()), *user, "--mount", "--", *python]
