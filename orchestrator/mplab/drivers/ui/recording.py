"""Make selectors for elements on a phone's screen, for ``mplab scenarios record`` and ``app.yaml`` files."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from mplab.base.hierarchy import UiNode
from mplab.drivers.ui.matching import package_of
from mplab.format.selector import Selector

_OBFUSCATED = "(name removed)"
_GENERIC = ("android:id/content", "android:id/button1", "android:id/button2")
"""Element ids that apps share, so that they identify no element."""


def candidates(windows: Sequence[UiNode]) -> list[UiNode]:
    """Return the elements that a selector can select (`ways_to`), from top to bottom and left to right."""
    nodes = [node for window in windows for node in window.walk() if node.bounds.area and ways_to(node, windows)]
    return sorted(nodes, key=lambda node: (node.bounds.top, node.bounds.left))


def ways_to(node: UiNode, windows: Sequence[UiNode]) -> tuple[Selector, ...]:
    """Return the selectors whose first match is `node`: by id, by description and by text, in this order.

    An id is the most durable selector; texts change with the language. Ids that many apps share, or that the app's
    build has removed, are skipped.
    """
    nodes = [other for window in windows for other in window.walk() if other.bounds.area]
    ways: list[Selector] = []
    if node.resource_id and _OBFUSCATED not in node.resource_id and node.resource_id not in _GENERIC:
        ways += [Selector("id", node.resource_id)] if _first(nodes, "resource_id", node) else []
    if node.description and _first(nodes, "description", node):
        ways.append(Selector("description", node.description))
    typed = node.kind.endswith("EditText") and node.text != node.hint
    if node.text and not typed and _first(nodes, "text", node):
        ways.append(Selector("text", node.text))
    return tuple(ways)


def described(node: UiNode) -> str:
    """Describe an element for users: ``Button 'Upload' #fab [880,1960][1040,2120]``."""
    kind = node.kind.rpartition(".")[2]
    label = f" {node.label!r}" if node.label else ""
    name = f" #{node.resource_id.partition(':id/')[2] or node.resource_id}" if node.resource_id else ""
    return f"{kind}{label}{name} {node.bounds}"


def section(
    app: str, windows: Sequence[UiNode], named: Mapping[str, tuple[Selector, ...]], *, version: str, seen: str
) -> str:
    """Return the YAML text of an Android app's section in an ``app.yaml``.

    Args:
        app: name of the app in the ``app.yaml``.
        windows: content of the screen; the section gets the package of the app in front.
        named: name of an element in the scenario → its selectors.
        version: version of the app.
        seen: phone and date of the recording.
    """
    package = package_of(windows)
    document = {
        "android": {
            app: {
                "package": package,
                "versions": f"{version} … {version}",
                "seen": seen,
                "start": package,
                "elements": _elements(named),
            }
        }
    }
    return _dump(_yaml(), document)


def replaced(text: str, app: str, named: Mapping[str, tuple[Selector, ...]]) -> str:
    """Return an ``app.yaml`` with new selectors for elements of an Android app; all else stays, also the comments.

    Args:
        text: content of the file, which has a section for the app.
        app: name of the app in the file.
        named: name of an element in the scenario → its selectors.
    """
    yaml = _yaml()
    document = yaml.load(text)
    document["android"][app]["elements"].update(_elements(named))
    return _dump(yaml, document)


def _elements(named: Mapping[str, tuple[Selector, ...]]) -> dict[str, list[dict[str, str]]]:
    return {name: [{selector.by: selector.value} for selector in selectors] for name, selectors in named.items()}


def _yaml() -> YAML:
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096
    yaml.preserve_quotes = True
    return yaml


def _dump(yaml: YAML, document: Mapping[str, Any]) -> str:
    target = io.StringIO()
    yaml.dump(document, target)
    return target.getvalue()


def _first(nodes: Sequence[UiNode], attribute: str, node: UiNode) -> bool:
    """Return True if no node before `node` in `nodes` has the same value of `attribute`.

    A selector for this value then selects `node`.
    """
    return next((other for other in nodes if getattr(other, attribute) == getattr(node, attribute)), None) is node
