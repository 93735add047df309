"""Find the elements that a `Selector` selects: in Android's element tree, or by WebDriver locators in a browser."""

import json
from collections.abc import Sequence

from mplab.base.errors import StepError
from mplab.base.hierarchy import UiNode
from mplab.format.selector import Selector


def find_node(windows: Sequence[UiNode], selector: Selector) -> UiNode | None:
    """Return the first element in `windows` that `selector` selects, or None.

    The alternatives of the selector are tried in order. An ``id`` without a package (``fab``) matches in any package.
    Elements without area are ignored.

    Raises:
        StepError: an alternative selects by CSS or XPath, which only browsers support.
    """
    nodes = [node for window in windows for node in window.walk() if node.bounds.area]
    for alternative in selector.alternatives:
        match = next((node for node in nodes if _is(node, alternative)), None)
        if match is not None:
            return match
    return None


def find_nodes(windows: Sequence[UiNode], selector: Selector) -> list[UiNode]:
    """Return all elements in `windows` that any alternative of the selector selects, in document order.

    Elements without area are ignored.

    Raises:
        StepError: an alternative selects by CSS or XPath, which only browsers support.
    """
    nodes = [node for window in windows for node in window.walk() if node.bounds.area]
    return [node for node in nodes if any(_is(node, alternative) for alternative in selector.alternatives)]


def _is(node: UiNode, way: Selector) -> bool:
    match way.by:
        case "id":
            return way.value in {node.resource_id, node.resource_id.partition(":id/")[2]}
        case "text":
            return node.text == way.value
        case "description":
            return node.description == way.value
        case "contains":
            return way.value in node.text or way.value in node.description
        case _:
            raise StepError(
                f"{way.by} {way.value!r}: not possible in apps on Android. Use id, text, description or contains"
            )


def title_of(windows: Sequence[UiNode]) -> str:
    """Return a title of the window in front, for messages: the texts of its dialog or, without one, its first texts."""
    nodes = [node for window in windows for node in window.walk()]
    titles = [node.text for node in nodes if node.resource_id in {"android:id/alertTitle", "android:id/message"}]
    texts = titles or [node.label for node in nodes if node.label]
    return " / ".join(text for text in texts[:3] if text)


def package_of(windows: Sequence[UiNode]) -> str:
    """Return the package of the app in front; "" when no window is shown."""
    packages = [node.package for window in windows for node in window.walk() if node.package]
    return packages[0] if packages else ""


def locator(selector: Selector) -> tuple[str, str]:
    """Return the WebDriver locator for a selector: strategy (``css selector`` or ``xpath``) and value."""
    if selector.by == "xpath":
        return "xpath", selector.value
    if selector.by == "id":
        return "css selector", f"[id={json.dumps(selector.value)}]"
    if selector.by == "text":
        return "xpath", f"//*[normalize-space(text())={_xpath_literal(selector.value)}]"
    if selector.by == "description":
        return "css selector", f"[aria-label={json.dumps(selector.value)}]"
    if selector.by == "contains":
        return "xpath", f"//*[text()[contains(normalize-space(.), {_xpath_literal(selector.value)})]]"
    return "css selector", selector.value


def _xpath_literal(text: str) -> str:
    if '"' not in text:
        return f'"{text}"'
    pieces = ", '\"', ".join(f'"{piece}"' for piece in text.split('"'))
    return f"concat({pieces})"


def selector_name(selector: Selector) -> str:
    """Return the selector as text for messages: ``css 'h1'``, ``id 'fab' (or 2 other ways)``."""
    others = len(selector.otherwise)
    ways = f" (or {others} other way{'s' if others > 1 else ''})" if others else ""
    return f"{selector.by} {selector.value!r}{ways}"
