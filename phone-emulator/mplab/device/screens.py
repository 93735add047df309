"""Make the screen and the agents of a device."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from mplab.base.programs import CHROMIUM, IMPORT_PATH, NSENTER
from mplab.device.android.model import PhoneModel
from mplab.device.apps import ready_apps
from mplab.device.screen import ScriptedScreen, load_script
from mplab.device.screen.automation import automation_agents
from mplab.device.screen.protocol import Agents, DeviceFacts
from mplab.device.settings import DeviceSettings

DEVTOOLS = "chrome_devtools_remote"
"""Abstract socket of Chrome on Android; here it leads to Chromium, if that is installed."""
_SDCARD = "/sdcard"


def make_screen(
    settings: DeviceSettings, model: PhoneModel, runtime: Path, system_pid: Callable[[], int]
) -> tuple[ScriptedScreen, Agents]:
    """Return the screen of a device, and the UI agents that work on it.

    Args:
        settings: settings of the device.
        model: phone that it emulates.
        runtime: folder with the device's files, a path in the device's process.
        system_pid: returns the id of its first process, once it is up.
    """
    width, height = model.screen.width, model.screen.height
    screen = ScriptedScreen(
        [*ready_apps(), *(load_script(Path(path)) for path in settings.app_files)] if settings.apps else [],
        width=width,
        height=height,
        enter=lambda: _network(settings, system_pid()),
        folder=lambda name: _folder(runtime, name),
        # Modules of mplab must be found from any working directory.
        environment={"PYTHONPATH": IMPORT_PATH},
        variables={"devtools": DEVTOOLS if CHROMIUM.find() else "", **dict(settings.app_variables)},
    )
    facts = DeviceFacts(
        product=model.product,
        sdk=model.sdk,
        width=width,
        height=height,
        density=model.screen.density,
        model=model.model,
        manufacturer=model.manufacturer,
        release=str(model.android),
    )
    return screen, automation_agents(screen, facts)


def _network(settings: DeviceSettings, system_pid: int) -> Sequence[str]:
    """Return the command prefix that runs an app's program in the device's network.

    On a node of a lab, the program also uses the name server of the node.
    """
    pid = settings.network_pid
    return [str(NSENTER.path()), f"--target={pid or system_pid}", "--net", *(["--mount"] if pid else []), "--"]


def _folder(runtime: Path, name: str) -> Path | None:
    """Return a path of the device folder `name` that is valid in every mount namespace of this lab.

    None for folders outside of ``/sdcard``: apps cannot see them.
    """
    if name != _SDCARD and not name.startswith(f"{_SDCARD}/"):
        return None
    return Path(f"/proc/{os.getpid()}/root{runtime}") / "data/media/0" / name.removeprefix(_SDCARD).lstrip("/")
