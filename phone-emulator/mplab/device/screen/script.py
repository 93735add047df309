"""Define a scripted app: a state machine of screens in YAML, shown by `ScriptedScreen`.

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

Texts have ``{…}`` for variables. docs/phones.md explains every key.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from mplab.base.suggest import show
from mplab.format.units import DurationS
from mplab.userfiles.yaml import KeyPath

_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAMED = re.compile(r"(?<!%)\{([a-z][a-z0-9_]*)\}")
"""Pattern of a variable in a text; ``%{…}`` is curl's."""
FILE_KEYS = ("name", "path", "host", "size")
"""Keys of a file's entry: its name, its path on the device and on the host, its size in bytes."""
FILES = "files:"
"""Prefix of a folder: ``repeat: files:/sdcard/Download`` repeats a widget for each file in that device folder."""


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
    """Convert one action to a list of one, and lists to tuples: strict models accept no lists for tuples."""
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
"""Variable → required value, or possible values; all variables must match."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Run(_Strict):
    """A program in the device's network, whose output and end change the app."""

    command: tuple[str, ...] = Field(min_length=1)
    """Command line, without a shell. ``python`` is the interpreter of mplab."""
    name: Word = "work"
    """Name for `stop`. A second program of this name ends the first."""
    progress: Expression = ""
    """Pattern that is searched in each line of output; its named groups become variables."""
    done: "Actions" = ()
    """Actions after exit code 0."""
    failed: "Actions" = ()
    """Actions after another exit code; the variable ``error`` is the last line of output."""


class Action(_Strict):
    """An action of an app: exactly one key."""

    go: Word | None = None
    """Show a screen."""
    set: dict[str, str] | None = None
    """Variables → texts; ``item.NAME`` is a key of the touched, or last appended, entry."""
    add: dict[str, int] | None = None
    """Numeric variables → number to add."""
    append: dict[Word, dict[Word, str]] | None = None
    """Lists → entry to append."""
    empty: Word | None = None
    """List to empty."""
    run: Run | None = None
    stop: Word | None = None
    """End a program by its name; neither its `done` nor its `failed` is performed."""
    dialog: Word | None = None
    """Show a dialog."""
    close: bool | None = None
    """Close the dialog."""
    toast: str | None = None
    leave: bool | None = None
    """Return to the app that was in front before."""

    @property
    def verb(self) -> str:
        """Return the name of the key that is set; "" if none or several are set."""
        names = [name for name, value in self if value is not None]
        return names[0] if len(names) == 1 else ""


def _one_key(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    for action in actions:
        if not action.verb:
            raise ValueError(f"an action has exactly one key of: {', '.join(Action.model_fields)}")
    return actions


Actions = Annotated[tuple[Action, ...], BeforeValidator(_as_list), AfterValidator(_one_key)]


class Widget(_Strict):
    """An element of a screen."""

    kind: str = Field("TextView", alias="class", pattern=r"^[A-Za-z][\w.$]*$")
    """Class; without a dot it is in ``android.widget``."""
    id: str = Field("", pattern=r"^[\w.:/]*$")
    """Resource id: ``fab``; with ``:`` it is used unchanged."""
    text: str = ""
    description: str = ""
    hint: str = ""
    bounds: tuple[int, int, int, int] | None = None
    """Left, top, right, bottom, in pixels; by default below the previous widget."""
    height: int | None = Field(None, ge=1, le=5000)
    row: bool = False
    """Arrange the children next to each other."""
    when: Condition = Field(default_factory=dict)
    """Show the widget only while this condition is true."""
    unless: Condition = Field(default_factory=dict)
    """Hide the widget while this condition is true."""
    repeat: str = ""
    """List, or ``files:FOLDER``: repeat the widget for each entry, whose keys are variables."""
    input: Word | None = None
    """Variable that is typed into."""
    clickable: bool | None = None
    """True: it can be tapped. None: it can be tapped if it has actions for a tap, or an input."""
    enabled: bool | Condition = True
    checked: Condition | None = None
    """Make the widget checkable; it is checked while this condition is true."""
    selected: bool | Condition = False
    scrollable: bool = False
    password: bool = False
    tap: Actions = ()
    long_tap: Actions = ()
    enter: Actions = ()
    """Actions for the key ENTER while the widget has the focus."""
    children: tuple["Widget", ...] = ()

    def walk(self, path: KeyPath) -> Iterator[tuple[KeyPath, "Widget"]]:
        """Yield this widget and all below it, with their key paths in the file."""
        yield path, self
        for index, child in enumerate(self.children):
            yield from child.walk((*path, "children", index))


class Panel(_Strict):
    """The widgets on the screen."""

    widgets: tuple[Widget, ...] = Field(min_length=1)
    package: Package | None = None
    """Package of another app that draws the panel, like the system's file chooser."""


class Dialog(Panel):
    """A dialog over a screen, which gets all touches."""

    after: DurationS | None = None
    """Time after the app came to the front; by default it is shown only by the action `dialog`."""
    on: tuple[str, ...] = ()
    """Screens over which the dialog appears; by default all."""
    starts: int = Field(1, ge=1, le=1000)
    """Start of the app, counted since the app was cleared, from which on the dialog appears."""
    once: bool = True
    """Show the dialog only once until the app is cleared."""
    back: Actions = Field((Action(close=True),))


class Page(Panel):
    """A screen of an app."""

    activity: str | None = None
    """Activity of the screen; by default that of the previous screen."""
    opened: Actions = ()
    back: Actions = Field((Action(leave=True),))
    after: dict[str, Actions] = Field(default_factory=dict)
    """Time after the screen was opened, with its unit → actions."""


class AppScript(_Strict):
    """A scripted app."""

    package: Package
    title: str = Field(min_length=1)
    version: str = "1.0"
    version_code: int = Field(1, ge=1)
    system: bool = False
    """Part of the system: not listed as installed by the user."""
    activities: dict[str, str] = Field(min_length=1)
    """Activity → screen; the icon starts the first one. A link opens ``VIEW``, with the variable ``data`` set to it."""
    variables: dict[Word, str] = Field(default_factory=dict)
    """Variables with their initial values."""
    lab: dict[str, dict[Word, str]] = Field(default_factory=dict)
    """Service of a lab's origin → variables → texts with ``{…}`` for the service's facts: addresses of its servers."""
    kept: tuple[str, ...] = ()
    """Variables and lists that survive the app, until it is cleared."""
    lists: dict[Word, tuple[dict[Word, str], ...]] = Field(default_factory=dict)
    dialogs: dict[Word, Dialog] = Field(default_factory=dict)
    screens: dict[Word, Page] = Field(min_length=1)

    @property
    def launcher(self) -> str:
        """Return the activity that the app's icon starts; "" if only links open the app."""
        return next((name for name in self.activities if name != VIEW), "")

    def panels(self) -> Iterator[tuple[KeyPath, Panel]]:
        """Yield screens and dialogs with their key paths."""
        yield from ((("screens", name), page) for name, page in self.screens.items())
        yield from ((("dialogs", name), dialog) for name, dialog in self.dialogs.items())


VIEW = "VIEW"
RESERVED = ("data", "error", "toast", "programs", "cacert", "proxy")
"""Names of variables that every app may use without defining them.

``data``: link that opened the app. ``error``: last output of a failed program. ``programs``: folder of the programs
that come with mplab. ``cacert``: file of trusted certificate authorities. ``proxy``: HTTP proxy in Android's settings
when the last program was started.
"""
PROGRAMS = Path(__file__).resolve().parents[1] / "apps"
CACERT = "/etc/ssl/certs/ca-certificates.crt"
"""Trusted certificate authorities, unless the device's settings name the lab's file."""
