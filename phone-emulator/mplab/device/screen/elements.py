"""Manage the references by which WebDriver clients name elements. A reference is stale when its element is gone."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mplab.base.hierarchy import UiNode
from mplab.device.screen.hands import Hands
from mplab.device.screen.locators import Path, at, locate

ELEMENT_KEY = "element-6066-11e4-a52e-4f735466cecf"
"""Key under which JSON values have the reference of an element (WebDriver, section 11)."""
ATTRIBUTES: Mapping[str, Callable[[UiNode], str]] = {
    "text": lambda node: node.text,
    "name": lambda node: node.description or node.text,
    "content-desc": lambda node: node.description,
    "contentDescription": lambda node: node.description,
    "class": lambda node: node.kind,
    "className": lambda node: node.kind,
    "package": lambda node: node.package,
    "resource-id": lambda node: node.resource_id,
    "resourceId": lambda node: node.resource_id,
    "bounds": lambda node: str(node.bounds),
    "hint": lambda node: node.hint,
    "displayed": lambda node: "true" if node.bounds.area else "false",
}


class WebDriverError(Exception):
    """An error for the WebDriver client. `error` is its name in WebDriver, like ``no such element``."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True)
class _Element:
    path: Path
    kind: str
    resource_id: str


class Elements:
    """The elements that a WebDriver session has found, by their references.

    Args:
        hands: gestures and keys of the screen.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._known: dict[str, _Element] = {}

    def clear(self) -> None:
        """Forget all references."""
        self._known.clear()

    def find(self, strategy: str, selector: str, inside: str = "") -> list[dict[str, str]]:
        """Find elements on the screen. Return their references, each as a JSON value of WebDriver.

        Args:
            strategy: location strategy of WebDriver, such as ``xpath``.
            selector: selector of this strategy.
            inside: reference of the element to search in; "": the whole screen.

        Raises:
            WebDriverError: the reference `inside` is unknown.
            WrongSelectorError: the selector is invalid.
        """
        windows = self._hands.windows()
        if not inside:
            return [self._reference(path) for path in locate(windows, strategy, selector)]
        base = self._element(inside).path
        scope = at(windows, base)
        return [self._reference((*base, *path)) for path in locate(scope.children if scope else (), strategy, selector)]

    def node(self, name: str) -> UiNode:
        """Return the element with the reference `name`, as the screen shows it now.

        Raises:
            WebDriverError: the reference is unknown, or the element is no longer shown.
        """
        element = self._element(name)
        node = at(self._hands.windows(), element.path)
        if node is None or (node.kind, node.resource_id) != (element.kind, element.resource_id):
            raise WebDriverError("stale element reference", f"the element {name} is not there any more")
        return node

    def _reference(self, path: Path) -> dict[str, str]:
        node = at(self._hands.windows(), path)
        wanted = _Element(path, node.kind if node else "", node.resource_id if node else "")
        name = next((known for known, element in self._known.items() if element == wanted), "") or str(uuid.uuid4())
        self._known[name] = wanted
        return {ELEMENT_KEY: name, "ELEMENT": name}

    def _element(self, name: str) -> _Element:
        if name not in self._known:
            raise WebDriverError("no such element", f"there is no element {name}")
        return self._known[name]
