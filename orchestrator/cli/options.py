"""Options and arguments that several verbs share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InputError

ExperimentFile = Annotated[Path, typer.Argument(help="Experiment file (YAML).", show_default=False)]
RunArgument = Annotated[
    str,
    typer.Argument(help="Run directory, or the beginning or end of its name; the newest run by default."),
]
RunsOption = Annotated[
    Path, typer.Option("--runs", help="Folder that holds the runs.", envvar="MPLAB_RUNS", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]

RUNS = Path("runs")


def find_run(name: str, runs: Path) -> Path:
    """The run directory that `name` means: a path, part of a name in `runs`, or "" for the newest.

    Raises:
        InputError: there is none, or more than one.
    """
    if name and (Path(name) / "manifest.json").is_file():
        return Path(name)
    if os.sep in name:
        raise InputError(f"{name}: not a run directory: no manifest.json in it")
    found = sorted(path.parent for path in runs.glob("*/manifest.json"))
    if not found:
        raise InputError(f"{runs}: no run in it; 'mplab run FILE' makes one, --runs names another folder")
    if not name:
        return found[-1]
    matches = [path for path in found if path.name.startswith(name) or path.name.endswith(name)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(path.name for path in (matches or found)[-5:])
    what = "several runs are" if matches else "no run is"
    raise InputError(f"{runs}: {what} called {name!r}; there are: {names}")
