"""Implement the JSON-RPC methods of uiautomator2's server for the emulated screen.

Names and parameters are those of the client, openatx's uiautomator2 3.7.1. A method such as ``dumpWindowHierarchy`` is
the function ``_do_dump_window_hierarchy`` here.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mplab.base.hierarchy import Bounds, UiNode, write_hierarchy
from mplab.device.android.model import PhoneModel
from mplab.device.screen.hands import LONG_TAP_MS, Hands
from mplab.device.screen.picture import encoded
from mplab.device.screen.scripted import ScriptedScreen
from mplab.device.screen.uiselector import Selector, find

Reference = Selector | str
"""A selector, or the name of a found element that a method such as ``childByText`` has returned."""
_POLL_S = 0.05
_STEP_MS = 5
_MOST_SWIPES = 50


class ObjectNotFoundError(Exception):
    """A needed element is not on the screen; the client gets it as UiObjectNotFoundException."""


class NoMethodError(Exception):
    """The server has no method with the requested name."""


class Methods:
    """The methods of uiautomator2's server.

    Args:
        screen: screen that the methods control.
        model: phone that the methods report.
    """

    def __init__(self, screen: ScriptedScreen, model: PhoneModel) -> None:
        self._hands = Hands(screen)
        self._screen = screen
        self._model = model
        self._objects: dict[str, tuple[Reference, Selector, int | None]] = {}
        """Name of a found element → its container, the selector inside it, the index among the matches or None."""
        self._last_toast = ""

    async def call(self, method: str, parameters: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON
        """Call a method of the server, and return its result.

        Raises:
            NoMethodError: there is no method with this name.
            ObjectNotFoundError: an element that the method needs is missing.
            TypeError, ValueError: the parameters are wrong.
        """
        handler = getattr(self, f"_do_{_snake(method)}", None)
        if handler is None:
            raise NoMethodError(method)
        result = handler(*parameters)
        return await result if asyncio.iscoroutine(result) else result

    def _do_device_info(self) -> dict[str, object]:
        display = self._model.screen
        return {
            "currentPackageName": self._screen.focus()[0],
            "displayHeight": display.height,
            "displayRotation": 0,
            "displaySizeDpX": display.width * 160 // display.density,
            "displaySizeDpY": display.height * 160 // display.density,
            "displayWidth": display.width,
            "naturalOrientation": True,
            "productName": self._model.product,
            "screenOn": True,
            "sdkInt": self._model.sdk,
        }

    def _do_dump_window_hierarchy(self, _compressed: bool = False, depth: int = 50, *_more: object) -> str:
        return write_hierarchy(tuple(cut(window, depth) for window in self._hands.windows()))

    def _do_take_screenshot(self, scale: float = 1, quality: int = 80) -> str:
        return base64.b64encode(encoded(self._hands.windows(), "JPEG", scale=scale, quality=quality)).decode()

    def _do_wake_up(self) -> None:
        self._screen.key("WAKEUP")

    def _do_sleep(self) -> None:
        self._screen.key("SLEEP")

    def _do_press_key(self, name: str) -> bool:
        return self._hands.press_name(name)

    def _do_press_key_code(self, code: int, _meta: int = 0) -> bool:
        return self._hands.press_code(code)

    def _do_swipe(self, x1: float, y1: float, x2: float, y2: float, steps: int) -> bool:
        self._screen.swipe(round(x1), round(y1), round(x2), round(y2), steps * _STEP_MS)
        return True

    _do_drag = _do_swipe

    def _do_swipe_points(self, numbers: Sequence[float], steps: int) -> bool:
        points = [(round(x), round(y)) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        self._hands.drag(points, steps * _STEP_MS)
        return True

    def _do_inject_input_event(self, action: int, x: float, y: float, _meta: int = 0) -> bool:
        self._hands.touch(action, round(x), round(y))
        return True

    def _do_open_notification(self) -> bool:
        return True

    def _do_open_quick_settings(self) -> bool:
        return True

    def _do_freeze_rotation(self, _freeze: bool) -> None:
        return None

    def _do_set_orientation(self, _name: str) -> None:
        return None

    def _do_get_last_toast(self) -> str | None:
        self._last_toast = self._hands.toast() or self._last_toast
        return self._last_toast or None

    def _do_clear_last_toast(self) -> None:
        self._last_toast = ""

    def _do_make_toast(self, text: str, _duration_ms: float) -> None:
        self._last_toast = text

    def _do_get_last_traversed_text(self) -> str | None:
        return None

    def _do_clear_last_traversed_text(self) -> None:
        return None

    def _do_set_clipboard(self, _label: str | None, text: str) -> None:
        self._hands.clipboard = text

    def _do_get_clipboard(self) -> str | None:
        return self._hands.clipboard

    def _do_paste_clipboard(self) -> None:
        self._screen.text(self._hands.clipboard or "")

    def _do_clear_input_text(self) -> None:
        self._hands.clear_focused()

    def _do_exist(self, selector: Reference) -> bool:
        return bool(self._find(selector))

    async def _do_wait_for_exists(self, selector: Reference, timeout_ms: float) -> bool:
        return await self._until(lambda: bool(self._find(selector)), timeout_ms)

    async def _do_wait_until_gone(self, selector: Reference, timeout_ms: float) -> bool:
        return await self._until(lambda: not self._find(selector), timeout_ms)

    def _do_count(self, selector: Reference) -> int:
        return len(self._find(selector))

    def _do_obj_info(self, selector: Reference) -> dict[str, object]:
        return info(self._one(selector))

    def _do_obj_info_of_all_instances(self, selector: Reference) -> list[dict[str, object]]:
        return [info(node) for node in self._find(selector)]

    def _do_click(self, where: float | Reference, y: float = 0, duration_ms: int = 0) -> bool:
        if isinstance(where, int | float):
            if duration_ms:
                self._hands.long_tap(round(where), round(y), duration_ms)
            else:
                self._screen.tap(round(where), round(y))
        else:
            self._hands.tap(self._one(where))
        return True

    def _do_long_click(self, selector: Reference) -> bool:
        self._hands.long_tap(*self._one(selector).bounds.center, LONG_TAP_MS)
        return True

    def _do_get_text(self, selector: Reference) -> str:
        return self._one(selector).text

    def _do_set_text(self, selector: Reference, text: str) -> bool:
        self._hands.set_text(self._one(selector), text)
        return True

    def _do_clear_text_field(self, selector: Reference) -> None:
        self._hands.clear(self._one(selector))

    def _do_drag_to(self, selector: Reference, x: float | Selector, y: float | int, steps: int = 100) -> bool:
        start = self._one(selector).bounds.center
        end = (round(x), round(y)) if isinstance(x, int | float) else self._one(x).bounds.center
        self._hands.drag([start, end], steps * _STEP_MS)
        return True

    def _do_gesture(self, selector: Reference, *_points: object) -> bool:
        self._one(selector)
        return True

    _do_pinch_in = _do_pinch_out = _do_gesture

    def _do_child_by_text(self, selector: Reference, child: Selector, text: str, scroll: bool = True) -> str:
        return self._child_with(selector, {**child, "text": text}, scroll=scroll)

    def _do_child_by_description(self, selector: Reference, child: Selector, text: str, scroll: bool = True) -> str:
        return self._child_with(selector, {**child, "description": text}, scroll=scroll)

    def _do_child_by_instance(self, selector: Reference, child: Selector, number: int) -> str:
        return self._child_with(selector, child, number, scroll=False)

    def _do_scroll_forward(self, selector: Reference, vertical: bool = True, _steps: int = 0) -> bool:
        return self._hands.scroll(self._one(selector).bounds, forward=True, vertical=vertical)

    def _do_scroll_backward(self, selector: Reference, vertical: bool = True, _steps: int = 0) -> bool:
        return self._hands.scroll(self._one(selector).bounds, forward=False, vertical=vertical)

    def _do_scroll_to_end(self, selector: Reference, vertical: bool = True, most: int = 0, _steps: int = 0) -> bool:
        return self._to_the_end(selector, most, forward=True, vertical=vertical)

    def _do_scroll_to_beginning(
        self, selector: Reference, vertical: bool = True, most: int = 0, _steps: int = 0
    ) -> bool:
        return self._to_the_end(selector, most, forward=False, vertical=vertical)

    _do_fling_forward, _do_fling_backward = _do_scroll_forward, _do_scroll_backward
    _do_fling_to_end, _do_fling_to_beginning = _do_scroll_to_end, _do_scroll_to_beginning

    def _do_scroll_to(self, selector: Reference, wanted: Reference, vertical: bool = True) -> bool:
        self._to_the_end(selector, 0, forward=False, vertical=vertical)
        for _ in range(_MOST_SWIPES):
            if self._find(wanted):
                return True
            if not self._hands.scroll(self._one(selector).bounds, forward=True, vertical=vertical):
                return False
        return False

    def _to_the_end(self, selector: Reference, most: int, *, forward: bool, vertical: bool) -> bool:
        for _ in range(min(most or _MOST_SWIPES, _MOST_SWIPES)):
            if not self._hands.scroll(self._one(selector).bounds, forward=forward, vertical=vertical):
                break
        return True

    def _find(self, selector: Reference) -> list[UiNode]:
        if not isinstance(selector, str):
            return find(self._hands.windows(), selector)
        if selector not in self._objects:
            raise ObjectNotFoundError(selector)
        container, child, number = self._objects[selector]
        children = [node for parent in self._find(container) for node in find(parent.children, child)]
        return children if number is None else children[number : number + 1]

    def _one(self, selector: Reference) -> UiNode:
        nodes = self._find(selector)
        if not nodes:
            raise ObjectNotFoundError(json.dumps(selector))
        return nodes[0]

    def _child_with(self, selector: Reference, child: Selector, number: int | None = None, *, scroll: bool) -> str:
        """Return a new name by which the client can refer to elements inside a container.

        Args:
            selector: the container.
            child: selector of the elements inside the container.
            number: index of the only element that is meant; None: all elements that match.
            scroll: True: scroll the container until an element is shown.

        Raises:
            ObjectNotFoundError: the container is missing, or no element in it matches.
        """
        name = str(len(self._objects) + 1)
        self._objects[name] = (selector, child, number)
        scrolling = scroll and "scrollable" in self._one(selector).flags
        if not self._find(name) and scrolling:
            self._do_scroll_to(selector, child)
        if not self._find(name):
            raise ObjectNotFoundError(json.dumps(child))
        return name

    async def _until(self, holds: Callable[[], bool], timeout_ms: float) -> bool:
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while not holds():
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def cut(node: UiNode, depth: int) -> UiNode:
    """Return an element with its descendants, at most `depth` levels in total."""
    return replace(node, children=tuple(cut(child, depth - 1) for child in node.children) if depth > 1 else ())


def _corners(bounds: Bounds) -> dict[str, int]:
    return {"bottom": bounds.bottom, "left": bounds.left, "right": bounds.right, "top": bounds.top}


def info(node: UiNode) -> dict[str, object]:
    """Return the description of an element that the method ``objInfo`` returns."""
    flags = ("checkable", "checked", "clickable", "enabled", "focusable", "focused", "scrollable", "selected")
    return {
        "bounds": _corners(node.bounds),
        "childCount": len(node.children),
        "className": node.kind,
        "contentDescription": node.description,
        "packageName": node.package,
        "resourceName": node.resource_id,
        "text": node.text,
        "visibleBounds": _corners(node.bounds),
        "longClickable": "long-clickable" in node.flags,
        **{name: name in node.flags for name in flags},
    }
