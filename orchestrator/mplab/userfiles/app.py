"""What differs between the phones' versions of one app: how it is started and what its elements are called.

A scenario's folder has it in ``app.yaml``: a section for the virtual phone, where the app is a page, and one for each
of the Android apps that do the same::

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

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.errors import InputError
from mplab.base.suggest import unknown
from mplab.format.selector import By, Selector
from mplab.userfiles.check import Checker
from mplab.userfiles.yaml import load_yaml

FILE = "app.yaml"

Text = Annotated[str, Field(min_length=1)]
Way = Annotated[dict[By, Text | tuple[Text, ...]], Field(min_length=1, max_length=1)]
"""One way to find an element; several values are those of several languages."""
Ways = Way | Annotated[tuple[Way, ...], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Section(_Strict):
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


class _File(_Strict):
    virtual: _Section | None = None
    android: dict[str, _AndroidSection] = Field(default_factory=dict)


@dataclass(frozen=True)
class App:
    """One version of an app.

    Attributes:
        start: what `Ui.open` is given, with ``{…}`` for what only the cell knows.
        elements: what the scenario calls an element → how it is found.
    """

    start: str
    elements: Mapping[str, Selector]


@dataclass(frozen=True)
class AndroidApp(App):
    """An app on Android.

    Attributes:
        package: its name there.
        versions: those that the selectors were made for, first and last.
        seen: on which phone and when they were seen to work, or that they were not.
        note: what a user has to know.
        signed_in: somebody has signed in by hand: it must not be cleared.
        devtools: the abstract socket of its DevTools, while it runs; "": it has none.
        links: what the scenario calls something → the address that opens it: clips, whom to call. Without, it is the
            lab's own, which no real app knows.
        proxy: how it is told a proxy on a phone without root; ``system``: it takes that of Android's settings, HTTP;
            "": no way is known.
        internet: TCP ports of the public servers that it needs; none: the lab's own servers are enough.
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
    """The virtual phone's version of the app in a scenario's folder.

    Raises:
        InputError: there is no ``app.yaml``, or it is wrong, or has no such section.
    """
    section = _load(folder / FILE).virtual
    if section is None:
        raise InputError(f"{folder / FILE}:1: there is no section virtual")
    return App(section.start, _elements(section))


def load_android_apps(folder: Path) -> Mapping[str, AndroidApp]:
    """The Android apps that a scenario can be done with, by name; empty when there are none.

    Raises:
        InputError: there is no ``app.yaml``, or it is wrong.
    """
    return {
        name: AndroidApp(
            start=section.start,
            elements=_elements(section),
            package=section.package,
            versions=section.versions,
            seen=section.seen,
            note=section.note,
            signed_in=section.signed_in,
            devtools=section.devtools,
            links=section.links,
            proxy=section.proxy,
            internet=section.internet,
        )
        for name, section in _load(folder / FILE).android.items()
    }


def load_android_app(folder: Path, name: str) -> AndroidApp:
    """One of them. Raises InputError, also when there is none of this name."""
    apps = load_android_apps(folder)
    if name not in apps:
        raise InputError(f"{folder / FILE}: {unknown('Android app', name, apps)}")
    return apps[name]


def selector_of(ways: Ways) -> Selector:
    """A selector with its fall-backs, as a file has them."""
    flat = [
        Selector(by, value)
        for way in ((ways,) if isinstance(ways, dict) else ways)
        for by, values in way.items()
        for value in ((values,) if isinstance(values, str) else values)
    ]
    return Selector(flat[0].by, flat[0].value, tuple(flat[1:]))


def _load(path: Path) -> _File:
    checker = Checker(load_yaml(path))
    found = checker.model(_File, checker.document.data)
    checker.raise_problems()
    assert found is not None  # noqa: S101 - its problems would have been raised
    return found


def _elements(section: _Section) -> dict[str, Selector]:
    return {name: selector_of(ways) for name, ways in section.elements.items()}
