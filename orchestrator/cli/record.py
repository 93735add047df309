"""``mplab scenarios record``: pick elements on a phone's screen, name them, get YAML."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.output import err, out
from orchestrator.errors import DeviceError, InputError
from orchestrator.ui.android import Automation, AutomationError
from orchestrator.ui.hierarchy import Node, parse_hierarchy
from orchestrator.ui.matching import package_of
from orchestrator.ui.protocol import Selector
from orchestrator.ui.recording import candidates, described, section, ways_to

if TYPE_CHECKING:
    import adbutils  # type: ignore[import-untyped]

_PROMPT = "number and name, n (look again), d (done)"


def record(
    app: Annotated[str, typer.Argument(help="What app.yaml calls the app.", show_default=False)],
    *,
    serial: Annotated[str, typer.Option(help="Of the phone; needed when there are several.")] = "",
    adb_port: Annotated[int, typer.Option(help="Of the adb server that has it.")] = 5037,
    dump: Annotated[Path | None, typer.Option(help="A stored hierarchy (XML) instead of a phone.")] = None,
    into: Annotated[Path | None, typer.Option(help="File to write; by default it is printed.")] = None,
) -> None:
    """Look at a phone's screen, pick elements, name them: the Android section of an app.yaml comes out."""
    if into is not None and into.exists():
        raise InputError(f"{into}: exists; name another file")
    named: dict[str, tuple[Selector, ...]] = {}
    if dump is not None:
        windows, version, seen = _stored(dump), "?", "never on hardware"
        named |= _pick(windows, named)[0]
    else:
        phone = _phone(serial, adb_port)
        windows, version, seen = _live(phone, named)
    if not named:
        err.print("nothing was named")
        raise typer.Exit(1)
    text = section(app, windows, named, version=version, seen=seen)
    if into is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        into.write_text(text)
        out.print(f"{into}: {len(named)} elements", markup=False, highlight=False)


def _stored(path: Path) -> tuple[Node, ...]:
    try:
        return parse_hierarchy(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a hierarchy: {error}") from error


def _phone(serial: str, adb_port: int) -> "adbutils.AdbDevice":
    import adbutils  # noqa: PLC0415 - slow; no other command needs it

    try:
        client = adbutils.AdbClient(port=adb_port)
        serials = [info.serial for info in client.list() if info.state == "device"]
    except (adbutils.AdbError, OSError) as error:
        raise InputError(f"adb server on port {adb_port}: {error}") from error
    if serial not in serials if serial else len(serials) != 1:
        wanted = f"no phone {serial}" if serial else "name one phone with --serial"
        raise InputError(f"adb server on port {adb_port}: {wanted}; there is: {', '.join(serials) or 'none'}")
    return client.device(serial or serials[0])


def _live(phone: adbutils.AdbDevice, named: dict[str, tuple[Selector, ...]]) -> tuple[tuple[Node, ...], str, str]:
    import adbutils  # noqa: PLC0415 - as above

    from orchestrator.ui.uiautomator2 import UiAutomator2  # noqa: PLC0415

    try:
        automation = UiAutomator2(phone)
        try:
            windows, again = _look(automation), True
            while again:
                found, again = _pick(windows, named)
                named |= found
                windows = _look(automation) if again else windows
            info = phone.app_info(package_of(windows))
        finally:
            automation.close()
    except (AutomationError, adbutils.AdbError) as error:
        raise DeviceError(phone.serial, str(error)) from error
    seen = f"{phone.prop.model or phone.serial}, Android {phone.getprop('ro.build.version.release')}"
    return windows, info.version_name if info else "?", f"{seen}, {datetime.now(UTC):%Y-%m-%d}"


def _look(automation: Automation) -> tuple[Node, ...]:
    return parse_hierarchy(automation.hierarchy())


def _pick(
    windows: Sequence[Node], named: dict[str, tuple[Selector, ...]]
) -> tuple[dict[str, tuple[Selector, ...]], bool]:
    """What has been named on this screen, and whether the next one is wanted."""
    nodes = candidates(windows)
    out.print(f"{package_of(windows)}:", markup=False, highlight=False)
    for number, node in enumerate(nodes, 1):
        out.print(f"{number:3}  {described(node)}", markup=False, highlight=False, soft_wrap=True)
    found: dict[str, tuple[Selector, ...]] = {}
    while True:
        answer = typer.prompt(_PROMPT, prompt_suffix=": ").strip()
        if answer in {"d", "n"}:
            return found, answer == "n"
        number, _, name = answer.partition(" ")
        if not number.isdigit() or not 1 <= int(number) <= len(nodes) or not name.strip():
            err.print(f"a number from 1 to {len(nodes)} and a name, n or d", markup=False)
        elif name.strip() in {**named, **found}:
            err.print(f"there is an element {name.strip()} already", markup=False)
        else:
            found[name.strip()] = ways_to(nodes[int(number) - 1], windows)
