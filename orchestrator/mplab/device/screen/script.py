"""A scripted app: a state machine of screens in YAML, shown by `ScriptedScreen`.

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
"""A variable in a text; ``%{…}`` is curl's."""
FILE_KEYS = ("name", "path", "host", "size")
"""Of a file: its name, its path on the device and on the host, bytes."""
FILES = "files:"
"""``repeat: files:/sdcard/Download`` repeats a widget for each file of a folder of the device."""


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
    """One action is a list of one; lists become tuples, since strict models want what was read by hand as it stays."""
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
"""Variable → the value, or the values, that it must have: all of them."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Run(_Strict):
    """Real work: a program in the device's network, whose output and end move the app."""

    command: tuple[str, ...] = Field(min_length=1)
    """Without a shell. ``python`` is the interpreter of mplab."""
    name: Word = "work"
    """What `stop` calls it. A second one of this name ends the first."""
    progress: Expression = ""
    """Looked for in each line of output; its named groups become variables."""
    done: "Actions" = ()
    """When it has ended with 0."""
    failed: "Actions" = ()
    """When it has ended otherwise; the variable ``error`` is the last line of its output."""


class Action(_Strict):
    """One thing that an app does: exactly one key."""

    go: Word | None = None
    """Show a screen."""
    set: dict[str, str] | None = None
    """Variables → texts; ``item.NAME`` is that of the entry that was touched, or that was appended last."""
    add: dict[str, int] | None = None
    """Variables that are numbers → what is added."""
    append: dict[Word, dict[Word, str]] | None = None
    """Lists → an entry."""
    empty: Word | None = None
    """A list."""
    run: Run | None = None
    stop: Word | None = None
    """End a program by its name: neither `done` nor `failed` follow."""
    dialog: Word | None = None
    """Show a dialog."""
    close: bool | None = None
    """Close the dialog."""
    toast: str | None = None
    leave: bool | None = None
    """Back to what was in front before."""

    @property
    def verb(self) -> str:
        """The key that it has; "" when none or several."""
        given = [name for name, value in self if value is not None]
        return given[0] if len(given) == 1 else ""


def _one_key(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    for action in actions:
        if not action.verb:
            raise ValueError(f"an action has exactly one key of: {', '.join(Action.model_fields)}")
    return actions


Actions = Annotated[tuple[Action, ...], BeforeValidator(_as_list), AfterValidator(_one_key)]


class Widget(_Strict):
    """One element."""

    kind: str = Field("TextView", alias="class", pattern=r"^[A-Za-z][\w.$]*$")
    """Without a dot: one of ``android.widget``."""
    id: str = Field("", pattern=r"^[\w.:/]*$")
    """``fab``; with ``:``, as it is."""
    text: str = ""
    description: str = ""
    hint: str = ""
    bounds: tuple[int, int, int, int] | None = None
    """Left, top, right, bottom, in pixels; without: below what stands before it."""
    height: int | None = Field(None, ge=1, le=5000)
    row: bool = False
    """Children stand beside each other."""
    when: Condition = Field(default_factory=dict)
    """Only there while this holds."""
    unless: Condition = Field(default_factory=dict)
    """Not there while this holds."""
    repeat: str = ""
    """A list, or ``files:FOLDER``: once for each entry, whose keys are variables."""
    input: Word | None = None
    """The variable that is typed into."""
    clickable: bool | None = None
    """By default: when it can be tapped or typed into."""
    enabled: bool | Condition = True
    checked: Condition | None = None
    """It can be checked, and is while this holds."""
    selected: bool | Condition = False
    scrollable: bool = False
    password: bool = False
    tap: Actions = ()
    long_tap: Actions = ()
    enter: Actions = ()
    """On the key ENTER while it has the focus."""
    children: tuple["Widget", ...] = ()

    def walk(self, path: KeyPath) -> Iterator[tuple[KeyPath, "Widget"]]:
        """This and all below, with their places in the file."""
        yield path, self
        for index, child in enumerate(self.children):
            yield from child.walk((*path, "children", index))


class Panel(_Strict):
    """What stands on the screen: widgets."""

    widgets: tuple[Widget, ...] = Field(min_length=1)
    package: Package | None = None
    """When another app draws it, as the system does with file choosers."""


class Dialog(Panel):
    """What comes over a screen, and takes all touches."""

    after: DurationS | None = None
    """So long after the app has come to the front; without: only by the action `dialog`."""
    on: tuple[str, ...] = ()
    """Screens that it comes over; without: all."""
    starts: int = Field(1, ge=1, le=1000)
    """Not before the app has been started so often since it was cleared."""
    once: bool = True
    """Not again until the app is cleared."""
    back: Actions = Field((Action(close=True),))


class Page(Panel):
    """A screen."""

    activity: str | None = None
    """By default that of the screen before."""
    opened: Actions = ()
    back: Actions = Field((Action(leave=True),))
    after: dict[str, Actions] = Field(default_factory=dict)
    """Time since the screen was opened, with its unit → what happens."""


class AppScript(_Strict):
    """One app."""

    package: Package
    title: str = Field(min_length=1)
    version: str = "1.0"
    version_code: int = Field(1, ge=1)
    system: bool = False
    """Part of the system: not listed as installed by the user."""
    activities: dict[str, str] = Field(min_length=1)
    """Activity → screen; the first is what its icon starts. ``VIEW``: what a link opens, with the variable ``data``."""
    variables: dict[Word, str] = Field(default_factory=dict)
    """With their first values."""
    lab: dict[str, dict[Word, str]] = Field(default_factory=dict)
    """Service of a lab's origin → variables → texts with ``{…}`` for the service's facts: where its servers are."""
    kept: tuple[str, ...] = ()
    """Variables that outlive the app, until it is cleared."""
    lists: dict[Word, tuple[dict[Word, str], ...]] = Field(default_factory=dict)
    dialogs: dict[Word, Dialog] = Field(default_factory=dict)
    screens: dict[Word, Page] = Field(min_length=1)

    @property
    def launcher(self) -> str:
        """The activity that its icon starts; "" when it has only links."""
        return next((name for name in self.activities if name != VIEW), "")

    def panels(self) -> Iterator[tuple[KeyPath, Panel]]:
        """Screens and dialogs with their places."""
        yield from ((("screens", name), page) for name, page in self.screens.items())
        yield from ((("dialogs", name), dialog) for name, dialog in self.dialogs.items())


VIEW = "VIEW"
RESERVED = ("data", "error", "toast", "programs", "cacert", "proxy")
"""Variables that every app has: the link that opened it, what a program said last, …, the folder of the programs that
come with mplab, a file with the certificate authorities to trust, and the HTTP proxy in Android's settings (of programs
that are started)."""
PROGRAMS = Path(__file__).resolve().parents[1] / "apps"
CACERT = "/etc/ssl/certs/ca-certificates.crt"
"""Unless the device is told another one: the lab's."""
