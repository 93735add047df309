"""Define what the screen shares with Android: installed apps and agents.

Agents are programs of UI test frameworks on the device, which ``app_process`` or ``am instrument`` start.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class InstalledPackage:
    """An app on the phone.

    Attributes:
        name: ``com.dropbox.android``.
        version: ``versionName``, for users.
        version_code: ``versionCode``, which grows with every release.
        activity: activity that its icon starts, like ``.MainActivity``; "": it has no icon.
        system: part of the system image: it cannot be uninstalled, only disabled.
    """

    name: str
    version: str = "1.0"
    version_code: int = 1
    activity: str = ".MainActivity"
    system: bool = False


@dataclass(frozen=True)
class AgentContext:
    """The context of a started agent.

    Attributes:
        arguments: words after its name on the command line, or ``-e KEY VALUE`` of ``am instrument``.
        listen: makes a listening socket inside the device, like ``listen("tcp:9008")``; raises OSError.
        print: writes to its standard output.
    """

    arguments: Sequence[str]
    listen: Callable[[str], socket.socket]
    print: Callable[[str], Awaitable[None]]


AgentMain = Callable[[AgentContext], Awaitable[int]]
"""Function that runs in the device's event loop and returns an exit code. Its cancellation is a kill of its process."""

Agents = Mapping[str, AgentMain]
"""Agents by main class (``com.wetest.uia2.Main``) or instrumentation (``io.appium.uiautomator2.server.test/…``)."""
