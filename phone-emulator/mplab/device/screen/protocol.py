"""Define the types that the screen shares with the emulation of Android: installed apps and agents.

Agents are programs of UI test frameworks on the device, started by ``app_process`` or ``am instrument``.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class InstalledPackage:
    """An app that is installed on the phone.

    Attributes:
        name: package name, like ``com.dropbox.android``.
        version: ``versionName``, the version for users.
        version_code: ``versionCode``, which grows with every release.
        activity: activity that the app's icon starts, like ``.MainActivity``; "": the app has no icon.
        system: True: the app is part of the system image. It cannot be uninstalled, only disabled.
    """

    name: str
    version: str = "1.0"
    version_code: int = 1
    activity: str = ".MainActivity"
    system: bool = False


@dataclass(frozen=True)
class AgentContext:
    """Arguments and functions for an agent that is started.

    Attributes:
        arguments: words after the agent's name on the command line, or options ``-e KEY VALUE`` of ``am instrument``.
        listen: function that returns a listening socket inside the device, as ``listen("tcp:9008")``; raises OSError.
        print: function that writes to the agent's standard output.
    """

    arguments: Sequence[str]
    listen: Callable[[str], socket.socket]
    print: Callable[[str], Awaitable[None]]


AgentMain = Callable[[AgentContext], Awaitable[int]]
"""Function that runs an agent in the device's event loop, and returns its exit code. Cancel it to kill the agent."""

Agents = Mapping[str, AgentMain]
"""Main class (``com.wetest.uia2.Main``) or instrumentation (``io.appium.uiautomator2.server.test/…``) → agent."""
