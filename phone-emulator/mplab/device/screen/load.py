"""Read the files of scripted apps, and report names in them that are not defined."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from mplab.base.suggest import unknown
from mplab.device.screen.script import FILE_KEYS, FILES, NAMED, RESERVED, AppAction, AppScript, Widget
from mplab.format.units import parse_duration_s
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import KeyPath, load_yaml


def load_script(path: Path) -> AppScript:
    """Load the scripted app in a file.

    Raises:
        InputError: the file is missing, not YAML, or not a scripted app. The message lists every problem with file,
            line, found and allowed values.
    """
    document = load_yaml(path)
    checker = Checker(document)
    script = checker.model(AppScript, document.data)
    if script is not None:
        _References(script, checker).check()
    checker.raise_problems()
    assert script is not None  # noqa: S101 - its problems would have been raised
    return script


def _entry_keys(script: AppScript) -> Iterator[str]:
    """Yield all keys of list entries: of the initial entries, and of those that actions append."""
    for entries in script.lists.values():
        for entry in entries:
            yield from entry
    for action in _actions_in(script):
        for entry in (action.append or {}).values():
            yield from entry


def _actions_in(found: object) -> Iterator[AppAction]:
    if isinstance(found, AppAction):
        yield found
    if isinstance(found, BaseModel):
        found = tuple(value for _, value in found)
    elif isinstance(found, Mapping):
        found = tuple(found.values())
    if isinstance(found, tuple):
        for inner in found:
            yield from _actions_in(inner)


def _texts(action: AppAction) -> Iterator[tuple[KeyPath, str]]:
    """Yield key path and text of each text in an action that can contain variables."""
    if action.toast is not None:
        yield ("toast",), action.toast
    for name, text in (action.set or {}).items():
        yield ("set", name), text
    for name, entry in (action.append or {}).items():
        yield from ((("append", name, key), text) for key, text in entry.items())
    if action.run is not None:
        yield from ((("run", "command", index), word) for index, word in enumerate(action.run.command))


class _References:
    """Checker of the names in a scripted app: it reports those that are not defined."""

    def __init__(self, script: AppScript, checker: Checker) -> None:
        self._script = script
        self._checker = checker
        self._names = {**script.variables, **dict.fromkeys((*FILE_KEYS, *_entry_keys(script)))}

    def check(self) -> None:
        script = self._script
        for activity, screen in script.activities.items():
            self._known("screen", screen, script.screens, ("activities", activity))
        for service, values in script.lab.items():
            for name in values:
                self._known("variable", name, script.variables, ("lab", service, name))
        for index, name in enumerate(script.kept):
            self._known("variable", name, {**script.variables, **script.lists}, ("kept", index))
        for name, page in script.screens.items():
            path: KeyPath = ("screens", name)
            self._actions(page.opened, (*path, "opened"))
            self._actions(page.back, (*path, "back"))
            for when, actions in page.after.items():
                self._duration(when, (*path, "after", when))
                self._actions(actions, (*path, "after", when))
        for name, dialog in script.dialogs.items():
            self._actions(dialog.back, ("dialogs", name, "back"))
            for index, screen in enumerate(dialog.on):
                self._known("screen", screen, script.screens, ("dialogs", name, "on", index))
        for base, panel in script.panels():
            for index, top in enumerate(panel.widgets):
                for path, widget in top.walk((*base, "widgets", index)):
                    self._widget(widget, path)

    def _widget(self, widget: Widget, path: KeyPath) -> None:
        script = self._script
        for key in ("text", "description", "hint"):
            self._template(getattr(widget, key), (*path, key))
        for key in ("when", "unless"):
            for name in getattr(widget, key):
                self._template(f"{{{name}}}", (*path, key, name))
        if widget.repeat and not widget.repeat.startswith(FILES):
            self._known("list", widget.repeat, script.lists, (*path, "repeat"))
        if widget.input is not None:
            self._known("variable", widget.input, script.variables, (*path, "input"))
        for name in ("tap", "long_tap", "enter"):
            self._actions(getattr(widget, name), (*path, name))

    def _actions(self, actions: tuple[AppAction, ...], path: KeyPath) -> None:
        for index, action in enumerate(actions):
            key_path = (*path, index) if self._checker.document.holds((*path, index)) else path
            script = self._script
            if action.go is not None:
                self._known("screen", action.go, script.screens, (*key_path, "go"))
            if action.dialog is not None:
                self._known("dialog", action.dialog, script.dialogs, (*key_path, "dialog"))
            if action.empty is not None:
                self._known("list", action.empty, script.lists, (*key_path, "empty"))
            for name in action.append or ():
                self._known("list", name, script.lists, (*key_path, "append", name))
            for name in (*(action.set or ()), *(action.add or ())):
                if not name.startswith("item."):
                    self._known("variable", name, script.variables, (*key_path, action.verb, name))
            for key, text in _texts(action):
                self._template(text, (*key_path, *key))
            if action.run is not None:
                for group in re.compile(action.run.progress).groupindex:
                    if not group.startswith("item_"):
                        self._known("variable", group, script.variables, (*key_path, "run", "progress"))
                self._actions(action.run.done, (*key_path, "run", "done"))
                self._actions(action.run.failed, (*key_path, "run", "failed"))

    def _known(self, kind: str, name: str, names: Mapping[str, object], path: KeyPath) -> None:
        if name not in names and not (kind == "variable" and name in RESERVED):
            self._checker.add(path, unknown(kind, name, list(names)))

    def _template(self, text: str, path: KeyPath) -> None:
        for match in NAMED.finditer(text):
            self._known("variable", match[1], self._names, path)

    def _duration(self, text: str, path: KeyPath) -> None:
        try:
            parse_duration_s(text)
        except ValueError as error:
            self._checker.add(path, str(error))
