"""Define `Android`: the state and the services that the phone's commands use."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from mplab.device.android.processes import Processes
from mplab.device.android.radios import RadioControl
from mplab.device.android.state import State
from mplab.device.calls import Call
from mplab.device.network import Network
from mplab.device.screen.protocol import Agents
from mplab.device.system import System


class Android:
    """State, processes, radios and screen of one phone.

    Args:
        state: its state.
        system: its processes and files.
        network: its interfaces.
        agents: programs of UI test frameworks that can be started.
        listen: makes a listening socket inside the phone, e.g. at ``tcp:9008``.
        reboot: starts a reboot; its argument is the reason.
    """

    def __init__(
        self,
        state: State,
        system: System,
        network: Network,
        *,
        agents: Agents,
        listen: Callable[[str], socket.socket],
        reboot: Callable[[str], None],
    ) -> None:
        self.state = state
        self.system = system
        self.network = network
        self.agents = agents
        self.listen = listen
        self.reboot = reboot
        self.processes = Processes(state, system)
        self.radios = RadioControl(state, network)
        self.booted = False
        self.running_agents: dict[str, asyncio.Task[int]] = {}
        self.broadcast_listeners: list[Callable[[str, str, dict[str, str]], None]] = []
        """Functions called with every broadcast: action, component, extras."""

    def start(self) -> None:
        """Start the services after a boot."""
        self.booted = True
        self.radios.start()
        self.state.log.add("SystemServer", "Boot completed")

    async def stop(self) -> None:
        """Stop the services before a reboot, and at the end."""
        self.booted = False
        await self.radios.stop()
        self.state.radios.wifi_up = self.state.radios.data_up = False
        for task in self.running_agents.values():
            task.cancel()
        self.processes.forget()
        self.state.screen.reboot()

    async def follow_screen(self) -> None:
        """Start the process of the app in front, unless it is part of the system."""
        package = self.state.packages.get(self.state.screen.focus()[0])
        if package is not None and not package.info.system:
            await self.processes.start(package)


Command = Callable[[Android, Call], Awaitable[int]]
"""Function that answers a command of the phone and returns the exit code."""
