"""Programs of a UI framework that run on the device: what ``app_process`` and ``am instrument`` start."""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class AgentContext:
    """What an agent gets when it is started.

    Attributes:
        arguments: what followed its name on the command line, or ``-e KEY VALUE`` of ``am instrument``.
        listen: makes a listening socket inside the device, e.g. ``listen("tcp:9008")``; raises OSError.
        print: writes to its standard output.
    """

    arguments: Sequence[str]
    listen: Callable[[str], socket.socket]
    print: Callable[[str], Awaitable[None]]


AgentMain = Callable[[AgentContext], Awaitable[int]]
"""Runs in the device's event loop until it is cancelled (its process has ended); its exit code."""

Agents = Mapping[str, AgentMain]
"""By main class (``com.wetest.uia2.Main``) or instrumentation (``io.appium.uiautomator2.server.test/…``)."""
