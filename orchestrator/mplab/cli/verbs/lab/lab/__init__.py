"""Start the virtual lab by hand, and look into a running one."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.enter import NOTHING, lab_process
from mplab.base.errors import reported_error
from mplab.base.paths import RMNET, WLAN
from mplab.cli.command import VerbApp
from mplab.cli.options import (
    JsonOption,
    LabOption,
    LinkOrFileOption,
    PhoneOption,
    TransportOption,
    check_name,
    complete_services,
    link_entry,
)
from mplab.cli.output import err, out, print_json, table
from mplab.cli.verb_loader import add_verb
from mplab.drivers.services import load_service, service_names
from mplab.drivers.transport import default_over
from mplab.drivers.transport import names as transport_names
from mplab.format.names import VIRTUAL_NAME
from mplab.lab.driver import programs_of_lab
from mplab.lab.find import enter_argv, find_node, running_nodes
from mplab.lab.hosting import hosted, prepared
from mplab.run.hostside.ready import check_ready, identify_real_phone
from mplab.userfiles.labs.labuse import find_lab

_CONGESTION_CONTROL = "cubic"

app = VerbApp(no_args_is_help=True)


@app.command()
def up(
    *,
    link: LinkOrFileOption = "baseline",
    transport: TransportOption = "",
    lab: LabOption = "",
    phone: PhoneOption = "",
    services: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Start these services of the origin, too: a,b or all. 'mplab scenarios' lists them.",
            autocompletion=complete_services,
        ),
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the lab up until Ctrl-C.")] = False,
    seed: Annotated[int, typer.Option(help="Use this seed for random losses.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Start the lab, probe its links and test its transport; stop it again unless --keep."""
    use = find_lab(lab or VIRTUAL_NAME, Path(), phone)
    condition = link_entry(link, use)
    transport = transport or default_over(WLAN, RMNET)
    check_name("transport", transport, transport_names())
    wanted = service_names() if services == "all" else [name for name in services.split(",") if name]
    for name in wanted:
        check_name("service", name, service_names())
    further = [program for name in wanted for program in load_service(name).programs]
    check_ready(needs_ui=False, further=[*further, *programs_of_lab(use)], use=use)
    identify_real_phone(use)
    settings = {
        "link": condition,
        "transport": transport,
        "congestion_control": _CONGESTION_CONTROL,
        "seed": seed,
        "keep": keep,
        "services": sorted(set(wanted)),
        "lab_file": lab if use.file is not None else "",
        "phone": use.phone,
    }
    command = [sys.executable, "-m", "mplab.run.labside.inside", "lab", json.dumps(settings)]
    read_end, write_end = os.pipe()
    with ExitStack() as stack:
        events = stack.enter_context(open(read_end, encoding="utf-8"))  # noqa: PTH123
        prepared(use, congestion_control=_CONGESTION_CONTROL, services=wanted)
        containers = stack.enter_context(hosted(use, congestion_control=_CONGESTION_CONTROL, services=wanted))
        inherited = containers.inherited() if containers is not None else NOTHING
        inside = stack.enter_context(lab_process(command, stdout=write_end, private=not use.real, inherited=inherited))
        os.close(write_end)
        problem = ""
        for record in map(json.loads, events):
            if record["event"] == "up":
                _describe(record, as_json=as_json, keep=keep)
            else:
                problem = record["error"]
        code = inside.wait() or 0
    if problem:
        raise reported_error(code, problem)
    raise typer.Exit(code)


def _describe(facts: dict[str, object], *, as_json: bool, keep: bool) -> None:
    if as_json:
        print_json(facts)
        return
    out.print(f"lab {facts['lab']} is up: {facts['transport']} over {facts['link']}", style="bold")
    rows = table("interface", "shaped at", "RTT (ms)", "down (kbit/s)", "up (kbit/s)")
    where = facts["where"] if isinstance(facts["where"], dict) else {}
    measured = facts["measured"]
    if isinstance(measured, dict):
        for name, path in measured.items():
            rates = ("not measured" if path[key] is None else f"{path[key]:.0f}" for key in ("down_kbps", "up_kbps"))
            rows.add_row(name, where.get(name, ""), f"{path['rtt_ms_median']:.2f}", *rates)
    out.print(rows)
    for name, router in facts["routers"].items() if isinstance(facts["routers"], dict) else ():
        out.print(f"router {name}: {', '.join(router.values())}", markup=False)
    if isinstance(phone := facts.get("phone"), dict):
        out.print(f"phone {phone['name']}: {phone['model']}, {phone['os']}, root by '{phone['root']}'", markup=False)
    services = facts["services"] if isinstance(facts["services"], dict) else {}
    for name, hosts in services.items():
        out.print(f"service {name}: {', '.join(f'{host} {address}' for host, address in hosts.items())}")
    for problem in facts["problems"] if isinstance(facts["problems"], list) else []:
        err.print(problem, style="yellow")
    if keep:
        if facts["nodes"]:
            out.print("mplab lab shell phone: a shell on the phone (try: curl http://dl.lab/1000000).")
        out.print("Ctrl-C ends the lab.")


@app.command()
def shell(
    node: Annotated[str, typer.Argument(help="Node to enter: phone, router, proxy, origin or air.")] = "phone",
    command: Annotated[list[str] | None, typer.Argument(help="Run this command instead of a shell.")] = None,
    lab_id: Annotated[
        str,
        typer.Option(
            "--id",
            metavar="ID",
            help="Enter the lab with this id, as 'mplab lab list' shows it. By default, the newest.",
        ),
    ] = "",
) -> None:
    """Open a shell inside a node of a running lab."""
    running_node = find_node(node, lab=lab_id)
    argv = command or [os.environ.get("SHELL", "/bin/sh")]
    env = {**os.environ, "PS1": f"{node}:\\w\\$ "}
    raise typer.Exit(subprocess.run(enter_argv(running_node, argv), env=env, check=False).returncode)


@app.command("list")
def list_labs(as_json: JsonOption = False) -> None:
    """List the labs that are running."""
    labs: dict[str, list[str]] = {}
    for node in running_nodes():
        labs.setdefault(node.lab, []).append(node.name)
    if as_json:
        print_json(labs)
        return
    if not labs:
        out.print("no lab is running")
    for lab, nodes in labs.items():
        out.print(f"{lab}  {', '.join(sorted(nodes))}")


add_verb(app, "mplab.cli.verbs.lab.lab.device")
