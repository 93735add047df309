"""Lay out the widgets of a scripted app: compute elements with their bounds, and the areas that react to touches."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field

from mplab.base.hierarchy import Bounds, UiNode
from mplab.device.screen.script import Condition, Widget

Item = MutableMapping[str, str]
"""An entry of a list in a scripted app: key → text."""
Place = tuple[str | int, ...]
"""Path of a drawn widget: name of the screen or dialog; then for each level its index and the number of its repetition.
"""

_GAP = 12
_HEIGHTS = {"ProgressBar": 90, "TextView": 100, "ImageView": 240}
_HEIGHT = 140
_PACKAGES = {"View": "android.view", "ViewGroup": "android.view", "WebView": "android.webkit"}


@dataclass(frozen=True)
class Touchable:
    """The area of a widget that reacts to touches; `item`: see `Painter`."""

    bounds: Bounds
    place: Place
    widget: Widget
    item: Item | None
    enabled: bool


@dataclass
class Scrolled:
    """The scroll position of a container (`offset`) and its maximum (`most`), pixels."""

    offset: int = 0
    most: int = 0


@dataclass
class Layout:
    """The areas of a drawn screen that react to touches.

    Attributes:
        touchables: areas of widgets; later ones are on top of earlier ones.
        scrollers: bounds and path of each container that can be scrolled.
    """

    touchables: list[Touchable] = field(default_factory=list)
    scrollers: list[tuple[Bounds, Place]] = field(default_factory=list)

    def at(self, x: int, y: int) -> Touchable | None:
        """Return the topmost area that reacts to touches at a point; None if there is none."""
        return next((touchable for touchable in reversed(self.touchables) if touchable.bounds.holds(x, y)), None)

    def scroller_at(self, x: int, y: int) -> Place | None:
        """Return the path of the innermost scrollable container at a point, or None."""
        return next((container for bounds, container in reversed(self.scrollers) if bounds.holds(x, y)), None)


@dataclass
class Painter:
    """Lays out widgets of an app as elements of the screen, and adds their areas that react to touches to `layout`.

    A widget with the key `repeat` is drawn once for each entry of a list. The entry is the item of that drawing and of
    the widget's children; other widgets have no item.

    Args:
        package: package name of the app.
        fill: function that replaces the variables ``{…}`` in a text; its second argument is the widget's item.
        holds: function that returns whether a condition is true; its second argument is the widget's item.
        entries: function that returns the entries of the list that a widget's key `repeat` names.
        value: function that returns the value of a variable.
        focus: path of the widget that has the focus.
        scrolled: path of a container → its scroll position, which is kept between drawings.
    """

    package: str
    fill: Callable[[str, Item | None], str]
    holds: Callable[[Condition, Item | None], bool]
    entries: Callable[[str], Iterable[Item]]
    value: Callable[[str], str]
    focus: Place | None
    scrolled: MutableMapping[Place, Scrolled]
    layout: Layout = field(default_factory=Layout)

    def draw(self, widgets: Iterable[Widget], box: Bounds, place: Place) -> tuple[UiNode, ...]:
        """Lay out widgets below each other in a box. Return their elements.

        Args:
            widgets: the widgets.
            box: bounds of the box, pixels.
            place: path of the parent of these widgets.
        """
        return self._column(widgets, box, box, place, None)[0]

    def _column(
        self, widgets: Iterable[Widget], box: Bounds, clip: Bounds, place: Place, item: Item | None
    ) -> tuple[tuple[UiNode, ...], int]:
        nodes: list[UiNode] = []
        top = box.top
        for widget, where, entry in self._there(widgets, place, item):
            space = Bounds(box.left, top, box.right, max(top, box.bottom))
            node, bottom = self._widget(widget, space, clip, where, entry)
            nodes += [node] if node else []
            if widget.bounds is None:
                top = bottom + _GAP
        return tuple(nodes), max(box.top, top - _GAP)

    def _row(
        self, widgets: Iterable[Widget], box: Bounds, clip: Bounds, place: Place, item: Item | None
    ) -> tuple[tuple[UiNode, ...], int]:
        there = list(self._there(widgets, place, item))
        if not there:
            return (), box.top
        width = (box.right - box.left) // len(there)
        drawn = []
        for number, (widget, where, entry) in enumerate(there):
            left = box.left + number * width
            drawn.append(self._widget(widget, Bounds(left, box.top, left + width, box.bottom), clip, where, entry))
        return tuple(node for node, _ in drawn if node), max(bottom for _, bottom in drawn)

    def _there(
        self, widgets: Iterable[Widget], place: Place, item: Item | None
    ) -> Iterator[tuple[Widget, Place, Item | None]]:
        """Yield (widget, path, item) for each visible widget; a repeated widget is yielded once for each item."""
        for index, widget in enumerate(widgets):
            entries: Iterable[Item | None] = self.entries(widget.repeat) if widget.repeat else (item,)
            for number, entry in enumerate(entries):
                if self.holds(widget.when, entry) and not (widget.unless and self.holds(widget.unless, entry)):
                    yield widget, (*place, index, number), entry

    def _widget(
        self, widget: Widget, space: Bounds, clip: Bounds, place: Place, item: Item | None
    ) -> tuple[UiNode | None, int]:
        """Lay out a widget at the top of `space`. Return its element and its lower edge, pixels.

        The element is None if no part of it is inside of `clip`.
        """
        box = Bounds(*widget.bounds) if widget.bounds else space
        enabled = widget.enabled if isinstance(widget.enabled, bool) else self.holds(widget.enabled, item)
        touchable = widget.clickable if widget.clickable is not None else bool(widget.tap or widget.input)
        mark = len(self.layout.touchables)
        if widget.scrollable:
            children, bottom = self._scroller(widget, box, clip, place, item)
        elif widget.children:
            arrange = self._row if widget.row else self._column
            children, bottom = arrange(widget.children, box, clip, place, item)
        else:
            children, bottom = (), box.top + _HEIGHTS.get(widget.kind, _HEIGHT)
        if widget.bounds:
            bottom = box.bottom
        elif widget.height is not None:
            bottom = box.top + widget.height
        bounds = Bounds(box.left, box.top, box.right, bottom)
        seen = bounds.within(clip)
        if not seen.area:
            return None, bottom
        if touchable or widget.long_tap:
            # Below its children, which are touched first.
            self.layout.touchables.insert(mark, Touchable(seen, place, widget, item, enabled))
        return self._node(widget, item, seen, place, enabled=enabled, touchable=touchable, children=children), bottom

    def _scroller(
        self, widget: Widget, box: Bounds, clip: Bounds, place: Place, item: Item | None
    ) -> tuple[tuple[UiNode, ...], int]:
        bottom = box.top + widget.height if widget.height is not None else box.bottom
        window = Bounds(box.left, box.top, box.right, bottom).within(clip)
        scrolled = self.scrolled.setdefault(place, Scrolled())
        self.layout.scrollers.append((window, place))
        top = box.top - scrolled.offset
        children, end = self._column(widget.children, Bounds(box.left, top, box.right, top), window, place, item)
        scrolled.most = max(0, end - top - (window.bottom - window.top))
        return children, bottom

    def _node(
        self,
        widget: Widget,
        item: Item | None,
        bounds: Bounds,
        place: Place,
        *,
        enabled: bool,
        touchable: bool,
        children: tuple[UiNode, ...],
    ) -> UiNode:
        hint = self.fill(widget.hint, item)
        text = self.fill(widget.text, item)
        if widget.input is not None:
            typed = self.value(widget.input)
            text = ("•" * len(typed) if widget.password else typed) or hint
        selected = widget.selected if isinstance(widget.selected, bool) else self.holds(widget.selected, item)
        flags = {
            "enabled": enabled,
            "clickable": touchable,
            "focusable": touchable,
            "long-clickable": bool(widget.long_tap or widget.input),
            "focused": place == self.focus,
            "checkable": widget.checked is not None,
            "checked": widget.checked is not None and self.holds(widget.checked, item),
            "scrollable": widget.scrollable,
            "password": widget.password,
            "selected": selected,
        }
        return UiNode(
            kind=class_name(widget.kind),
            package=self.package,
            resource_id=resource_id(widget.id, self.package),
            text=text,
            description=self.fill(widget.description, item),
            hint=hint,
            bounds=bounds,
            flags=frozenset(name for name, is_so in flags.items() if is_so),
            children=children,
        )


def class_name(kind: str) -> str:
    """Return the full class name of a widget's class: ``Button`` → ``android.widget.Button``."""
    return kind if "." in kind else f"{_PACKAGES.get(kind, 'android.widget')}.{kind}"


def resource_id(name: str, package: str) -> str:
    """Return the full resource id of a widget's id: ``fab`` → ``com.dropbox.android:id/fab``."""
    return name if not name or ":" in name else f"{package}:id/{name}"


def holds(condition: Condition, look_up: Callable[[str], str]) -> bool:
    """Return whether a condition is true: each of its variables has the required value, or one of several such values.

    `look_up` returns the value of a variable.
    """
    return all(
        look_up(name) in ((wanted,) if isinstance(wanted, str) else wanted) for name, wanted in condition.items()
    )
