"""Proxy and origin services as containers: on this machine or, over SSH, on a server."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from mplab.base.errors import InputError, LabNotReadyError
from mplab.cli.options import JsonOption, check_name
from mplab.cli.output import err, out, print_json, table
from mplab.drivers.proxy.docker.borrow import exclusive, forget
from mplab.drivers.proxy.docker.doctor import examine
from mplab.drivers.proxy.docker.settings import PROFILES, DockerProxyFile
from mplab.drivers.proxy.docker.stack import DockerStack, ServiceState, StackSettings
from mplab.userfiles.lab import load_lab

app = typer.Typer(no_args_is_help=True)


def _complete_profiles(incomplete: str) -> list[str]:
    return [name for name in PROFILES if name.startswith(incomplete)]


LabOption = Annotated[Path | None, typer.Option("--lab", help="Lab file (YAML) with a proxy.", show_default=False)]
EngineOption = Annotated[
    str,
    typer.Option(help="unix:///… or ssh://user@host; by default DOCKER_HOST, or this machine's.", show_default=False),
]
ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        help=f"What is started: {', '.join(PROFILES)}; by default proxy, origin, dns.",
        autocompletion=_complete_profiles,
        show_default=False,
    ),
]
ServiceArgument = Annotated[str, typer.Argument(help="One service; all by default.")]
RenewOption = Annotated[bool, typer.Option("--renew", help="New secrets, passwords and certificates.")]
BuildOption = Annotated[bool, typer.Option("--build/--no-build", help="Build images that are not up to date.")]


def _settings(lab: Path | None, engine: str, profile: Sequence[str] | None) -> StackSettings:
    found = DockerProxyFile.model_validate({})
    if lab is not None:
        named = load_lab(lab).proxy
        if not isinstance(named, DockerProxyFile):
            raise InputError(f"{lab}: it names no proxy: 'proxy: {{driver: docker, engine: ssh://user@host}}' does")
        found = named
    for name in profile or ():
        check_name("profile", name, PROFILES)
    return StackSettings.of(found, engine=engine, profiles=profile or ())


def _say(line: str) -> None:
    err.print(line, style="dim", markup=False, soft_wrap=True)


def _stack(
    lab: Path | None, engine: str, profile: Sequence[str] | None = None, *, verbose: bool = False
) -> DockerStack:
    settings = _settings(lab, engine, profile)
    return DockerStack(settings, say=_say, detail=_say) if verbose else DockerStack(settings, say=_say)


VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show what compose prints.")]


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
    stack = _stack(lab, engine, profile, verbose=verbose)
    with exclusive(stack):
        made = stack.prepare(renew=renew)
    out.print(f"Prepared; secrets and the certificate for phones are in {made.directory}", markup=False, soft_wrap=True)


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
    """Prepare and start; done when every service answers."""
    stack = _stack(lab, engine, profile, verbose=verbose)
    with exclusive(stack):
        states = stack.up(renew=renew, build=build)
        forget(stack)
    _show(states, as_json=as_json)


@app.command()
def down(
    lab: LabOption = None,
    engine: EngineOption = "",
    volumes: Annotated[bool, typer.Option("--volumes", help="What they have stored, too: captures, content.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Stop and remove containers and networks; volumes and images stay."""
    stack = _stack(lab, engine, verbose=verbose)
    with exclusive(stack):
        forget(stack)
        stack.down(volumes=volumes)


@app.command()
def status(lab: LabOption = None, engine: EngineOption = "", as_json: JsonOption = False) -> None:
    """Show every container; exit code 3 when one is not well."""
    states = _stack(lab, engine).status()
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
    lines: Annotated[int, typer.Option("--lines", "-n", help="Of each service, the last ones.", min=1)] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show the last lines of the logs."""
    found = list(_stack(lab, engine).logs(service, lines=lines))
    if as_json:
        print_json([{"service": name, "line": line} for name, line in found])
        return
    for name, line in found:
        out.print(f"{name} | {line}" if not service else line, markup=False, soft_wrap=True)


@app.command()
def doctor(lab: LabOption = None, engine: EngineOption = "", as_json: JsonOption = False) -> None:
    """Check engine, kernel, images, certificates, disk and clock; exit code 3 when something is missing."""
    findings = examine(_stack(lab, engine))
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
