"""Serve uiautomator2's client on a device: ``GET /ping`` and JSON-RPC at ``POST /jsonrpc/0``.

The client is openatx's uiautomator2 3.7.1, whose own server is ``u2.jar``. The client distinguishes errors by
the Java exception in their message.
"""

import asyncio
import json
from collections.abc import Callable

from mplab.device.screen.facts import DeviceFacts
from mplab.device.screen.http import Answer, serve
from mplab.device.screen.protocol import Screen
from mplab.device.screen.uimethods import Methods, NoMethodError, ObjectNotFoundError

PORT = 9008
MAIN_CLASS = "com.wetest.uia2.Main"
_NOT_FOUND, _NO_METHOD, _BAD_PARAMETERS = -32001, -32601, -32602


class UiAutomatorService:
    """The server that uiautomator2's client expects on the device.

    Args:
        screen: screen that it controls.
        facts: facts that it reports about the device.
        screen_on: returns whether the display is on.
    """

    def __init__(
        self, screen: Screen, facts: DeviceFacts | None = None, screen_on: Callable[[], bool] = lambda: True
    ) -> None:
        self._methods = Methods(screen, facts or DeviceFacts(), screen_on)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; a callback for `asyncio.start_server`."""
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
