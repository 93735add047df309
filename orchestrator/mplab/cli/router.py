"""``mplab router``: what is installed on the routers of a lab; shaping them, its servers and its phones by hand."""

import math
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.undo import UndoJournal
from mplab.cli.options import JsonOption, LinkOrFileOption, check_name, one_link
from mplab.cli.output import err, out, print_json
from mplab.drivers.shaper.abilities import TC
from mplab.drivers.shaper.held import full_name, held_places, open_shell, state_directory, undo_directory
from mplab.drivers.shaper.openwrt import guard as installed
from mplab.drivers.shaper.protocol import PathMeasurement
from mplab.drivers.shaper.tc import Place, TcShaper, guard
from mplab.drivers.shaper.tc.shell import Shell
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.format.abilities import refusals
from mplab.userfiles.check import raise_lines
from mplab.userfiles.lab import LabFile, PlaceFile, RouterFile, load_lab

app = typer.Typer(no_args_is_help=True)

LabArgument = Annotated[Path, typer.Argument(help="Lab file (YAML).", show_default=False)]
RouterOption = Annotated[str, typer.Option("--router", help="One router, server or phone that shapes; all by default.")]

_POLL_S = 1.0
_VIRTUAL_ALONE = "what is virtual is there inside a lab alone: 'mplab lab up --lab FILE', 'mplab run … --lab FILE'"
_BY_ADB_ALONE = "by hand, a phone shapes itself by its 'root_shell', which it has not; by adb, it does so in runs"
_NOTHING_NEEDED = "nothing needs to be installed: its dead-man's switch runs while it is held"


def _names(lab: LabFile, chosen: str) -> list[str]:
    places = lab.places()
    if chosen in lab.virtual_routers() or not places:
        raise InputError(f"lab {lab.name}: {_VIRTUAL_ALONE}")
    if chosen:
        check_name("router", chosen, places)
    return [chosen] if chosen else sorted(places)


def _each(lab: LabFile, chosen: str, action: Callable[[Shell, PlaceFile], str]) -> None:
    """Do something with everything that shapes, or the one that is asked for, and say what came of it."""
    for name in _names(lab, chosen):
        settings = lab.places()[name]
        shell = open_shell(full_name(lab, name), settings)
        shell.connect()
        try:
            out.print(f"{shell.name}: {action(shell, settings)}", markup=False, soft_wrap=True)
        finally:
            shell.close()


def _install(shell: Shell, settings: PlaceFile) -> str:
    if not isinstance(shell, SshConnection) or not isinstance(settings, RouterFile):
        return _NOTHING_NEEDED
    done = "the dead-man's switch is installed and runs"
    return done if installed.install(shell) else f"{done} already"


@app.command()
def install(lab: LabArgument, router: RouterOption = "") -> None:
    """Install the dead-man's switch on the routers; does nothing where it is installed already."""
    _each(load_lab(lab), router, _install)


def _remove(shell: Shell, settings: PlaceFile) -> str:
    if not isinstance(shell, SshConnection) or not isinstance(settings, RouterFile):
        return _NOTHING_NEEDED
    return "the dead-man's switch is removed" if installed.remove(shell) else "nothing of mplab is installed"


@app.command()
def remove(lab: LabArgument, router: RouterOption = "") -> None:
    """Take the dead-man's switch off the routers; does nothing where it is not installed."""
    _each(load_lab(lab), router, _remove)


def _state(shell: Shell, settings: PlaceFile) -> installed.GuardState | guard.Holder:
    if isinstance(shell, SshConnection) and isinstance(settings, RouterFile):
        return installed.show(shell)
    return guard.holder(shell, state_directory(settings))


@app.command()
def show(lab: LabArgument, router: RouterOption = "", as_json: JsonOption = False) -> None:
    """Show what is installed, and who holds the routers, servers and phones."""
    found = load_lab(lab)
    if not as_json:
        _each(found, router, lambda shell, settings: _describe(_state(shell, settings)))
        return
    states = {}
    for name in _names(found, router):
        settings = found.places()[name]
        shell = open_shell(full_name(found, name), settings)
        shell.connect()
        states[name] = asdict(_state(shell, settings))
        shell.close()
    print_json(states)


def _describe(state: installed.GuardState | guard.Holder) -> str:
    holder = guard.Holder(state.owner, state.silent_s)
    if isinstance(state, guard.Holder):
        return str(holder)
    if not state.files:
        return "nothing of mplab is installed"
    version = "installed" if state.installed else "another version is installed"
    running = "runs" if state.running else "does not run"
    return f"dead-man's switch {version}, {running}, {'' if state.enabled else 'not '}started at boot; {holder}"


def _give_back(shell: Shell, settings: PlaceFile) -> str:
    done = guard.call(shell, state_directory(settings), "restore", check=False)
    if done.exit_code != 0:
        raise LabNotReadyError(f"{shell.name}: not everything could be taken back: {done.stderr.strip()}")
    return "as it was found"


@app.command()
def restore(lab: LabArgument, router: RouterOption = "") -> None:
    """Take back what mplab has changed, whoever holds the router, server or phone: a run that uses it now fails."""
    found = load_lab(lab)
    for item in UndoJournal.recover(undo_directory()):
        out.print(f"{item.name}: {item.failure or 'taken back'}", markup=False, soft_wrap=True)
    _each(found, router, _give_back)


@app.command()
def shape(
    lab: LabArgument,
    phone: Annotated[str, typer.Argument(help="A phone of the lab file.", show_default=False)],
    link: LinkOrFileOption = "baseline",
    seconds: Annotated[float, typer.Option(help="For how long; 0: until Ctrl-C.", min=0)] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Put a phone's paths under a link condition, show what the kernels say, and take it back at the end."""
    found = load_lab(lab)
    check_name("phone", phone, found.phones)
    condition = one_link(link)
    raise_lines([f"link {link!r}: {problem}" for problem in refusals(condition, TC)])
    attached = found.phones[phone]
    if attached.kind is not None and not attached.kind.real:
        raise InputError(f"lab {found.name}: phone {phone!r}: {_VIRTUAL_ALONE}")
    places = attached.attachments()
    if attached.root_shell is None and any(place.at for place in places.values()):
        raise InputError(f"lab {found.name}: phone {phone!r}: {_BY_ADB_ALONE}")
    with held_places(found, {place.place(phone) for place in places.values()}, run_id="by-hand") as held:
        shaper = TcShaper(phone, attached, held, _no_probe)
        paths = {interface: path for interface, path in condition.paths().items() if interface in places}
        shaper.apply(paths, seed=1, core_rtt_ms=condition.core_rtt_ms)
        state = shaper.state()
        for warning in shaper.warnings():
            err.print(f"mplab: {warning}", style="yellow", markup=False, soft_wrap=True)
        if as_json:
            print_json(state)
        else:
            for interface, path in paths.items():
                out.print(f"{interface}, {state[interface]['where']}, {state[interface]['of']}: {path}", markup=False)
            out.print("Ctrl-C takes it back." if not seconds else f"For {seconds:g} s.")
        _hold(held, time.monotonic() + seconds if seconds else math.inf)


def _hold(held: Mapping[str, Place], end: float) -> None:
    """Until `end` on the monotonic clock, SIGINT or SIGTERM; raises PlaceError when a place is lost."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_POLL_S, left))
        for place in held.values():
            place.hold.check_alive()


def _no_probe(_paths: object) -> dict[str, PathMeasurement]:
    return {}
