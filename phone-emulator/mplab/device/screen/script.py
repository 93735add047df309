"""Define the format of scripted apps: state machines of screens in YAML, which `ScriptedScreen` shows.

::

    package: com.example.notes
    title: Notes
    activities: {.MainActivity: list}
    variables: {draft: ""}
    lists: {notes: []}
    screens:
      list:
        widgets:
          - {id: note, text: "{text}", repeat: notes}
          - {id: add, class: Button, description: New note, tap: {go: edit}}
      edit:
        back: [{append: {notes: {text: "{draft}"}}}, {set: {draft: ""}}, {go: list}]
        widgets:
          - {id: body, class: EditText, hint: Write here, input: draft}

Texts have ``{…}`` for variables. docs/emulated-device.md explains every key.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from mplab.base.suggest import show
from mplab.format.units import DurationS
from mplab.userfiles.strict.yaml import KeyPath

_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAMED = re.compile(r"(?<!%)\{([a-z][a-z0-9_]*)\}")
"""Pattern of a variable ``{…}`` in a text; ``%{…}`` is not a variable but a format of curl."""
FILE_KEYS = ("name", "path", "host", "size")
"""Keys of a list entry that describes a file: its name, its path on the device and on the host, its size in bytes."""
FILES = "files:"
"""Prefix of a device folder in the key `repeat`: ``files:/sdcard/Download`` repeats a widget for each of its files."""


def _package(found: str) -> str:
    if not _PACKAGE.fullmatch(found):
        raise ValueError(f"package {show(found)}: a name like 'com.dropbox.android' is needed")
    return found


def _word(found: str) -> str:
    if not _WORD.fullmatch(found):
        raise ValueError(f"name {show(found)}: small letters, digits and _ are needed, a letter first")
    return found


def _expression(found: str) -> str:
    try:
        re.compile(found)
    except re.error as error:
        raise ValueError(f"{show(found)} is no regular expression: {error}") from None
    return found


def _as_list(found: object) -> object:
    """Convert a single action to a tuple of one, and a list to a tuple, because strict models accept only tuples."""
    return _tuples((found,) if isinstance(found, Mapping) else found)


def _tuples(found: object) -> object:
    if isinstance(found, list | tuple):
        return tuple(map(_tuples, found))
    return {key: _tuples(value) for key, value in found.items()} if isinstance(found, Mapping) else found


Package = Annotated[str, AfterValidator(_package)]
Word = Annotated[str, AfterValidator(_word)]
Expression = Annotated[str, AfterValidator(_expression)]
Values = str | tuple[str, ...]
Condition = dict[str, Values]
"""Variable → required value, or several allowed values. The condition is true if all variables match."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AppProgram(_Strict):
    """A program that an app runs in the device's network. Its output and its end change the app."""

    command: tuple[str, ...] = Field(min_length=1)
    """Command line, which is run without a shell. The word ``python`` is the interpreter of mplab."""
    name: Word = "work"
    """Name of the program, for the action `stop`. A second program of this name ends the first one."""
    progress: Expression = ""
    """Regular expression that is searched in each line of output. Its named groups set variables."""
    done: "Actions" = ()
    """Actions that are performed when the program has ended with exit code 0."""
    failed: "Actions" = ()
    """Actions that are performed after another exit code. The variable ``error`` then has the last line of output."""


class AppAction(_Strict):
    """An action of an app. Exactly one of its keys is set."""

    go: Word | None = None
    """Name of the screen to show."""
    set: dict[str, str] | None = None
    """Variables to set → their texts. ``item.NAME`` sets the key NAME of the list entry touched or appended last."""
    add: dict[str, int] | None = None
    """Numeric variables → the number to add to each."""
    append: dict[Word, dict[Word, str]] | None = None
    """Lists → the entry to append to each."""
    empty: Word | None = None
    """Name of the list to empty."""
    run: AppProgram | None = None
    stop: Word | None = None
    """Name of the program to end. Neither its `done` nor its `failed` is performed."""
    dialog: Word | None = None
    """Name of the dialog to show."""
    close: bool | None = None
    """True: close the dialog that is shown."""
    toast: str | None = None
    leave: bool | None = None
    """True: leave the app. The app that was in front before is shown."""

    @property
    def verb(self) -> str:
        """Return the name of the key that is set; "" if none or several are set."""
        names = [name for name, value in self if value is not None]
        return names[0] if len(names) == 1 else ""


def _one_key(actions: tuple[AppAction, ...]) -> tuple[AppAction, ...]:
    for action in actions:
        if not action.verb:
            raise ValueError(f"an action has exactly one key of: {', '.join(AppAction.model_fields)}")
    return actions


Actions = Annotated[tuple[AppAction, ...], BeforeValidator(_as_list), AfterValidator(_one_key)]


class Widget(_Strict):
    """A widget of a screen or dialog, drawn as an element."""

    kind: str = Field("TextView", alias="class", pattern=r"^[A-Za-z][\w.$]*$")
    """Class of the widget; a name without a dot is a class of Android, like ``Button``."""
    id: str = Field("", pattern=r"^[\w.:/]*$")
    """Resource id without the app's package, like ``fab``; an id with ``:`` is used unchanged."""
    text: str = ""
    description: str = ""
    hint: str = ""
    bounds: tuple[int, int, int, int] | None = None
    """Left, top, right and bottom edge, pixels; by default the widget is below the previous one."""
    height: int | None = Field(None, ge=1, le=5000)
    row: bool = False
    """True: the children are next to each other. False: they are below each other."""
    when: Condition = Field(default_factory=dict)
    """Condition under which the widget is shown."""
    unless: Condition = Field(default_factory=dict)
    """Condition under which the widget is hidden; empty: never."""
    repeat: str = ""
    """Name of a list, or ``files:FOLDER``: the widget is repeated for each entry, whose keys are variables in it."""
    input: Word | None = None
    """Variable that receives typed text; it makes the widget a text field."""
    clickable: bool | None = None
    """Whether the widget can be tapped; None: it can if it has `tap` or `input`."""
    enabled: bool | Condition = True
    checked: Condition | None = None
    """Condition under which the widget is checked; None: it is not checkable."""
    selected: bool | Condition = False
    scrollable: bool = False
    password: bool = False
    tap: Actions = ()
    long_tap: Actions = ()
    enter: Actions = ()
    """Actions that the key ENTER triggers while the widget has the focus."""
    children: tuple["Widget", ...] = ()

    def walk(self, path: KeyPath) -> Iterator[tuple[KeyPath, "Widget"]]:
        """Yield (key path, widget) for this widget and all widgets in it; `path` is the key path of this widget."""
        yield path, self
        for index, child in enumerate(self.children):
            yield from child.walk((*path, "children", index))


class Panel(_Strict):
    """The widgets that are shown at one time: base class of screens and dialogs."""

    widgets: tuple[Widget, ...] = Field(min_length=1)
    package: Package | None = None
    """Package name of the elements, if another app draws them, like the system's file chooser."""


class AppDialog(Panel):
    """A dialog over a screen. It gets all touches."""

    after: DurationS | None = None
    """Time after the app came to the front at which the dialog is shown; None: only the action `dialog` shows it."""
    on: tuple[str, ...] = ()
    """Names of the screens over which the dialog appears by itself; empty: all screens."""
    starts: int = Field(1, ge=1, le=1000)
    """Number of the first start of the app at which the dialog appears, counted since the app's data was cleared."""
    once: bool = True
    """True: the dialog appears by itself only once until the app's data is cleared."""
    back: Actions = Field((AppAction(close=True),))


class Page(Panel):
    """A screen of a scripted app."""

    activity: str | None = None
    """Activity that the app reports while the screen is shown; None: that of the previous screen."""
    opened: Actions = ()
    back: Actions = Field((AppAction(leave=True),))
    after: dict[str, Actions] = Field(default_factory=dict)
    """Time after the screen was opened, like ``2 s`` → actions that are performed then."""


class AppScript(_Strict):
    """Content of a scripted app's file."""

    package: Package
    title: str = Field(min_length=1)
    version: str = "1.0"
    version_code: int = Field(1, ge=1)
    system: bool = False
    """True: the app is part of the system, and not listed as installed by the user."""
    activities: dict[str, str] = Field(min_length=1)
    """Activity → screen that it opens. The icon starts the first activity. A link opens the activity ``VIEW``, and the
    variable ``data`` is set to the link."""
    variables: dict[Word, str] = Field(default_factory=dict)
    """Variable → initial value."""
    lab: dict[str, dict[Word, str]] = Field(default_factory=dict)
    """Service of a lab → variable → value in that lab, a text with ``{…}`` for facts of the service, such as URLs."""
    kept: tuple[str, ...] = ()
    """Names of the variables and lists that survive the end of the app, until its data is cleared."""
    lists: dict[Word, tuple[dict[Word, str], ...]] = Field(default_factory=dict)
    dialogs: dict[Word, AppDialog] = Field(default_factory=dict)
    screens: dict[Word, Page] = Field(min_length=1)

    @property
    def launcher(self) -> str:
        """Return the activity that the app's icon starts; "" if only links open the app."""
        return next((name for name in self.activities if name != VIEW), "")

    def panels(self) -> Iterator[tuple[KeyPath, Panel]]:
        """Yield (key path in the app's file, content) for each screen and each dialog."""
        yield from ((("screens", name), page) for name, page in self.screens.items())
        yield from ((("dialogs", name), dialog) for name, dialog in self.dialogs.items())


VIEW = "VIEW"
RESERVED = ("data", "error", "toast", "programs", "cacert", "proxy")
"""Names of variables that every app can use without defining them.

``data``: link that opened the app. ``error``: last line of output of a failed program. ``programs``: folder of the
programs that come with mplab. ``cacert``: file of trusted certificate authorities. ``proxy``: HTTP proxy in Android's
settings when the last program was started.
"""
PROGRAMS = Path(__file__).resolve().parents[1] / "apps"
CACERT = "/etc/ssl/certs/ca-certificates.crt"
"""File of trusted certificate authorities, unless the device's settings name another file."""
