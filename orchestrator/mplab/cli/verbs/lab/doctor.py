"""Check everything that a run needs, and print a remedy for each missing part."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from mplab.base.errors import LabNotReadyError
from mplab.cli.options import JsonOption, RunsOption
from mplab.cli.output import out, print_json, table
from mplab.lab.doctor import examine, examine_lab, install_commands
from mplab.run.run_directory import RUNS
from mplab.userfiles.labs.lab import load_lab

_STYLES = {"ok": "green", "warning": "yellow", "missing": "red"}


def doctor(
    runs: RunsOption = RUNS,
    lab: Annotated[
        Path | None,
        typer.Option("--lab", help="Check the routers and phones of this lab file instead of this machine."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    checks = list(examine(runs) if lab is None else examine_lab(load_lab(lab), str(lab)))
    ready = all(check.level != "missing" for check in checks)
    commands = install_commands() if lab is None else {}
    if as_json:
        print_json({"ready": ready, "checks": [check.to_json() for check in checks], "install": commands})
    else:
        rows = table("", "what", "found", "what to do")
        for check in checks:
            rows.add_row(Text(check.level, style=_STYLES[check.level]), check.name, check.found, check.remedy)
        out.print(rows)
        for purpose, command in commands.items():
            out.print(f"\nAll that is missing for {purpose}: {command}", soft_wrap=True)
    if not ready:
        raise typer.Exit(LabNotReadyError.exit_code)
