"""Convert elements to the form of uiautomator2's client."""

from dataclasses import replace

from mplab.base.hierarchy import Bounds, Node


def cut(node: Node, depth: int) -> Node:
    """Return an element with at most `depth` levels."""
    return replace(node, children=tuple(cut(child, depth - 1) for child in node.children) if depth > 1 else ())


def _corners(bounds: Bounds) -> dict[str, int]:
    return {"bottom": bounds.bottom, "left": bounds.left, "right": bounds.right, "top": bounds.top}


def info(node: Node) -> dict[str, object]:
    """Return an element as the answer of ``objInfo``."""
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
