"""Parse and write Android's element tree in the formats of ``uiautomator dump``, uiautomator2 and Appium.

``uiautomator dump`` and uiautomator2 write every element as ``<node class="android.widget.TextView" …>``. Appium writes
``<android.widget.TextView class="android.widget.TextView" …>``. The attributes are the same.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
FLAGS = (
    "checkable",
    "checked",
    "clickable",
    "enabled",
    "focusable",
    "focused",
    "scrollable",
    "long-clickable",
    "password",
    "selected",
)
_UNREADABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (§2.2)."""


@dataclass(frozen=True)
class Bounds:
    """A rectangle in pixels; right and bottom are exclusive."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    @property
    def center(self) -> tuple[int, int]:
        """Centre, the point to tap: x and y, pixels."""
        return (self.left + self.right) // 2, (self.top + self.bottom) // 2

    @property
    def area(self) -> int:
        """Area, square pixels."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)

    def holds(self, x: int, y: int) -> bool:
        """Return whether the point `x`, `y` is inside the rectangle."""
        return self.left <= x < self.right and self.top <= y < self.bottom

    def within(self, other: "Bounds") -> "Bounds":
        """Return the intersection with `other`; its area is 0 when the rectangles do not overlap."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        return Bounds(left, top, max(left, min(self.right, other.right)), max(top, min(self.bottom, other.bottom)))

    def __str__(self) -> str:
        """Return the rectangle as in a dump, left, top, right, bottom: ``[0,0][1080,2340]``."""
        return f"[{self.left},{self.top}][{self.right},{self.bottom}]"


@dataclass(frozen=True)
class UiNode:
    """One element of an Android screen, with the elements inside it.

    Attributes:
        kind: class of the element: ``android.widget.Button``.
        package: package of the app.
        resource_id: ``com.dropbox.android:id/fab``, or "".
        text: displayed text; for an empty field, the hint.
        description: text for screen readers (``content-desc``).
        hint: hint of a field, or "".
        bounds: rectangle on the screen.
        flags: names in `FLAGS` that are true for the element.
        children: elements inside this one, in drawing order.
    """

    kind: str = ""
    package: str = ""
    resource_id: str = ""
    text: str = ""
    description: str = ""
    hint: str = ""
    bounds: Bounds = Bounds()
    flags: frozenset[str] = frozenset({"enabled"})
    children: tuple["UiNode", ...] = field(default=())

    def walk(self) -> Iterator["UiNode"]:
        """Yield this element and all below it in document order."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def label(self) -> str:
        """Text of the element, or its description if it has no text."""
        return self.text or self.description


def parse_hierarchy(xml: str) -> tuple[UiNode, ...]:
    """Parse the dump of a screen; return the root element of each window.

    Raises:
        ValueError: the text is not XML.
    """
    try:
        root = ET.fromstring(xml)  # noqa: S314 - Python's expat refuses what expands; it comes from our own device
    except ET.ParseError as error:
        raise ValueError(f"the element tree is not XML: {error}") from error
    return tuple(_node(element) for element in root)


def _node(element: ET.Element) -> UiNode:
    match = _BOUNDS.fullmatch(element.get("bounds", ""))
    return UiNode(
        kind=element.get("class", "") or element.tag,
        package=element.get("package", ""),
        resource_id=element.get("resource-id", ""),
        text=element.get("text", ""),
        description=element.get("content-desc", ""),
        hint=element.get("hint", ""),
        bounds=Bounds(*(int(number) for number in match.groups())) if match else Bounds(),
        flags=frozenset(name for name in FLAGS if element.get(name) == "true"),
        children=tuple(_node(child) for child in element),
    )


def write_hierarchy(windows: tuple[UiNode, ...], *, by_class: bool = False) -> str:
    """Return the dump of a screen as XML.

    Args:
        windows: root element of each window.
        by_class: True: name each XML element by its class, as Appium does; False: ``node``.
    """
    body = "".join(_written(node, index, by_class=by_class) for index, node in enumerate(windows))
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{body}</hierarchy>"


def _written(node: UiNode, index: int, *, by_class: bool) -> str:
    attributes = {
        "index": str(index),
        "text": node.text,
        "resource-id": node.resource_id,
        "class": node.kind,
        "package": node.package,
        "content-desc": node.description,
        **{name: "true" if name in node.flags else "false" for name in FLAGS},
        **({"hint": node.hint} if node.hint else {}),
        "bounds": str(node.bounds),
    }
    written = " ".join(f"{name}={quoteattr(_UNREADABLE.sub('?', value))}" for name, value in attributes.items())
    tag = re.sub(r"[^\w.-]", ".", node.kind) if by_class else "node"
    inner = "".join(_written(child, number, by_class=by_class) for number, child in enumerate(node.children))
    return f"<{tag} {written}>{inner}</{tag}>" if inner else f"<{tag} {written} />"
