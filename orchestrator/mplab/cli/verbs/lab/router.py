"""Prepare routers, servers and phones that shape, and shape by hand."""

import math
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from mplab.base.errors import InputError
from mplab.base.paths import INTERFACES
from mplab.base.undo import UndoJournal
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, LinkOrFileOption, check_name, one_link
from mplab.cli.output import err, out, print_json
from mplab.drivers.shaper.attached import AttachedShaper
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.owner import held_machines, undo_directory
from mplab.drivers.shaper.protocol import HeldMachine, PathMeasurement
from mplab.format.abilities import refusals
from mplab.userfiles.labs.lab import LabFile, load_lab
from mplab.userfiles.labs.labuse import LabUse
from mplab.userfiles.labs.machines import ShapingMachine, abilities
from mplab.userfiles.strict.check import raise_lines

app = VerbApp(no_args_is_help=True)

LabArgument = Annotated[Path, typer.Argument(help="Lab file (YAML).", show_default=False)]
RouterOption = Annotated[
    str,
    typer.Option(
        "--router",
        metavar="NAME",
        help="Use only this router, server or phone of the lab file. By default, all that shape.",
    ),
]

_POLL_S = 1.0
_VIRTUAL_ALONE = "virtual machines exist only while a lab is up: 'mplab lab up --lab FILE', 'mplab run … --lab FILE'"
_BY_ADB_ALONE = "shaping a phone by hand needs its 'root_shell', and there is none; by adb, it is shaped only in runs"


def _machines(lab: LabFile, chosen: str) -> list[ShapingMachine[BaseModel]]:
    """Return the shaping machines of a lab file that exist without a running virtual lab, sorted by name.

    If `chosen` is not "", only the machine with this name is returned.

    Raises:
        InputError: the lab file has no such machine, or a virtual lab boots it.
    """
    machines = lab.reachable()
    if chosen in lab.inside() or not machines:
        raise InputError(f"lab {lab.name}: {_VIRTUAL_ALONE}")
    if chosen:
        check_name("router", chosen, machines)
    return [machine for name, machine in sorted(machines.items()) if chosen in ("", name)]


def _say(machine: ShapingMachine[BaseModel], text: object) -> None:
    out.print(f"{machine.label}: {text}", markup=False, soft_wrap=True)


@app.command()
def install(lab: LabArgument, router: RouterOption = "") -> None:
    """Install the dead-man's switch on the routers; do nothing where it is already installed."""
    for machine in _machines(load_lab(lab), router):
        _say(machine, reachable_driver_of(machine).install(machine))


@app.command()
def remove(lab: LabArgument, router: RouterOption = "") -> None:
    """Remove the dead-man's switch from the routers; do nothing where it is not installed."""
    for machine in _machines(load_lab(lab), router):
        _say(machine, reachable_driver_of(machine).remove(machine))


@app.command()
def show(lab: LabArgument, router: RouterOption = "", as_json: JsonOption = False) -> None:
    """Show the installed parts, and the holders of routers, servers and phones."""
    states = {}
    for machine in _machines(load_lab(lab), router):
        state = reachable_driver_of(machine).show(machine)
        states[machine.name] = state.to_json()
        if not as_json:
            _say(machine, state)
    if as_json:
        print_json(states)


@app.command()
def restore(lab: LabArgument, router: RouterOption = "") -> None:
    """Undo the changes of mplab, even if a run uses the router, server or phone: the run fails."""
    lab_file = load_lab(lab)
    for item in UndoJournal.recover(undo_directory()):
        out.print(f"{item.name}: {item.failure or 'undone'}", markup=False, soft_wrap=True)
    for machine in _machines(lab_file, router):
        reachable_driver_of(machine).give_back(machine)
        _say(machine, "restored")


@app.command()
def shape(
    lab: LabArgument,
    phone: Annotated[str, typer.Argument(help="Phone of the lab file whose paths are shaped.", show_default=False)],
    link: LinkOrFileOption = "baseline",
    seconds: Annotated[
        float, typer.Option(help="Shape for this number of seconds; 0 means until Ctrl-C.", min=0)
    ] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Apply a link condition to a phone's paths, show the kernels' state, and undo it at the end."""
    lab_file = load_lab(lab)
    check_name("phone", phone, lab_file.phones)
    condition = one_link(link)
    shaping = _shaping(lab_file, phone)
    kinds = abilities()
    can = {path: kinds[shaping[interface].kind] for path, interface in INTERFACES.items() if interface in shaping}
    raise_lines([f"link {link!r}: {problem}" for problem in refusals(condition, can)])
    machines = {machine.name: machine for machine in shaping.values()}
    with held_machines(machines.values(), run_id="by-hand") as held:
        places = [(path, held[machine.name]) for machine in machines.values() for path in machine.paths_of(phone)]
        shaper = AttachedShaper(phone, places, _no_probe)
        paths = {interface: path for interface, path in condition.paths().items() if interface in shaping}
        shaper.apply(paths, seed=1, core_rtt_ms=condition.core_rtt_ms)
        state = shaper.state()
        for warning in shaper.warnings():
            err.print(f"mplab: {warning}", style="yellow", markup=False, soft_wrap=True)
        if as_json:
            print_json(state)
        else:
            for interface, path in paths.items():
                out.print(f"{interface}, {state[interface]['where']}, {state[interface]['of']}: {path}", markup=False)
            out.print("Ctrl-C undoes it." if not seconds else f"For {seconds:g} s.")
        _hold(held, time.monotonic() + seconds if seconds else math.inf)


def _shaping(lab: LabFile, phone: str) -> Mapping[str, ShapingMachine[BaseModel]]:
    """Return interface of the phone → machine that shapes the interface's path.

    Raises:
        InputError: the paths can only be shaped while a lab or a run is up.
    """
    attached, machines = lab.phones[phone], LabUse(lab, phone=phone).machines()
    if attached.kind is not None and not attached.kind.real:
        raise InputError(f"lab {lab.name}: phone {phone!r}: {_VIRTUAL_ALONE}")
    if lab.by_itself(phone) is not None:
        raise InputError(f"lab {lab.name}: phone {phone!r}: {_BY_ADB_ALONE}")
    return machines


def _hold(held: Mapping[str, HeldMachine], end: float) -> None:
    """Wait until `end` (monotonic seconds), and check all the time that the machines still shape for this process.

    SIGINT or SIGTERM ends the wait with KeyboardInterrupt.

    Raises:
        MachineError: a machine can no longer be reached, or no longer shapes for this process.
    """

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_POLL_S, left))
        for machine in held.values():
            machine.hold.check_alive()


def _no_probe(_paths: object) -> dict[str, PathMeasurement]:
    return {}
