"""The commands of the phone: one module for each kind."""

from collections.abc import Mapping

from mplab.device.android.android import Command
from mplab.device.android.commands import (
    am,
    cmd,
    display,
    dumpsys,
    identity,
    log,
    pm,
    processes,
    properties,
    settings,
    su,
    touch,
)

COMMANDS: Mapping[str, Command] = {
    **identity.COMMANDS,
    **properties.COMMANDS,
    **settings.COMMANDS,
    **su.COMMANDS,
    **log.COMMANDS,
    **processes.COMMANDS,
    **touch.COMMANDS,
    **display.COMMANDS,
    **pm.COMMANDS,
    **am.COMMANDS,
    **cmd.COMMANDS,
    **dumpsys.COMMANDS,
}
"""Name → what answers it."""

NEED_SERVICES = frozenset(
    {"am", "cmd", "dumpsys", "input", "monkey", "pm", "screencap", "screenrecord", "settings", "svc", "uiautomator"}
    | {"wm"}
)
"""Commands that talk to Android's services: there are none until the phone has booted."""
