"""Run proxy and origin services as containers, on this machine or, over SSH, on a server."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from mplab.base.errors import InputError, LabNotReadyError
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, check_name
from mplab.cli.output import err, out, print_json, table
from mplab.drivers.proxy import by_hand_drivers
from mplab.drivers.proxy.byhand import ByHand, Chosen, ServiceState
from mplab.userfiles.labs.lab import load_lab

app = VerbApp(no_args_is_help=True)

_PARTS = tuple(dict.fromkeys(part for driver in by_hand_drivers().values() for part in driver.parts))


def _complete_profiles(incomplete: str) -> list[str]:
    return [name for name in _PARTS if name.startswith(incomplete)]


LabOption = Annotated[
    Path | None, typer.Option("--lab", help="Lab file (YAML) with the proxy to use.", show_default=False)
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Use this Docker engine: unix:///… or ssh://user@host. By default, that of DOCKER_HOST or this machine.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help=f"Start this part; may be repeated. Parts: {', '.join(_PARTS)}. By default: proxy, origin, dns.",
        autocompletion=_complete_profiles,
        show_default=False,
    ),
]
ServiceArgument = Annotated[str, typer.Argument(help="Show only this service. By default, all are shown.")]
RenewOption = Annotated[bool, typer.Option("--renew", help="Make new secrets, passwords and certificates.")]
BuildOption = Annotated[bool, typer.Option("--build/--no-build", help="Build the images that are not up to date.")]


def _say(line: str) -> None:
    err.print(line, style="dim", markup=False, soft_wrap=True)


def _proxy(lab: Path | None, engine: str, profile: Sequence[str] | None = None, *, verbose: bool = False) -> ByHand:
    """Return the object that controls the proxy of a lab file by hand.

    Without a lab file, it controls a proxy of the first kind that can be controlled by hand.

    Raises:
        InputError: the proxy cannot be controlled by hand, or a profile is unknown.
    """
    drivers = by_hand_drivers()
    settings = load_lab(lab).proxy if lab is not None else None
    name = settings.driver if settings is not None else next(iter(drivers), "")
    if name not in drivers or (lab is not None and settings is None):
        known = " or ".join(f"'proxy: {{driver: {kind}}}'" for kind in drivers)
        raise InputError(f"{lab or 'proxy'}: no proxy that 'mplab proxy' can control: {known} is one")
    for part in profile or ():
        check_name("profile", part, drivers[name].parts)
    chosen = Chosen(engine, tuple(profile or ()))
    return drivers[name].by_hand(settings, chosen, say=_say, detail=_say if verbose else None)


VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of Docker Compose.")]


@app.command()
def prepare(
    *,
    lab: LabOption = None,
    engine: EngineOption = "",
    profile: ProfileOption = None,
    renew: RenewOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build the images, make configurations and content, and put them into volumes; nothing is started."""
    proxy = _proxy(lab, engine, profile, verbose=verbose)
    with proxy.exclusive():
        folder = proxy.prepare(renew=renew)
    out.print(f"Prepared; secrets and the certificate for phones are in {folder}", markup=False, soft_wrap=True)


@app.command()
def up(
    *,
    lab: LabOption = None,
    engine: EngineOption = "",
    profile: ProfileOption = None,
    renew: RenewOption = False,
    build: BuildOption = True,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Prepare and start all services, and wait until every one answers."""
    proxy = _proxy(lab, engine, profile, verbose=verbose)
    with proxy.exclusive():
        states = proxy.up(renew=renew, build=build)
    _show(states, as_json=as_json)


@app.command()
def down(
    lab: LabOption = None,
    engine: EngineOption = "",
    volumes: Annotated[
        bool, typer.Option("--volumes", help="Remove the stored data, too: captures and content.")
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Stop and remove containers and networks; volumes and images stay."""
    proxy = _proxy(lab, engine, verbose=verbose)
    with proxy.exclusive():
        proxy.down(volumes=volumes)


@app.command()
def status(lab: LabOption = None, engine: EngineOption = "", as_json: JsonOption = False) -> None:
    """Show every container; exit code 3 if one has a problem."""
    states = _proxy(lab, engine).status()
    _show(states, as_json=as_json)
    if bad := [state.service for state in states if not state.well]:
        raise LabNotReadyError(f"not well: {', '.join(bad)}; see: mplab proxy logs {bad[0]}")
    if not states:
        raise LabNotReadyError("nothing runs; 'mplab proxy up' starts it")


@app.command()
def logs(
    service: ServiceArgument = "",
    lab: LabOption = None,
    engine: EngineOption = "",
    lines: Annotated[
        int, typer.Option("--lines", "-n", help="Show this number of last lines of each service.", min=1)
    ] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show the last lines of the logs."""
    log_lines = list(_proxy(lab, engine).logs(service, lines=lines))
    if as_json:
        print_json([{"service": name, "line": line} for name, line in log_lines])
        return
    for name, line in log_lines:
        out.print(f"{name} | {line}" if not service else line, markup=False, soft_wrap=True)


@app.command()
def doctor(lab: LabOption = None, engine: EngineOption = "", as_json: JsonOption = False) -> None:
    """Check engine, kernel, images, certificates, disk and clock; exit code 3 when something is missing."""
    findings = _proxy(lab, engine).examine()
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        shown = table("check", "", "found")
        for finding in findings:
            shown.add_row(finding.what, "ok" if finding.ok else Text("no", style="red"), finding.found)
        out.print(shown)
    if bad := [finding for finding in findings if not finding.ok]:
        raise LabNotReadyError("; ".join(f"{finding.what}: {finding.found}" for finding in bad))


def _show(states: Sequence[ServiceState], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(state) | {"well": state.well} for state in states])
        return
    shown = table("service", "state", "health", "restarts", "listens at", "image")
    for state in states:
        ports = " ".join(state.ports)
        style = "" if state.well else "red"
        image = state.image.removeprefix("sha256:")[:12]
        shown.add_row(state.service, state.state, state.health or "–", str(state.restarts), ports, image, style=style)
    out.print(shown)
