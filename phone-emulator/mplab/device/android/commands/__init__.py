"""Collect the shell commands that the emulated phone answers. Each module of this package has some of them."""

from collections.abc import Mapping

from mplab.device.android.android import Command
from mplab.device.android.commands import (
    agents,
    am,
    cmd,
    display,
    dumpsys,
    identity,
    log,
    pm,
    settings,
    su,
    touch,
)

COMMANDS: Mapping[str, Command] = {
    **identity.COMMANDS,
    **settings.COMMANDS,
    **su.COMMANDS,
    **log.COMMANDS,
    **touch.COMMANDS,
    **display.COMMANDS,
    **pm.COMMANDS,
    **agents.COMMANDS,
    **am.COMMANDS,
    **cmd.COMMANDS,
    **dumpsys.COMMANDS,
}
"""Name of each command → function that answers it."""

NEED_SERVICES = frozenset(
    {"am", "cmd", "dumpsys", "input", "monkey", "pm", "screencap", "screenrecord", "settings", "svc", "uiautomator"}
    | {"wm"}
)
"""Commands that use Android's services, which do not exist until the phone has booted."""
