"""Find elements by the location strategies of WebDriver for Android, as appium-uiautomator2-server does."""

import re
from collections.abc import Sequence
from typing import Any

from lxml import etree

from mplab.base.hierarchy import UiNode, write_hierarchy
from mplab.device.screen.uiselector import find

Path = tuple[int, ...]
"""Position in the element tree: index of the window, index of its child, …"""
_CALL = re.compile(r'\.(\w+)\((?:"((?:[^"\\]|\\.)*)"|(\d+)|(true|false))?\)')
_STRATEGIES = {"id": "resourceId", "accessibility id": "description", "class name": "className"}


class WrongSelectorError(ValueError):
    """A selector is invalid, or its strategy is unknown."""


def locate(windows: Sequence[UiNode], strategy: str, selector: str) -> list[Path]:
    """Return the positions in the element tree of the elements that a selector finds, in document order.

    Raises:
        WrongSelectorError: the strategy is unknown, or the selector is invalid.
    """
    paths = _paths(windows)
    if strategy == "xpath":
        return _by_xpath(windows, selector)
    if strategy == "-android uiautomator":
        wanted = parse_ui_selector(selector)
    elif strategy == "id" and ":" not in selector:
        wanted = {"resourceIdMatches": rf".*:id/{re.escape(selector)}"}
    elif strategy in _STRATEGIES:
        wanted = {_STRATEGIES[strategy]: selector}
    else:
        raise WrongSelectorError(f"unknown strategy {strategy!r}")
    try:
        return [paths[id(node)] for node in find(windows, wanted)]
    except (ValueError, re.error) as error:
        raise WrongSelectorError(str(error)) from error


def at(windows: Sequence[UiNode], path: Path) -> UiNode | None:
    """Return the element at a position in the element tree; None if there is none."""
    nodes, node = windows, None
    for index in path:
        if index >= len(nodes):
            return None
        node = nodes[index]
        nodes = node.children
    return node


def parse_ui_selector(text: str) -> dict[str, object]:
    """Parse a text like ``new UiSelector().text("OK").instance(1)``. Return method → argument.

    Raises:
        WrongSelectorError: the text is another expression, like one with ``UiScrollable``.
    """
    head, body = "new UiSelector()", text.strip().removesuffix(";")
    if not body.startswith(head):
        raise WrongSelectorError(f"not a UiSelector: {text}")
    calls, end = {}, 0
    rest = body.removeprefix(head)
    for call in _CALL.finditer(rest):
        if call.start() != end:
            break
        name, quoted, number, flag = call.groups()
        calls[name] = _unescaped(quoted) if quoted is not None else int(number) if number else flag == "true"
        end = call.end()
    if end != len(rest):
        raise WrongSelectorError(f"cannot be read from {rest[end:]!r} on: {text}")
    return calls


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _by_xpath(windows: Sequence[UiNode], selector: str) -> list[Path]:
    root = etree.fromstring(write_hierarchy(tuple(windows), by_class=True).encode())
    try:
        matches = root.xpath(selector)
    except etree.XPathError as error:
        raise WrongSelectorError(f"{selector}: {error}") from error
    elements = [item for item in matches if isinstance(item, etree._Element)] if isinstance(matches, list) else []
    return [path for element in elements if (path := _path_of(element, root))]


def _path_of(element: Any, root: Any) -> Path:  # noqa: ANN401 - lxml has no types
    path: list[int] = []
    while element is not None and element is not root:
        parent = element.getparent()
        path.insert(0, parent.index(element))
        element = parent
    return tuple(path)


def _paths(windows: Sequence[UiNode]) -> dict[int, Path]:
    paths: dict[int, Path] = {}

    def visit(nodes: Sequence[UiNode], base: Path) -> None:
        for index, node in enumerate(nodes):
            paths[id(node)] = (*base, index)
            visit(node.children, paths[id(node)])

    visit(windows, ())
    return paths
