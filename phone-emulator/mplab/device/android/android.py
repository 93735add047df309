"""Define `Android`: the state and the services of an emulated phone, which its commands use."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from mplab.device.android.processes import Processes
from mplab.device.android.radios import RadioControl
from mplab.device.android.state import State
from mplab.device.calls import CommandCall
from mplab.device.network import DeviceNetwork
from mplab.device.screen.protocol import Agents
from mplab.device.system import System


class Android:
    """One emulated phone, as its commands see it.

    Args:
        state: state of the phone that commands read and change.
        system: processes and files of the phone.
        network: interfaces of the phone.
        agents: programs of UI test frameworks that can be started on the phone.
        listen: function that opens a listening socket inside the phone, e.g. at ``tcp:9008``.
        reboot: function that starts a reboot; its argument is the reason.
    """

    def __init__(
        self,
        state: State,
        system: System,
        network: DeviceNetwork,
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
        """Functions that are called for every broadcast of ``am``, with its action, component and extras."""

    def start(self) -> None:
        """Start Android's services and the radios. Call after each boot."""
        self.booted = True
        self.radios.start()
        self.state.log.add("SystemServer", "Boot completed")

    async def stop(self) -> None:
        """Stop Android's services, radios, agents and apps. Call before a reboot, and at the end."""
        self.booted = False
        await self.radios.stop()
        self.state.radios.wifi_up = self.state.radios.data_up = False
        for task in self.running_agents.values():
            task.cancel()
        self.processes.forget()
        self.state.screen.reboot()

    async def follow_screen(self) -> None:
        """Start the process of the app in front if it does not run. Apps of the system have no process."""
        package = self.state.packages.get(self.state.screen.focus()[0])
        if package is not None and not package.info.system:
            await self.processes.start(package)


Command = Callable[[Android, CommandCall], Awaitable[int]]
"""Function that answers a call of one of the phone's commands, and returns the command's exit code."""
