"""Look at a phone's screen, pick elements, name them: the Android section of an app.yaml comes out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import DeviceError, InputError
from mplab.base.hierarchy import UiNode, parse_hierarchy
from mplab.cli.output import err, out, output_file
from mplab.drivers.ui.android import Automation, AutomationError
from mplab.drivers.ui.matching import package_of
from mplab.drivers.ui.recording import candidates, described, replaced, section, ways_to
from mplab.drivers.ui.uiautomator2 import UiAutomator2, phone_at
from mplab.format.selector import Selector
from mplab.userfiles.experiments.app import FILE, load_android_apps

_PROMPT = "number and name, n (look again), d (done)"


def record(
    app: Annotated[str, typer.Argument(help="Name of the app in its app.yaml.", show_default=False)],
    *,
    serial: Annotated[
        str, typer.Option(help="Use the phone with this serial number; needed if there are several.")
    ] = "",
    adb_port: Annotated[int, typer.Option(help="Use the adb server at this TCP port.")] = 5037,
    dump: Annotated[
        Path | None, typer.Option(help="Read this stored hierarchy (XML) instead of the screen of a phone.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            help="Write to this file. By default, the section is printed. In an app.yaml that has the app, "
            "the named elements are replaced.",
            callback=output_file,
        ),
    ] = None,
) -> None:
    old = into is not None and into.exists()
    if into is not None and old:
        _check_there(into, app)
    named: dict[str, tuple[Selector, ...]] = {}
    if dump is not None:
        windows, version, seen = _stored(dump), "?", "never on hardware"
        named |= _pick(windows, named)[0]
    else:
        windows, version, seen = _live(serial, adb_port, named)
    if not named:
        err.print("nothing was named")
        raise typer.Exit(1)
    if into is not None and old:
        into.write_text(replaced(into.read_text(), app, named))
        text = f"{into}: replaced: {', '.join(named)}. Check 'versions' and 'seen' of {app}: they are as before"
        out.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    text = section(app, windows, named, version=version, seen=seen)
    if dump is not None:
        err.print("A stored screen does not have the version of its app: fill in 'versions'.")
    if into is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        into.write_text(text)
        out.print(f"{into}: {len(named)} elements", markup=False, highlight=False)


def _check_there(into: Path, app: str) -> None:
    """Raise InputError unless the existing file `into` is an app.yaml with a section for the Android app `app`."""
    if into.name != FILE:
        raise InputError(f"{into}: exists, and is no {FILE} in which elements could be replaced. Name another file")
    if app not in (there := load_android_apps(into.parent)):
        names = f"it has {', '.join(there)}" if there else "it has none"
        raise InputError(f"{into}: no Android app {app!r} whose elements could be replaced: {names}. Name another file")


def _stored(path: Path) -> tuple[UiNode, ...]:
    try:
        return parse_hierarchy(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a hierarchy: {error}") from error


def _live(serial: str, adb_port: int, named: dict[str, tuple[Selector, ...]]) -> tuple[tuple[UiNode, ...], str, str]:
    """Let the user name elements on screens of a phone, and add their selectors to `named`.

    Return the element tree of the last screen, the version of its app, and a text with the phone and today's date.

    Raises:
        DeviceError: the automation of the phone's screen failed.
    """
    automation = UiAutomator2(phone_at(adb_port, serial))
    try:
        windows, again = _look(automation), True
        while again:
            chosen, again = _pick(windows, named)
            named |= chosen
            windows = _look(automation) if again else windows
        seen = f"{automation.describe()}, {datetime.now(UTC):%Y-%m-%d}"
        return windows, automation.version_of(package_of(windows)), seen
    except AutomationError as error:
        raise DeviceError(automation.device, str(error)) from error
    finally:
        automation.close()


def _look(automation: Automation) -> tuple[UiNode, ...]:
    return parse_hierarchy(automation.hierarchy())


def _pick(
    windows: Sequence[UiNode], named: dict[str, tuple[Selector, ...]]
) -> tuple[dict[str, tuple[Selector, ...]], bool]:
    """Print the elements of a screen, and let the user name some of them.

    Return name → selectors of the elements that the user named, and whether the user wants another screen.
    """
    nodes = candidates(windows)
    out.print(f"{package_of(windows)}:", markup=False, highlight=False)
    for number, node in enumerate(nodes, 1):
        out.print(f"{number:3}  {described(node)}", markup=False, highlight=False, soft_wrap=True)
    chosen: dict[str, tuple[Selector, ...]] = {}
    while True:
        answer = typer.prompt(_PROMPT, prompt_suffix=": ").strip()
        if answer in {"d", "n"}:
            return chosen, answer == "n"
        number, _, name = answer.partition(" ")
        if not number.isdigit() or not 1 <= int(number) <= len(nodes) or not name.strip():
            err.print(f"a number from 1 to {len(nodes)} and a name, n or d", markup=False)
        elif name.strip() in {**named, **chosen}:
            err.print(f"there is an element {name.strip()} already", markup=False)
        else:
            chosen[name.strip()] = ways_to(nodes[int(number) - 1], windows)
