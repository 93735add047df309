"""Run a device in this process: ``python -m mplab.device serve SETTINGS`` (JSON), in a separate mount namespace.

The process prints one line of JSON when the device is up. It ends on SIGTERM, SIGINT or SIGHUP, and when its standard
input is closed, which happens when its parent ends. The device's files are in a tmpfs of this process, and its
programs in a PID namespace: both end with the process.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from mplab.base.errors import MplabError
from mplab.base.programs import CHROMIUM, IMPORT_PATH, NSENTER
from mplab.device.android.commands.cmd import switch
from mplab.device.android.model import PhoneModel, load_phone
from mplab.device.apps import ready_apps
from mplab.device.control import ControlMessage, ControlServer, control_name
from mplab.device.emulated import EmulatedDevice
from mplab.device.faults import FAULTS, cause
from mplab.device.screen import ScriptedScreen, load_script
from mplab.device.screen.automation import automation_agents
from mplab.device.screen.protocol import Agents
from mplab.device.settings import DeviceSettings

DEVTOOLS = "chrome_devtools_remote"
"""Abstract socket for the DevTools of Chrome on Android; here it leads to this machine's Chromium, if installed."""
_SDCARD = "/sdcard"
_OWN = Path("/dev/shm")  # noqa: S108 - hidden below by a tmpfs of this process


def make_runtime() -> Path:
    """Return an empty folder in a new tmpfs that only this process sees. Call only in its own mount namespace."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "mplab-device", str(_OWN)], check=True)
    runtime = _OWN / "mplab-device"
    runtime.mkdir()
    return runtime


async def serve(settings: DeviceSettings) -> int:
    """Run a device until a signal arrives or standard input ends. Return the exit code of the process."""
    model = load_phone(settings.phone)
    runtime = make_runtime()
    screen, agents = make_screen(settings, model, runtime, lambda: device.system.pid)
    device = EmulatedDevice(settings, model, screen, agents, runtime)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    control = ControlServer(control_name(device.state.serial), _Operations(device))
    try:
        await device.start()
        await control.start()
        _watch_parent(loop, ended)
        print(json.dumps({"event": "ready", **facts(device)}), flush=True)
        await ended.wait()
    finally:
        with contextlib.suppress(OSError):
            await control.stop()
        await device.stop()
    return 0


def make_screen(
    settings: DeviceSettings, model: PhoneModel, runtime: Path, system_pid: Callable[[], int]
) -> tuple[ScriptedScreen, Agents]:
    """Return the screen of a device, and the agents of UI test frameworks that control this screen.

    Args:
        settings: settings of the device.
        model: phone that the device emulates.
        runtime: folder with the device's files, a path in this process.
        system_pid: function that returns the id of the device's first process, once the device is up.
    """
    screen = ScriptedScreen(
        [*ready_apps(), *(load_script(Path(path)) for path in settings.app_files)] if settings.apps else [],
        width=model.screen.width,
        height=model.screen.height,
        enter=lambda: _network(settings, system_pid()),
        folder=lambda name: _folder(runtime, name),
        # Modules of mplab must be found from any working directory.
        environment={"PYTHONPATH": IMPORT_PATH},
        variables={"devtools": DEVTOOLS if CHROMIUM.find() else "", **dict(settings.app_variables)},
    )
    return screen, automation_agents(screen, model)


def _network(settings: DeviceSettings, system_pid: int) -> Sequence[str]:
    """Return the words that must precede a command line to run it in the device's network.

    If the device uses the network of a lab's node, the command also uses that node's name server.
    """
    pid = settings.network_pid
    return [str(NSENTER.path()), f"--target={pid or system_pid}", "--net", *(["--mount"] if pid else []), "--"]


def _folder(runtime: Path, name: str) -> Path | None:
    """Return the path on this machine of the device's folder `name`, valid in every mount namespace of this lab.

    Return None for a folder outside of ``/sdcard``, which apps cannot see.
    """
    if name != _SDCARD and not name.startswith(f"{_SDCARD}/"):
        return None
    return Path(f"/proc/{os.getpid()}/root{runtime}") / "data/media/0" / name.removeprefix(_SDCARD).lstrip("/")


def facts(device: EmulatedDevice) -> ControlMessage:
    """Return facts about a running device: serial number, address of adbd, model, control socket, process ids, …"""
    state = device.state
    host = device._settings.host
    return {
        "serial": state.serial,
        "address": f"{f'[{host}]' if ':' in host else host}:{device.adbd.port}",
        "host": host,
        "port": device.adbd.port,
        "model": state.model.model,
        "android": state.model.android,
        "rooted": state.rooted,
        "mptcp": state.model.mptcp,
        "control": control_name(state.serial),
        "pid": os.getpid(),
        "system_pid": device.system.pid,
    }


def _watch_parent(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    def read() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            ended.set()

    with contextlib.suppress(PermissionError):  # a regular file or /dev/null: there is no parent to watch
        loop.add_reader(0, read)


class _Operations:
    """Function that carries out requests of the control socket: ``fault``, ``faults``, ``state`` and ``switch``."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device

    async def __call__(self, request: ControlMessage) -> ControlMessage:
        operation = request.pop("op")
        state = self._device.state
        if operation == "fault":
            return {"result": await cause(self._device, request.pop("name"), request)}
        if operation == "faults":
            return {"faults": sorted(FAULTS)}
        if operation == "state":
            radios, battery = vars(state.radios), vars(state.battery)
            return {
                **facts(self._device),
                "radios": radios,
                "battery": battery,
                "booted": self._device.android.booted,
                "awake": state.awake,
                "adb_root": state.adb_root,
                "focus": state.screen.focus(),
                "agents": sorted(self._device.android.running_agents),
                "multipath": state.multipath,
                "log": [f"{line.tag}: {line.text}" for line in state.log.lines()[-20:]],
            }
        if operation == "switch":
            switch(self._device.android, request["what"], on=request["on"])
            return {}
        raise ValueError(f"unknown operation {operation!r}")


def main(argv: list[str]) -> int:
    """Parse `argv` as ``serve SETTINGS``, run the device, and return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="mplab device: %(levelname)s %(name)s: %(message)s")
    if len(argv) != 2 or argv[0] != "serve":
        print("usage: python -m mplab.device serve SETTINGS", file=sys.stderr)
        return 2
    try:
        return asyncio.run(serve(TypeAdapter(DeviceSettings).validate_json(argv[1])))
    except (MplabError, OSError) as error:
        code = error.exit_code if isinstance(error, MplabError) else MplabError.exit_code
        print(json.dumps({"event": "failed", "error": str(error), "exit_code": code}), flush=True)
        return code
