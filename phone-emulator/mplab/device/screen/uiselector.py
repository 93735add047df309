"""Find elements by a UiSelector, given as the JSON mapping that uiautomator2's client sends."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplab.base.hierarchy import UiNode

_TEXTS: Mapping[str, Callable[[UiNode], str]] = {
    "text": lambda node: node.text,
    "description": lambda node: node.description,
    "className": lambda node: node.kind,
    "packageName": lambda node: node.package,
    "resourceId": lambda node: node.resource_id,
}
_HOW: Mapping[str, Callable[[str, str], bool]] = {
    "": lambda wanted, found: wanted == found,
    "Contains": lambda wanted, found: wanted in found,
    "StartsWith": lambda wanted, found: found.startswith(wanted),
    # For the patterns that selectors use, Java's find and Python's full match are equivalent.
    "Matches": lambda wanted, found: re.fullmatch(wanted, found, re.DOTALL) is not None,
}
_FLAGS = {
    "checkable": "checkable",
    "checked": "checked",
    "clickable": "clickable",
    "longClickable": "long-clickable",
    "scrollable": "scrollable",
    "enabled": "enabled",
    "focusable": "focusable",
    "focused": "focused",
    "selected": "selected",
}
_OTHERS = {"mask", "childOrSibling", "childOrSiblingSelector", "index", "instance"}

Selector = Mapping[str, Any]


def find(windows: Sequence[UiNode], selector: Selector) -> list[UiNode]:
    """Return the elements that a selector matches, in document order.

    Raises:
        ValueError: the selector has a key that UiSelector does not know.
        re.error: the selector has an invalid regular expression.
    """
    parents = {id(child): node for window in windows for node in window.walk() for child in node.children}
    selected = _instance(_matching(windows, selector, parents), selector)
    relations = zip(selector.get("childOrSibling", ()), selector.get("childOrSiblingSelector", ()), strict=False)
    for relation, inner in relations:
        scopes = [_scope(node, relation, parents) for node in selected]
        nodes = [node for scope in scopes for node in _matching(scope, inner, parents)]
        selected = _instance(list({id(node): node for node in nodes}.values()), inner)
    return selected


def _scope(node: UiNode, relation: str, parents: Mapping[int, UiNode]) -> Sequence[UiNode]:
    """Return the elements in which UiSelector searches for a ``child`` or a ``sibling`` of an element."""
    if relation == "child":
        return node.children
    parent = parents.get(id(node))
    return parent.children if parent else ()


def _matching(roots: Sequence[UiNode], selector: Selector, parents: Mapping[int, UiNode]) -> list[UiNode]:
    tests = [_test(key, value, parents) for key, value in selector.items() if key not in _OTHERS or key == "index"]
    return [node for root in roots for node in root.walk() if all(test(node) for test in tests)]


def _instance(nodes: list[UiNode], selector: Selector) -> list[UiNode]:
    number = selector.get("instance")
    return nodes if number is None else nodes[number : number + 1]


def _test(key: str, value: Any, parents: Mapping[int, UiNode]) -> Callable[[UiNode], bool]:  # noqa: ANN401 - JSON
    if key in _FLAGS:
        return lambda node: (_FLAGS[key] in node.flags) == bool(value)
    if key == "index":
        return lambda node: _index(node, parents) == value
    for name, read in _TEXTS.items():
        how = _HOW.get(key.removeprefix(name)) if key.startswith(name) else None
        if how is not None:
            return lambda node: how(str(value), read(node))
    raise ValueError(f"UiSelector does not know {key!r}")


def _index(node: UiNode, parents: Mapping[int, UiNode]) -> int:
    parent = parents.get(id(node))
    return next((number for number, child in enumerate(parent.children) if child is node), 0) if parent else 0
