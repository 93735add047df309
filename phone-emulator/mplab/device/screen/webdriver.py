"""Answer the requests of Appium's UiAutomator2 driver to a device: those of WebDriver (W3C), and Appium's own.

Paths and bodies are those of appium-uiautomator2-server 10, as appium-uiautomator2-driver 8 uses them.
"""

import asyncio
import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from mplab.base.hierarchy import Bounds, write_hierarchy
from mplab.device.android.model import PhoneModel
from mplab.device.screen.elements import ATTRIBUTES, ELEMENT_KEY, Elements, WebDriverError
from mplab.device.screen.hands import Hands
from mplab.device.screen.http import Answer, serve
from mplab.device.screen.locators import WrongSelectorError, at, locate
from mplab.device.screen.picture import encoded
from mplab.device.screen.scripted import NAVIGATION_BAR, STATUS_BAR, ScriptedScreen

PORT = 6790
SERVER_PACKAGE = "io.appium.uiautomator2.server"
INSTRUMENTATION = f"{SERVER_PACKAGE}.test/androidx.test.runner.AndroidJUnitRunner"
_STATUS = {"no such element": 404, "stale element reference": 404, "unknown command": 404, "invalid session id": 404}
_BAD_REQUEST, _UNKNOWN = 400, 500
Body = Mapping[str, Any]
"""Parsed JSON body of a request. It is not yet checked: a handler raises an exception if it is wrong."""


class WebDriverService:
    """The server that Appium's UiAutomator2 driver expects on the device.

    Args:
        screen: screen that the server controls.
        model: phone that the server reports.
        ended: function that ends the server. It is called 0.1 s after the session was deleted, when the process of the
            real server ends, too.
    """

    def __init__(self, screen: ScriptedScreen, model: PhoneModel, ended: Callable[[], object]) -> None:
        self._hands = Hands(screen)
        self._screen = screen
        self._model = model
        self._ended = ended
        self._session = ""
        self._capabilities: Mapping[str, object] = {}
        self._settings: dict[str, object] = {}
        self._elements = Elements(self._hands)
        self._routes = _routes(self)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests on one connection; a callback for `asyncio.start_server`."""
        await serve(reader, writer, self._answer)

    async def _answer(self, method: str, target: str, body: bytes) -> Answer:
        path = target.partition("?")[0].rstrip("/")
        try:
            value = self._call(method, path, json.loads(body) if body else {})
            return Answer(json.dumps({"sessionId": self._session or None, "value": value}).encode())
        except WebDriverError as error:
            status = _STATUS.get(error.error, _BAD_REQUEST)
            return _failure(error.error, str(error), status, self._session)
        except WrongSelectorError as error:
            return _failure("invalid selector", str(error), _BAD_REQUEST, self._session)
        except (KeyError, TypeError, ValueError) as error:
            return _failure("invalid argument", f"{type(error).__name__}: {error}", _BAD_REQUEST, self._session)

    def _call(self, method: str, path: str, body: Body) -> object:
        session = re.fullmatch(r"/session/([^/]+)(/.*)?", path)
        if session:
            if session[1] != self._session:
                raise WebDriverError("invalid session id", f"there is no session {session[1]}")
            path = f"/session/ID{session[2] or ''}"
        for verb, pattern, handler in self._routes:
            match = pattern.fullmatch(path) if verb == method else None
            if match:
                return handler(body, *match.groups())
        raise WebDriverError("unknown command", f"{method} {path}")

    # Handlers: their arguments are the body, and the variable parts of the path.

    def status(self, _body: Body) -> dict[str, object]:
        """Return the status of the server: it is always ready."""
        return {"ready": True, "message": "UiAutomator2 Server is ready to accept commands"}

    def sessions(self, _body: Body) -> list[dict[str, object]]:
        """Return the open session with its capabilities, as a list of at most one."""
        return [{"id": self._session, "capabilities": dict(self._capabilities)}] if self._session else []

    def new_session(self, body: Body) -> dict[str, object]:
        """Open a session with the requested capabilities. Return its id and these capabilities."""
        wanted = body["capabilities"]
        self._capabilities = {**wanted.get("alwaysMatch", {}), **(wanted.get("firstMatch") or [{}])[0]}
        self._session = str(uuid.uuid4())
        self._elements.clear()
        return {"sessionId": self._session, "capabilities": dict(self._capabilities)}

    def session(self, _body: Body) -> dict[str, object]:
        """Return the capabilities that were requested when the session was opened."""
        return dict(self._capabilities)

    def delete_session(self, _body: Body) -> None:
        """Close the session. The server ends 0.1 s later."""
        self._session = ""
        asyncio.get_running_loop().call_later(0.1, self._ended)

    def element(self, body: Body) -> dict[str, str]:
        """Return the reference of the first element that the body's selector finds. Raises WebDriverError if none."""
        elements = self.elements(body)
        if not elements:
            message = "An element could not be located on the page using the given search parameters"
            raise WebDriverError("no such element", message)
        return elements[0]

    def elements(self, body: Body) -> list[dict[str, str]]:
        """Return the references of all elements that the body's selector finds."""
        strategy = body.get("strategy", body.get("using", ""))
        selector = body.get("selector", body.get("value", ""))
        return self._elements.find(strategy, selector, body.get("context") or "")

    def active(self, _body: Body) -> dict[str, str]:
        """Return the reference of the element that has the focus. Raises WebDriverError if there is none."""
        return self.element({"strategy": "-android uiautomator", "selector": "new UiSelector().focused(true)"})

    def click(self, _body: Body, name: str) -> None:
        """Tap the element with the reference `name`."""
        self._hands.tap(self._elements.node(name))

    def clear(self, _body: Body, name: str) -> None:
        """Remove the text of a text field; `name` is its reference."""
        self._hands.clear(self._elements.node(name))

    def value(self, body: Body, name: str) -> None:
        """Type the body's text into the text field with the reference `name`; with ``replace``, replace its text."""
        node, text = self._elements.node(name), _typed(body)
        if body.get("replace"):
            self._hands.clear(node)
        elif "focused" not in node.flags:
            self._hands.tap(node)
        self._type(text)

    def keys(self, body: Body) -> None:
        """Type the body's text into the text field that has the focus."""
        self._type(_typed(body))

    def text(self, _body: Body, name: str) -> str:
        """Return the text of the element with the reference `name`."""
        return self._elements.node(name).text

    def name(self, _body: Body, name: str) -> str:
        """Return the description (``content-desc``) of the element with the reference `name`."""
        return self._elements.node(name).description

    def attribute(self, _body: Body, name: str, attribute: str) -> str:
        """Return an attribute of the element with the reference `name`; a flag is ``true`` or ``false``."""
        node = self._elements.node(name)
        if attribute in ATTRIBUTES:
            return ATTRIBUTES[attribute](node)
        flag = attribute.replace("C", "-c")  # longClickable
        return "true" if flag in node.flags else "false"

    def rect(self, _body: Body, name: str) -> dict[str, int]:
        """Return position and size of the element with the reference `name`, pixels."""
        return _rectangle(self._elements.node(name).bounds)

    def element_screenshot(self, _body: Body, name: str) -> str:
        """Return a picture of the element with the reference `name`: PNG, base64-encoded."""
        return base64.b64encode(encoded((self._elements.node(name),))).decode()

    def source(self, _body: Body) -> str:
        """Return the element tree of the screen in Appium's XML format."""
        return write_hierarchy(self._hands.windows(), by_class=True)

    def screenshot(self, _body: Body) -> str:
        """Return a picture of the screen: PNG, base64-encoded."""
        return base64.b64encode(encoded(self._hands.windows())).decode()

    def actions(self, body: Body) -> None:
        """Perform the body's pointer actions (WebDriver) as taps, long taps and swipes of one finger."""
        for source in body["actions"]:
            if source.get("type") != "pointer":
                continue
            points: list[tuple[int, int]] = []
            duration_ms = 0
            at_now = (0, 0)
            for action in source["actions"]:
                duration_ms += int(action.get("duration") or 0)
                if action["type"] == "pointerMove":
                    at_now = round(action["x"]), round(action["y"])
                    points += [at_now] if points else []
                elif action["type"] == "pointerDown":
                    points, duration_ms = [at_now], 0
                elif action["type"] == "pointerUp":
                    self._touched(points, duration_ms)
                    points = []

    def gesture_click(self, body: Body) -> None:
        """Tap the element or the point that the body names."""
        origin, offset = body.get("origin"), body.get("offset")
        if origin:
            self._hands.tap(self._elements.node(origin[ELEMENT_KEY]))
        elif offset:
            self._screen.tap(round(offset["x"]), round(offset["y"]))

    def press_key(self, body: Body) -> bool:
        """Press the key with the body's key code. Return whether the code is known."""
        return self._hands.press_code(int(body["keycode"]))

    def settings(self, _body: Body) -> dict[str, object]:
        """Return name → value of the driver settings that the client has set."""
        return self._settings

    def set_settings(self, body: Body) -> dict[str, object]:
        """Store the body's driver settings. Return all stored settings."""
        self._settings |= body["settings"]
        return self._settings

    def device_info(self, _body: Body) -> dict[str, object]:
        """Return Android version, model and display of the device."""
        model, display = self._model, self._model.screen
        return {
            "apiVersion": str(model.sdk),
            "platformVersion": str(model.android),
            "manufacturer": model.manufacturer,
            "model": model.model,
            "brand": model.manufacturer,
            "realDisplaySize": f"{display.width}x{display.height}",
            "displayDensity": display.density,
        }

    def system_bars(self, _body: Body) -> dict[str, object]:
        """Return the heights and bounds of status bar and navigation bar, pixels."""
        display = self._model.screen
        bar = {"visible": True, "x": 0, "y": 0, "width": display.width, "height": STATUS_BAR}
        below = {**bar, "y": display.height - NAVIGATION_BAR, "height": NAVIGATION_BAR}
        return {"statusBar": STATUS_BAR, "status": bar, "navigationBar": below}

    def pixel_ratio(self, _body: Body) -> float:
        """Return the number of pixels for each density-independent pixel."""
        return self._model.screen.density / 160

    def density(self, _body: Body) -> int:
        """Return the density of the display, dots per inch."""
        return self._model.screen.density

    def size(self, _body: Body) -> dict[str, int]:
        """Return the size of the screen, pixels."""
        return {"width": self._model.screen.width, "height": self._model.screen.height}

    def alert_text(self, _body: Body) -> str:
        """Return the title of the Android dialog on the screen. Raises WebDriverError if no dialog is shown."""
        titles = locate(self._hands.windows(), "xpath", "//*[@resource-id='android:id/alertTitle']")
        node = at(self._hands.windows(), titles[0]) if titles else None
        if node is None:
            raise WebDriverError("no such alert", "there is no dialog")
        return node.text

    def nothing(self, _body: Body) -> None:
        """Do nothing: handler of requests that have no effect on the emulated device."""

    def orientation(self, _body: Body) -> str:
        """Return the orientation of the screen, which is always ``PORTRAIT``."""
        return "PORTRAIT"

    def _touched(self, points: list[tuple[int, int]], duration_ms: int) -> None:
        if points and all(point == points[0] for point in points):
            self._hands.press_at(*points[0], duration_ms)
        else:
            self._hands.drag(points, duration_ms)

    def _type(self, text: str) -> None:
        *lines, last = text.split("\n")
        for line in lines:
            self._screen.text(line)
            self._screen.key("ENTER")
        if last:
            self._screen.text(last)


def _routes(service: WebDriverService) -> list[tuple[str, re.Pattern[str], Callable[..., object]]]:
    element_path = "/session/ID/element/([^/]+)"
    table: list[tuple[str, str, Callable[..., object]]] = [
        ("GET", "/status", service.status),
        ("GET", "/sessions", service.sessions),
        ("POST", "/session", service.new_session),
        ("GET", "/session/ID", service.session),
        ("DELETE", "/session/ID", service.delete_session),
        ("POST", "/session/ID/element", service.element),
        ("POST", "/session/ID/elements", service.elements),
        ("GET", "/session/ID/element/active", service.active),
        ("POST", f"{element_path}/click", service.click),
        ("POST", f"{element_path}/clear", service.clear),
        ("POST", f"{element_path}/value", service.value),
        ("GET", f"{element_path}/text", service.text),
        ("GET", f"{element_path}/name", service.name),
        ("GET", f"{element_path}/attribute/([^/]+)", service.attribute),
        ("GET", f"{element_path}/(?:rect|location|size)", service.rect),
        ("GET", f"{element_path}/screenshot", service.element_screenshot),
        ("POST", "/session/ID/keys", service.keys),
        ("GET", "/session/ID/source", service.source),
        ("GET", "/session/ID/screenshot", service.screenshot),
        ("POST", "/session/ID/actions", service.actions),
        ("DELETE", "/session/ID/actions", service.nothing),
        ("POST", "/session/ID/appium/gestures/click", service.gesture_click),
        ("POST", "/session/ID/appium/device/press_keycode", service.press_key),
        ("GET", "/session/ID/appium/settings", service.settings),
        ("POST", "/session/ID/appium/settings", service.set_settings),
        ("GET", "/session/ID/appium/device/info", service.device_info),
        ("GET", "/session/ID/appium/device/system_bars", service.system_bars),
        ("GET", "/session/ID/appium/device/pixel_ratio", service.pixel_ratio),
        ("GET", "/session/ID/appium/device/display_density", service.density),
        ("GET", "/session/ID/window/current/size", service.size),
        ("GET", "/session/ID/alert/text", service.alert_text),
        ("GET", "/session/ID/orientation", service.orientation),
        ("POST", "/session/ID/timeouts", service.nothing),
    ]
    return [(method, re.compile(pattern), handler) for method, pattern, handler in table]


def _typed(body: Body) -> str:
    text = body.get("text", body.get("value", ""))
    return "".join(text) if isinstance(text, list) else str(text)


def _rectangle(bounds: Bounds) -> dict[str, int]:
    return {
        "x": bounds.left,
        "y": bounds.top,
        "width": bounds.right - bounds.left,
        "height": bounds.bottom - bounds.top,
    }


def _failure(error: str, message: str, status: int, session: str) -> Answer:
    value = {"error": error, "message": message, "stacktrace": ""}
    return Answer(json.dumps({"sessionId": session or None, "value": value}).encode(), status)
