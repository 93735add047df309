"""Properties of an app that differ between kinds of phone: how the app starts and how its elements are found.

``app.yaml`` in a scenario's folder has a section for the virtual phone, where the app is a web page. It has one more
section for each equivalent Android app::

    virtual:
      start: "{url}/?account={account}"
      elements:
        post: {css: "#post"}
    android:
      facebook:
        package: com.facebook.katana
        versions: 480 … 520
        seen: never on hardware
        start: com.facebook.katana/.LoginActivity
        elements:
          post:
            - {id: com.facebook.katana:id/composer_post_button}
            - {text: [Post, Publier, Posten]}
            - {description: Post}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mplab.base.errors import InputError
from mplab.base.plugins import SCENARIOS
from mplab.base.suggest import unknown
from mplab.format.names import FileModel
from mplab.format.selector import By, Selector
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import load_yaml

FILE = "app.yaml"

Text = Annotated[str, Field(min_length=1)]
Way = Annotated[dict[By, Text | tuple[Text, ...]], Field(min_length=1, max_length=1)]
"""One way to find an element; several values are the texts of several languages."""
Ways = Way | Annotated[tuple[Way, ...], Field(min_length=1)]


class _Section(FileModel):
    start: Text
    elements: dict[str, Ways]


class _AndroidSection(_Section):
    package: Annotated[str, Field(pattern=r"^[A-Za-z]\w*(\.[A-Za-z]\w*)+$")]
    versions: Text
    seen: Text
    note: str = ""
    signed_in: bool = False
    devtools: str = Field("", pattern=r"^\w*$")
    links: dict[str, Text] = Field(default_factory=dict)
    proxy: Literal["", "system"] = ""
    internet: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = ()


class _File(FileModel):
    virtual: _Section | None = None
    android: dict[str, _AndroidSection] = Field(default_factory=dict)


@dataclass(frozen=True)
class App:
    """An app on one kind of phone: how it starts, and how its elements are found.

    Attributes:
        start: argument of `Ui.open` that starts the app. In a cell, the scenario replaces ``{NAME}`` by a parameter of
            its own or by an address of the lab.
        elements: element name in the scenario → selector.
    """

    start: str
    elements: Mapping[str, Selector]


@dataclass(frozen=True)
class AndroidApp(App):
    """An Android app.

    Attributes:
        package: package name.
        versions: first and last version of the app that the selectors were written for.
        seen: phone and date on which the selectors worked, or a note that they were never tried.
        note: information for users.
        signed_in: True: the app needs a login by hand, so its data must not be cleared.
        devtools: abstract socket of the running app's DevTools; "": the app has none.
        links: name of an item in the scenario (a clip, a contact) → address that opens the item. For an item without
            an entry, the scenario uses an address of the lab, which a real app cannot open.
        proxy: setting by which the app uses a proxy on a phone without root. ``system``: the HTTP proxy of Android's
            settings; "": no such setting is known.
        internet: TCP ports of the public servers that the app needs; empty: the lab's servers suffice.
    """

    package: str
    versions: str
    seen: str
    note: str = ""
    signed_in: bool = False
    devtools: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    proxy: str = ""
    internet: tuple[int, ...] = ()


def load_app(folder: Path) -> App:
    """Return the virtual phone's version of the app in a scenario's folder.

    Raises:
        InputError: ``app.yaml`` is missing or wrong, or has no section ``virtual``.
    """
    section = _load(folder / FILE).virtual
    if section is None:
        raise InputError(f"{folder / FILE}:1: there is no section virtual")
    return App(section.start, _elements(section))


def load_android_apps(folder: Path) -> Mapping[str, AndroidApp]:
    """Return name → Android app for the scenario in `folder`; empty: the scenario has no Android app.

    Raises:
        InputError: ``app.yaml`` is missing or wrong.
    """
    return {
        name: AndroidApp(**{**dict(section), "elements": _elements(section)})
        for name, section in _load(folder / FILE).android.items()
    }


def load_android_app(folder: Path, name: str) -> AndroidApp:
    """Return one Android app of a scenario. Raises InputError: ``app.yaml`` is wrong, or has no app of this name."""
    apps = load_android_apps(folder)
    if name not in apps:
        raise InputError(f"{folder / FILE}: {unknown('Android app', name, apps)}")
    return apps[name]


def selector_of(ways: Ways) -> Selector:
    """Convert the conditions of an element in ``app.yaml`` to a selector: the first one, the others as fallbacks."""
    flat = [
        Selector(by, value)
        for alternative in ((ways,) if isinstance(ways, dict) else ways)
        for by, values in alternative.items()
        for value in ((values,) if isinstance(values, str) else values)
    ]
    return Selector(flat[0].by, flat[0].value, tuple(flat[1:]))


def _load(path: Path) -> _File:
    checker = Checker(load_yaml(path))
    file = checker.model(_File, checker.document.data)
    checker.raise_problems()
    assert file is not None  # noqa: S101 - its problems would have been raised
    return file


def _elements(section: _Section) -> dict[str, Selector]:
    return {name: selector_of(ways) for name, ways in section.elements.items()}


UiName = Literal["uiautomator2", "appium"]
"""Driver of a phone's screen."""


def android_apps(scenario: str) -> Mapping[str, AndroidApp]:
    """Return name → Android app for the scenario with this name, the default app first.

    Raises:
        InputError: there is no such scenario, or its ``app.yaml`` is wrong.
    """
    folder = SCENARIOS[scenario].folder()
    return load_android_apps(folder) if (folder / FILE).exists() else {}


def app_files(scenario: str) -> dict[str, bytes]:
    """Return the scenario's ``app.yaml`` as {path in the run directory: content}; {}: the scenario has none."""
    path = SCENARIOS[scenario].folder() / FILE
    return {f"ui-scenarios/{scenario}/{FILE}": path.read_bytes()} if path.exists() else {}


def chosen_app(scenario: str, app_of: Mapping[str, str] | None) -> AndroidApp | None:
    """Return the Android app that a scenario uses; None: the scenario has no Android app, or no app of the chosen name.

    Args:
        scenario: name of the scenario.
        app_of: scenario → name of the chosen app; for a scenario that is not in it, the first app of its ``app.yaml``.

    Raises:
        InputError: the ``app.yaml`` is wrong.
    """
    apps = android_apps(scenario)
    return apps.get((app_of or {}).get(scenario) or next(iter(apps), ""))


def _parse_app_of(choices: object) -> object:
    if not isinstance(choices, dict):
        return choices
    known = list(SCENARIOS)
    problems = []
    for scenario, app in choices.items():
        if scenario not in known:
            problems.append(unknown("scenario", str(scenario), known))
            continue
        try:
            apps = android_apps(scenario)
        except InputError as error:
            problems.append(str(error))
            continue
        if not apps:
            problems.append(f"scenario {scenario!r} has no Android app to choose from")
        elif app not in apps:
            problems.append(unknown(f"app of {scenario}", str(app), apps))
    if problems:
        raise ValueError("; ".join(problems))
    return choices


AppOf = Annotated[dict[str, str], BeforeValidator(_parse_app_of)]
"""Scenario → Android app, which is a section of the scenario's ``app.yaml``."""
