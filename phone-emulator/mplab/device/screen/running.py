"""Run a scripted app: show its screens, hold its variables, and run its programs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mplab.base.hierarchy import Bounds, UiNode
from mplab.device.screen.layout import Item, Layout, Painter, Place, Scrolled, holds
from mplab.device.screen.script import (
    CACERT,
    FILES,
    NAMED,
    PROGRAMS,
    VIEW,
    AppAction,
    AppDialog,
    AppProgram,
    AppScript,
    Condition,
    Page,
    Widget,
)
from mplab.device.screen.surroundings import Stored, Surroundings, Work
from mplab.format.units import parse_duration_s

_TOAST_S = 3.5


@dataclass
class _Running:
    work: Work
    run: AppProgram
    item: Item | None


class RunningApp:
    """A scripted app from its start to its end.

    Args:
        script: the scripted app.
        stored: data of the app that survives its end. The running app updates it.
        around: services that the device offers to the app.
    """

    def __init__(self, script: AppScript, stored: Stored, around: Surroundings) -> None:
        self.script = script
        self.in_front = False
        self.toast = ""
        self._toast_until = 0.0
        self._stored = stored
        self._around = around
        own = {"data": "", "error": "", "programs": str(PROGRAMS), "cacert": CACERT, "proxy": "", **script.variables}
        replaced = {name: value for name, value in around.variables.items() if name in own}
        self._variables = {**own, **replaced, **stored.variables}
        self._lists: dict[str, list[Item]] = {name: [*map(dict, entries)] for name, entries in script.lists.items()}
        self._lists |= stored.lists
        self.activity = ""
        self._screen = ""
        self._dialog = ""
        self._timers: list[tuple[float, tuple[AppAction, ...]]] = []
        self._dialogs_due: list[tuple[float, str]] = []
        self._works: dict[str, _Running] = {}
        self._focus: tuple[Place, Widget, Item | None] | None = None
        self._scrolled: dict[Place, Scrolled] = {}
        self._layout = Layout()
        stored.starts += 1

    @property
    def panel(self) -> AppDialog | Page:
        """Return the dialog that the app shows, or its screen if it shows no dialog."""
        return self.script.dialogs[self._dialog] if self._dialog else self.script.screens[self._screen]

    @property
    def package(self) -> str:
        """Return the package name of the shown elements, which can be that of another app."""
        return self.panel.package or self.script.package

    @property
    def shown(self) -> str:
        """Return the name of the dialog that the app shows, or of its screen if it shows no dialog."""
        return self._dialog or self._screen

    @property
    def left(self) -> bool:
        """Return whether the app was left by the action ``leave``. If so, its next start opens its first screen."""
        return not self.in_front and not self._screen

    def open(self, activity: str, data: str = "") -> None:
        """Show the screen of an activity, and bring the app to the front. `data` is the link that opens it, or ""."""
        self._variables["data"] = data
        now = self._around.clock()
        if not self.in_front and not self._dialogs_due:
            self._dialogs_due = [
                (now + dialog.after, name)
                for name, dialog in self.script.dialogs.items()
                if dialog.after is not None
                and self._stored.starts >= dialog.starts
                and name not in self._stored.dialogs
            ]
        self.in_front = True
        if activity != VIEW:
            self.activity = activity
        self._go(self.script.activities[activity])

    def resume(self) -> None:
        """Bring the app to the front, with the screen that it showed before."""
        self.in_front = True

    def stop(self) -> None:
        """Stop the app and its programs."""
        self.in_front = False
        for running in self._works.values():
            running.work.stop()
        self._works.clear()

    def tick(self) -> None:
        """Handle everything that is due: output and end of programs, timers, dialogs, and the end of a toast."""
        for running in list(self._works.values()):
            self._follow(running)
        now = self._around.clock()
        while due := [timer for timer in self._timers if timer[0] <= now]:
            timer = min(due, key=lambda entry: entry[0])
            self._timers.remove(timer)
            self.do(timer[1], None)
        for entry in list(self._dialogs_due):
            dialog = self.script.dialogs[entry[1]]
            if (
                entry[0] <= now
                and self.in_front
                and not self._dialog
                and self._screen in (dialog.on or (self._screen,))
            ):
                self._dialogs_due.remove(entry)
                self.show_dialog(entry[1])
        if self.toast and now >= self._toast_until:
            self.toast = ""

    def draw(self, box: Bounds) -> tuple[UiNode, ...]:
        """Lay out the app in a box of the screen, and return its elements. Later touches refer to this layout."""
        painter = Painter(
            package=self.package,
            fill=self.fill,
            holds=self._holds,
            entries=self._entries,
            value=lambda name: self._variables[name],
            focus=self._focus[0] if self._focus else None,
            scrolled=self._scrolled,
        )
        nodes = painter.draw(self.panel.widgets, box, (self.shown,))
        self._layout = painter.layout
        return nodes

    def tap(self, x: int, y: int, *, long: bool = False) -> None:
        """Handle a tap at a point, or with `long` a long tap."""
        met = self._layout.at(x, y)
        if met is None or not met.enabled:
            return
        if met.widget.input is not None:
            self._focus = met.place, met.widget, met.item
        self.do(met.widget.long_tap if long and met.widget.long_tap else met.widget.tap, met.item)

    def swipe(self, x: int, y: int, by: int) -> None:
        """Scroll the container at a point. Its content moves by `by` pixels: up if positive, down if negative."""
        container = self._layout.scroller_at(x, y)
        if container is not None:
            scrolled = self._scrolled[container]
            scrolled.offset = max(0, min(scrolled.most, scrolled.offset + by))

    def type(self, text: str) -> None:
        """Append a text to the text field that has the focus, if there is one."""
        name = self._focus[1].input if self._focus else None
        if name is not None:
            self._variables[name] += text

    def key(self, name: str) -> None:
        """Handle the key BACK, ENTER or DEL."""
        if name == "BACK":
            self._focus = None
            self.do(self.panel.back, None)
        elif self._focus is not None:
            _, widget, item = self._focus
            if name == "DEL" and widget.input is not None:
                self._variables[widget.input] = self._variables[widget.input][:-1]
            elif name == "ENTER":
                self.do(widget.enter, item)

    def show_dialog(self, name: str) -> None:
        """Show the dialog `name` over the current screen."""
        self._dialog = name
        self._focus = None
        if self.script.dialogs[name].once:
            self._stored.dialogs.add(name)

    def fill(self, text: str, item: Item | None = None) -> str:
        """Replace the variables ``{…}`` in a text by their values; `item` is the list entry that the widget shows."""
        return NAMED.sub(lambda found: self._look_up(found[1], item, found[0]), text)

    def do(self, actions: Iterable[AppAction], item: Item | None) -> None:
        """Perform actions in order, then store the variables and lists that survive the app.

        `item` is the list entry that the touched widget shows, or None.
        """
        for action in actions:
            item = self._do(action, item)
        for name in self.script.kept:
            if name in self._lists:
                self._stored.lists[name] = self._lists[name]
            else:
                self._stored.variables[name] = self._variables[name]

    def _do(self, action: AppAction, item: Item | None) -> Item | None:  # noqa: PLR0912 - a case for each verb
        match action.verb:
            case "go":
                self._go(action.go or "")
            case "set":
                for name, text in (action.set or {}).items():
                    self._set(name, self.fill(text, item), item)
            case "add":
                for name, number in (action.add or {}).items():
                    before = self._look_up(name, item, "0") or "0"
                    self._set(name, f"{float(before) + number:g}", item)
            case "append":
                for name, entry in (action.append or {}).items():
                    item = {key: self.fill(text, item) for key, text in entry.items()}
                    self._lists[name].append(item)
            case "empty":
                self._lists[action.empty or ""].clear()
            case "run" if action.run is not None:
                self._run(action.run, item)
            case "stop":
                running = self._works.pop(action.stop or "", None)
                if running is not None:
                    running.work.stop()
            case "dialog":
                self.show_dialog(action.dialog or "")
            case "close":
                self._dialog = ""
            case "toast":
                self.toast = self.fill(action.toast or "", item)
                self._toast_until = self._around.clock() + _TOAST_S
            case "leave":
                self.in_front = False
                self._screen, self._timers = "", []
        return item

    def _go(self, screen: str) -> None:
        page = self.script.screens[screen]
        now = self._around.clock()
        self._screen, self._dialog, self._focus = screen, "", None
        self.activity = page.activity or self.activity or self.script.launcher
        self._timers = [(now + parse_duration_s(after), actions) for after, actions in page.after.items()]
        self._scrolled = {}
        self.do(page.opened, None)

    def _run(self, run: AppProgram, item: Item | None) -> None:
        before = self._works.pop(run.name, None)
        if before is not None:
            before.work.stop()
        self._variables["proxy"] = self._around.proxy()
        try:
            work = self._around.start(tuple(self.fill(word, item) for word in run.command))
        except OSError as error:
            self._variables["error"] = f"{run.command[0]}: {error.strerror or error}"
            self.do(run.failed, item)
            return
        self._works[run.name] = _Running(work, run, item)

    def _follow(self, running: _Running) -> None:
        work, run = running.work, running.run
        code = work.poll()
        for line in work.lines():
            match = re.search(run.progress, line) if run.progress else None
            for name, text in (match.groupdict() if match else {}).items():
                if text is not None:
                    self._set(name.replace("item_", "item.", 1), text, running.item)
        if code is None:
            return
        if self._works.get(run.name) is running:
            del self._works[run.name]
        work.stop()
        self._variables["error"] = "" if code == 0 else work.last_line or f"{run.command[0]} has ended with {code}"
        self.do(run.done if code == 0 else run.failed, running.item)

    def _set(self, name: str, text: str, item: Item | None) -> None:
        if name.startswith("item."):
            if item is not None:
                item[name.removeprefix("item.")] = text
        else:
            self._variables[name] = text

    def _look_up(self, name: str, item: Item | None, otherwise: str = "") -> str:
        """Return the value of a variable; `otherwise` if it does not exist.

        ``item.NAME``, or NAME if `item` has this key, is a value of the list entry `item`.
        """
        if name.startswith("item."):
            return (item or {}).get(name.removeprefix("item."), otherwise)
        if item is not None and name in item:
            return item[name]
        return self._variables.get(name, otherwise)

    def _holds(self, condition: Condition, item: Item | None) -> bool:
        return holds(condition, lambda name: self._look_up(name, item))

    def _entries(self, source: str) -> list[Item]:
        """Return the entries of the list `source`; for ``files:FOLDER``, an entry for each file in that folder."""
        if not source.startswith(FILES):
            return self._lists[source]
        device_folder = source.removeprefix(FILES)
        folder = self._around.folder(device_folder)
        if folder is None or not folder.is_dir():
            return []
        files = sorted(path for path in folder.iterdir() if path.is_file())
        return [
            {
                "name": path.name,
                "path": f"{device_folder.rstrip('/')}/{path.name}",
                "host": str(path.absolute()),
                "size": str(path.stat().st_size),
            }
            for path in files
        ]
