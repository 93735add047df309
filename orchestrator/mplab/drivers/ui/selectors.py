"""Translate a `Selector` into a WebDriver locator for browsers."""

import json

from mplab.format.selector import Selector


def locator(selector: Selector) -> tuple[str, str]:
    """Return strategy (``css selector`` or ``xpath``) and value of a WebDriver locator."""
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
