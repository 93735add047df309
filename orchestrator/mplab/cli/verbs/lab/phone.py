"""List and probe phones that are connected by adb: by cable, or over TCP."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.lock import resource_lock
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption
from mplab.cli.output import out, print_json, table
from mplab.drivers.phone.adb import AdbPhone, adb_server, settings_of
from mplab.drivers.phone.adb.probe import Probe, probe_phone
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.phone.adb.server import AdbServer, default_home
from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.drivers.transport import chances
from mplab.userfiles.labs.lab import load_lab

app = VerbApp(no_args_is_help=True)

_USB_S = 1.5
"""Time, in seconds, that an adb server takes to detect USB devices."""

SerialArgument = Annotated[
    str,
    typer.Argument(
        help="Serial number or HOST:PORT of the phone; with --lab also its name in the lab file.", show_default=False
    ),
]
LabFileOption = Annotated[
    Path | None,
    typer.Option("--lab", metavar="FILE", help="Lab file (YAML) with the phone, its thresholds and interfaces."),
]


@app.command("list")
def list_phones(
    *,
    connect: Annotated[
        list[str] | None,
        typer.Option("--connect", metavar="HOST:PORT", help="Connect to this phone over TCP first; may be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the phones that adb sees, and those in quarantine."""
    with adb_server() as server:
        states = _listed(server, connect or [])
    entries = {entry.serial: entry for entry in Quarantine(default_home() / "quarantine").all()}
    phones = [
        {"serial": serial, "state": state, "quarantine": asdict(entries[serial]) if serial in entries else None}
        for serial, state in sorted({**dict.fromkeys(entries, "not there"), **states}.items())
    ]
    if as_json:
        print_json(phones)
        return
    if not phones:
        out.print("no phone: plug one in and allow USB debugging, or --connect HOST:PORT; see docs/how-to/phone.md")
        return
    rows = table("serial", "state", "quarantine")
    for phone in phones:
        quarantined: Any = phone["quarantine"]
        rows.add_row(
            str(phone["serial"]),
            str(phone["state"]),
            f"since {quarantined['since']}: {quarantined['reason']}" if quarantined else "",
        )
    out.print(rows)


@app.command()
def probe(serial: SerialArgument, *, lab: LabFileOption = None, as_json: JsonOption = False) -> None:
    """Show the abilities of a phone, whether it is ready, and which transports it can run."""
    name, file = _phone_of(lab, serial)
    settings = settings_of(file)
    with (
        resource_lock(file.resource(name)),
        adb_server() as server,
        AdbPhone(name, server, settings) as phone,
    ):
        result = probe_phone(phone, file.ready, file.apps)
    if as_json:
        transports = {name: asdict(chance) for name, chance in chances(result.facts).items()}
        print_json(result.to_json() | {"transports": transports})
    else:
        _show(result)


@app.command()
def release(serial: SerialArgument, *, lab: LabFileOption = None, as_json: JsonOption = False) -> None:
    """Release a phone from quarantine."""
    _, file = _phone_of(lab, serial)
    wanted = file.serial or serial
    quarantine = Quarantine(default_home() / "quarantine")
    quarantined = quarantine.find(wanted)
    if quarantined is None:
        others = ", ".join(entry.serial for entry in quarantine.all()) or "none"
        raise InputError(f"{wanted} is not in quarantine; there are: {others}")
    quarantine.release(wanted)
    if as_json:
        print_json(asdict(quarantined))
    else:
        out.print(
            f"{wanted}: released; it was in quarantine since {quarantined.since}: {quarantined.reason}", markup=False
        )


def _phone_of(lab: Path | None, serial: str) -> tuple[str, AdbPhoneFile]:
    if lab is None:
        # Apply the rules of lab files here, too.
        with _as_input(serial):
            return serial, AdbPhoneFile.model_validate({"serial": serial})
    phones = {name: phone for name, phone in load_lab(lab).phones.items() if isinstance(phone, AdbPhoneFile)}
    for name, phone in phones.items():
        if serial in {name, phone.serial}:
            return name, phone
    listed = ", ".join(f"{name} ({phone.serial})" for name, phone in phones.items()) or "none"
    raise InputError(f"{lab}: no phone {serial!r} with 'driver: adb'; there are: {listed}")


@contextlib.contextmanager
def _as_input(serial: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"serial {serial!r}: as 'adb devices' shows it, like '0A1B2C3D' or '192.168.1.23:5555'"
        ) from error


def _listed(server: AdbServer, addresses: list[str]) -> dict[str, str]:
    for address in addresses:
        server.client.connect(address, timeout=5.0)
    deadline = time.monotonic() + _USB_S
    states: dict[str, str] = {}
    while time.monotonic() < deadline:
        try:
            states = {str(device.serial): str(device.state) for device in server.client.list()}
        except OSError as error:
            raise LabNotReadyError(f"the adb server does not answer: {error}") from error
        time.sleep(0.1)
    return states


def _show(result: Probe) -> None:
    identity, kernel = result.identity, result.kernel
    out.print(f"{result.serial}: {identity.model}, {identity.os}, kernel {identity.kernel}", style="bold")
    mptcp = {"none": "none", "upstream": "upstream", "out-of-tree": f"out-of-tree {kernel.version}"}[kernel.kind]
    switched = "" if kernel.kind == "none" else ", switched on" if kernel.enabled else ", switched off"
    extra = f", path manager {kernel.path_manager}, scheduler {kernel.scheduler}" if kernel.path_manager else ""
    out.print(f"root: {result.root}; ABI: {', '.join(result.abis)}; kernel MPTCP: {mptcp}{switched}{extra}")
    for role, device in result.devices.items():
        out.print(f"{role}: {device} {result.addresses.get(role, '(no address)')}")
    clock = result.readiness.clock
    out.print(f"clock: {clock.offset_s * 1000:+.0f} ms ± {clock.uncertainty_s * 1000:.0f} ms")
    out.print(f"captures: {', '.join(result.captures)}")
    rows = table("transport", "possible", "how", "note")
    for name, chance in chances(result.facts).items():
        rows.add_row(name, "yes" if chance.possible else "no", chance.how, chance.note)
    out.print(rows)
    for name, where in result.programs.items():
        if not where.startswith("/"):
            out.print(f"{name}: {where}", markup=False)
    for feature in result.uncontrolled:
        out.print(f"not controlled: {feature}", markup=False)
    if result.readiness.problems:
        for problem in result.readiness.problems:
            out.print(f"not ready: {problem}", markup=False)
    else:
        out.print("ready")
