"""Run the agents that UI test frameworks start on the emulated device."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from mplab.device.screen.agents import AgentContext, AgentMain, Agents
from mplab.device.screen.facts import DeviceFacts
from mplab.device.screen.protocol import Screen
from mplab.device.screen.uiautomator import MAIN_CLASS, UiAutomatorService
from mplab.device.screen.uiautomator import PORT as UIAUTOMATOR_PORT
from mplab.device.screen.webdriver import INSTRUMENTATION, WebDriverService
from mplab.device.screen.webdriver import PORT as WEBDRIVER_PORT

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def automation_agents(
    screen: Screen, facts: DeviceFacts | None = None, screen_on: Callable[[], bool] = lambda: True
) -> Agents:
    """Return the servers of uiautomator2 and of Appium's UiAutomator2 driver.

    Args:
        screen: screen that they control.
        facts: facts that they report about the device.
        screen_on: returns whether the display is on.
    """

    async def uiautomator2(context: AgentContext) -> int:
        service = UiAutomatorService(screen, facts, screen_on)
        arguments = list(context.arguments)
        port = int(arguments[arguments.index("-p") + 1]) if "-p" in arguments else UIAUTOMATOR_PORT
        await context.print("[server] INFO: [UiAutomator2Server] Starting Server\n")
        await _serve(service.connected, context.listen(f"tcp:{port}"), asyncio.Event())
        return 0

    async def appium(context: AgentContext) -> int:
        ended = asyncio.Event()
        service = WebDriverService(screen, facts, ended.set)
        await context.print("INSTRUMENTATION_STATUS: numtests=1\nINSTRUMENTATION_STATUS_CODE: 1\n")
        await _serve(service.connected, context.listen(f"tcp:{WEBDRIVER_PORT}"), ended)
        await context.print("INSTRUMENTATION_CODE: -1\n")
        return 0

    agents: dict[str, AgentMain] = {MAIN_CLASS: uiautomator2, INSTRUMENTATION: appium}
    return agents


async def _serve(connected: Connected, sock: socket.socket, ended: asyncio.Event) -> None:
    """Serve until `ended` is set or this task is cancelled. Then close all connections, like a process that ends."""
    writers: set[asyncio.StreamWriter] = set()

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            await connected(reader, writer)
        finally:
            writers.discard(writer)

    server = await asyncio.start_server(tracked, sock=sock)
    try:
        await ended.wait()
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
