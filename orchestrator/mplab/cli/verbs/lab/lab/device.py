"""Emulate an Android device, which unmodified adb can use."""

import json
import time
from contextlib import suppress
from typing import Annotated, Any, cast

import typer

from mplab.base.errors import InputError
from mplab.base.nodes import Node
from mplab.base.suggest import unknown
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption
from mplab.cli.output import out, print_json, table
from mplab.device import Device, DeviceSettings
from mplab.device.android.model import load_phone, phone_names
from mplab.device.control import ask, find_device
from mplab.device.faults import FAULTS, describe, parameters_of
from mplab.device.settings import Trust
from mplab.lab.find import find_node

app = VerbApp(invoke_without_command=True)

_TRUST = ("any", "listed", "nobody")
_POLL_S = 0.2


def _complete_phones() -> list[str]:
    return phone_names()


def _complete_faults() -> list[str]:
    return sorted(FAULTS)


@app.callback()
def device(
    context: typer.Context,
    *,
    phone: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="NAME|FILE",
            help="Model to emulate: a name that 'mplab lab device list' shows, or a model file.",
            autocompletion=_complete_phones,
        ),
    ] = "android-13",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Listen for adb on this TCP port; 0 means any free port.")
    ] = 0,
    serial: Annotated[str, typer.Option(help="Use this serial number instead of the model's.")] = "",
    trust: Annotated[
        str,
        typer.Option(
            metavar="any|listed|nobody", help="Accept any adb key, only those listed by --key, or none (nobody)."
        ),
    ] = "any",
    key: Annotated[
        list[typer.FileText] | None, typer.Option(help="Trust this public key (adbkey.pub); may be repeated.")
    ] = None,
    node: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Run in this node of a running virtual lab, like phone. By default, it runs in a separate network.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Start a device, print its address for adb, and keep it up until Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    load_phone(phone)
    if trust not in _TRUST:
        raise InputError(unknown("trust", trust, _TRUST))
    keys = tuple(line.strip() for file in key or () for line in file if line.strip())
    settings = DeviceSettings(phone=phone, port=port, serial=serial, trust=cast(Trust, trust), keys=keys)
    where = Node(node, find_node(node).pid) if node else None
    with Device(settings, where) as running:
        if as_json:
            print_json(running.facts)
        else:
            _describe(running.facts)
        with suppress(KeyboardInterrupt):
            while running.running:
                time.sleep(_POLL_S)


def _describe(facts: dict[str, Any]) -> None:
    root = "rooted" if facts["rooted"] else "not rooted"
    out.print(f"{facts['serial']}: {facts['model']}, Android {facts['android']}, {root}, MPTCP {facts['mptcp']}")
    out.print(f"adb -P 6037 connect {facts['address']}   (6037: a separate adb server; the usual one is not changed)")
    out.print("mplab lab device fault NAME: inject a fault. Ctrl-C ends the device.")


@app.command()
def fault(
    name: Annotated[
        str, typer.Argument(help="Name of the fault; without it, list all faults.", autocompletion=_complete_faults)
    ] = "",
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Parameters of the fault, like seconds=5.")
    ] = None,
    *,
    serial: Annotated[str, typer.Option(help="Use the device with this serial number; needed if several run.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Inject a fault into a running device; 'clear' ends it."""
    if not name:
        _list(as_json=as_json)
        return
    if name not in FAULTS:
        raise InputError(unknown("fault", name, FAULTS))
    values = dict(_pair(text) for text in parameters or ())
    answer = ask(find_device(serial), {"op": "fault", "name": name, **values})
    if as_json:
        print_json(answer)
    else:
        out.print(f"{name}: done")


@app.command("list")
def list_phones(as_json: JsonOption = False) -> None:
    """List the models that can be emulated."""
    phones = {name: load_phone(name) for name in phone_names()}
    if as_json:
        print_json({name: phone.model_dump(mode="json") for name, phone in phones.items()})
        return
    rows = table("phone", "model", "Android", "root", "MPTCP")
    for name, phone in phones.items():
        rows.add_row(name, phone.model, str(phone.android), phone.root, phone.mptcp)
    out.print(rows)


def _list(*, as_json: bool) -> None:
    if as_json:
        print_json({name: {"parameters": sorted(parameters_of(name)), "text": describe(name)} for name in FAULTS})
        return
    rows = table("fault", "parameters", "what happens")
    for name in FAULTS:
        rows.add_row(name, " ".join(parameters_of(name)), describe(name))
    out.print(rows)


def _pair(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"parameter {text!r}: KEY=VALUE is needed, like seconds=5")
    try:
        number = json.loads(value)
    except ValueError:
        return key, value
    return key, number if isinstance(number, int | float) and value.count(".") < 2 else value
