"""Run the servers that UI test frameworks start on the emulated device: those of uiautomator2 and of Appium.

The server of uiautomator2 replaces ``u2.jar`` for the client openatx uiautomator2 3.7.1. It answers ``GET /ping``, and
JSON-RPC at ``POST /jsonrpc/0``. The client distinguishes errors by the Java exception in their message.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable

from mplab.device.android.model import PhoneModel
from mplab.device.screen.http import Answer, serve
from mplab.device.screen.protocol import AgentContext, AgentMain, Agents
from mplab.device.screen.scripted import ScriptedScreen
from mplab.device.screen.uimethods import Methods, NoMethodError, ObjectNotFoundError
from mplab.device.screen.webdriver import INSTRUMENTATION, WebDriverService
from mplab.device.screen.webdriver import PORT as WEBDRIVER_PORT

UIAUTOMATOR_PORT = 9008
MAIN_CLASS = "com.wetest.uia2.Main"
_NOT_FOUND, _NO_METHOD, _BAD_PARAMETERS = -32001, -32601, -32602


class UiAutomatorService:
    """The server that uiautomator2's client expects on the device.

    Args:
        screen: screen that the server controls.
        model: phone that the server reports.
    """

    def __init__(self, screen: ScriptedScreen, model: PhoneModel) -> None:
        self._methods = Methods(screen, model)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests on one connection; a callback for `asyncio.start_server`."""
        await serve(reader, writer, self._answer)

    async def _answer(self, method: str, path: str, body: bytes) -> Answer:
        if (method, path) == ("GET", "/ping"):
            return Answer(b"pong", kind="text/plain")
        if (method, path) != ("POST", "/jsonrpc/0"):
            return Answer(b"Not Found", 404, "text/plain")
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": None}
        try:
            request = json.loads(body)
            answer["id"] = request.get("id")
            parameters = request.get("params") or []
            answer["result"] = await self._methods.call(
                request["method"], parameters if isinstance(parameters, list) else []
            )
        except Exception as error:
            answer["error"] = _error(error)
        return Answer(json.dumps(answer).encode())


def _error(error: Exception) -> dict[str, object]:
    match error:
        case ObjectNotFoundError():
            name = "androidx.test.uiautomator.UiObjectNotFoundException"
            return {"code": _NOT_FOUND, "message": name, "data": f"{name}: {error}"}
        case NoMethodError():
            return {"code": _NO_METHOD, "message": "method not found", "data": str(error)}
        case _:
            name = "java.lang.IllegalArgumentException"
            return {"code": _BAD_PARAMETERS, "message": f"{name}: {error}", "data": type(error).__name__}


Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def automation_agents(screen: ScriptedScreen, model: PhoneModel) -> Agents:
    """Return the servers of uiautomator2 and of Appium's UiAutomator2 driver as agents that can be started.

    Args:
        screen: screen that the servers control.
        model: phone that the servers report.
    """

    async def uiautomator2(context: AgentContext) -> int:
        service = UiAutomatorService(screen, model)
        arguments = list(context.arguments)
        port = int(arguments[arguments.index("-p") + 1]) if "-p" in arguments else UIAUTOMATOR_PORT
        await context.print("[server] INFO: [UiAutomator2Server] Starting Server\n")
        await _serve(service.connected, context.listen(f"tcp:{port}"), asyncio.Event())
        return 0

    async def appium(context: AgentContext) -> int:
        ended = asyncio.Event()
        service = WebDriverService(screen, model, ended.set)
        await context.print("INSTRUMENTATION_STATUS: numtests=1\nINSTRUMENTATION_STATUS_CODE: 1\n")
        await _serve(service.connected, context.listen(f"tcp:{WEBDRIVER_PORT}"), ended)
        await context.print("INSTRUMENTATION_CODE: -1\n")
        return 0

    agents: dict[str, AgentMain] = {MAIN_CLASS: uiautomator2, INSTRUMENTATION: appium}
    return agents


async def _serve(connected: Connected, sock: socket.socket, ended: asyncio.Event) -> None:
    """Serve connections to `sock` until `ended` is set or this task is cancelled. Then abort all open connections."""
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
