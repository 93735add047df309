"""Define options and arguments of the command line that several verbs share."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import InputError
from mplab.base.suggest import unknown
from mplab.cli.output import a_folder
from mplab.drivers.services import service_names
from mplab.drivers.transport import names as transport_names
from mplab.format.link import LinkCondition
from mplab.lab.catalog import LINKS_DIR, scenario_names
from mplab.run.arguments import Argument, ArgumentError
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse
from mplab.userfiles.labs.machines import abilities
from mplab.userfiles.links.link import link_names, load_link, load_links, read_link_file
from mplab.userfiles.strict.check import other_kind, raise_lines
from mplab.userfiles.strict.yaml import load_yaml

ExperimentFile = Annotated[
    Path,
    typer.Argument(
        help="Experiment file (YAML), or the name of one that comes with mplab.",
        show_default=False,
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Run directory, or the beginning or end of its name. By default, the newest run is used.",
        show_default=False,
    ),
]
RunsOption = Annotated[
    Path,
    typer.Option(
        "--runs",
        help="Use the runs in this folder.",
        envvar="MPLAB_RUNS",
        show_default=True,
        metavar="FOLDER",
        callback=a_folder,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]

LabOption = Annotated[
    str,
    typer.Option(
        "--lab",
        metavar="FILE",
        help="Lab file (YAML) to use, or 'virtual' for the lab on this machine only.",
        show_default=False,
    ),
]
PhoneOption = Annotated[
    str, typer.Option("--phone", metavar="NAME", help="Phone of the lab file to use; needed if it has several.")
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Set a variable of the experiment file to this value; may be repeated."
    ),
]

AllowHooksOption = Annotated[
    bool, typer.Option("--allow-hooks", help="Allow the hooks of another user's experiment to run on this host.")
]

AllowLabOption = Annotated[
    bool,
    typer.Option(
        "--allow-lab",
        help="Allow the lab file of another user: its root shells, hosts, Docker engine and phones. Without this "
        "option, an error lists them.",
    ),
]

NoReportOption = Annotated[
    bool, typer.Option("--no-report", help="Run without making a report; 'mplab analyze' makes it later.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but problems.")]
EndsByOption = Annotated[
    float | None, typer.Option(hidden=True, help="Unix seconds: a block that would end later is not started.")
]


def complete_scenarios(incomplete: str) -> list[str]:
    """Return the names of scenarios that begin with `incomplete`, for shell completion."""
    return [name for name in scenario_names() if name.startswith(incomplete)]


def complete_links(incomplete: str) -> list[str]:
    """Return the names of link conditions, including members of sweeps, that begin with `incomplete`."""
    return [name for name in link_names(LINKS_DIR) if name.startswith(incomplete)]


def complete_transports(incomplete: str) -> list[str]:
    """Return the names of transports that begin with `incomplete`, for shell completion."""
    return [name for name in transport_names() if name.startswith(incomplete)]


def complete_services(incomplete: str) -> list[str]:
    """Return the completions of `incomplete`, a comma-separated list whose last service may be incomplete."""
    before, comma, last = incomplete.rpartition(",")
    names = [*service_names(), *([] if before else ["all"])]
    return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in before.split(",")]


LinkOrFileOption = Annotated[
    str,
    typer.Option(
        help="Link condition to use: a name that 'mplab links' lists, or the path of a file.",
        metavar="NAME|FILE",
        autocompletion=complete_links,
    ),
]
TransportOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Transport to use; 'mplab transports' lists them. By default, a plain one over the needed paths is used.",
        autocompletion=complete_transports,
        show_default=False,
    ),
]


CAPTURES = (".pcap", ".pcapng", ".cap")
"""Suffixes of captures."""
_OPTION_OF = {
    Argument.ALLOW_HOOKS: "--allow-hooks",
    Argument.ALLOW_LAB: "--allow-lab",
    Argument.LAB: "--lab FILE",
    Argument.ONLY_REPORT: "--report-only",
}


@contextlib.contextmanager
def naming_options() -> Iterator[None]:
    """Name options instead of Python arguments in the errors of `mplab.run`.

    Raises:
        InputError: instead of an `ArgumentError`.
    """
    try:
        yield
    except ArgumentError as error:
        raise InputError(error.text(_OPTION_OF)) from error


def check_name(kind: str, name: str, allowed: Iterable[str]) -> None:
    """Raise InputError unless `name` is in `allowed`; the message names the allowed names, and a similar one.

    If `name` is a file, the message names the verb that reads it.
    """
    names = list(allowed)
    if name not in names:
        check_no_file(Path(name), f"the name of a {kind}")
        raise InputError(unknown(kind, name, names))


def check_no_file(path: Path, wanted: str) -> None:
    """Raise InputError if `path` is a file: the message names its kind, `wanted`, and the verb for this kind."""
    if not path.is_file():
        return
    verbs = {"a bundle": (f"mplab reproduce {path}", (".tar.gz", ".tgz")), "a capture": (f"mptrace {path}", CAPTURES)}
    for kind, (verb, suffixes) in verbs.items():
        if path.name.endswith(suffixes):
            raise InputError(f"{path}: this is {kind}, not {wanted}. Use it with '{verb}'")
    problem = ""
    if path.suffix in {".yaml", ".yml"}:
        with contextlib.suppress(InputError):  # not YAML: the kind of the file is unknown
            problem = other_kind(load_yaml(path), wanted)
    raise InputError(problem or f"{path}: is a file, not {wanted}")


def check_shapeable(link: LinkCondition, lab: LabUse = VIRTUAL) -> None:
    """Raise InputError if the shapers of a lab cannot make a link condition."""
    raise_lines([f"link '{link.name}': {problem}" for problem in lab.refusals(link, abilities())])


def links_of(name_or_file: str) -> tuple[LinkCondition, ...]:
    """Return the link condition with a name or in a file, or all members of a sweep. Raises InputError."""
    if is_file(name_or_file):
        return read_link_file(Path(name_or_file), LINKS_DIR)
    return load_links(name_or_file, LINKS_DIR)


def one_link(name_or_file: str) -> LinkCondition:
    """Return a link condition by its name or by the path of its file.

    Raises:
        InputError: there is no such condition, the file describes several, or the file is wrong.
    """
    if not is_file(name_or_file):
        return load_link(name_or_file, LINKS_DIR)
    first, *others = links_of(name_or_file)
    if others:
        raise InputError(f"{name_or_file}: a sweep of {len(others) + 1} conditions: one is needed")
    return first


def link_entry(name_or_file: str, lab: LabUse = VIRTUAL) -> str | dict[str, object]:
    """Return a link condition in the form of an entry of an experiment file.

    The entry is the name of the condition, or its description if `name_or_file` is the path of a file.

    Raises:
        InputError: there is no such condition, the file describes several, the file is wrong, or the lab cannot make
            the condition.
    """
    check_shapeable(one_link(name_or_file), lab)
    if not is_file(name_or_file):
        return name_or_file
    file = Path(name_or_file)
    return {"name": file.stem, **load_yaml(file).data}


def is_file(name_or_file: str) -> bool:
    """Return whether a text is the path of a file, not a name."""
    return os.sep in name_or_file or name_or_file.endswith((".yaml", ".yml"))


def find_run(name: str, runs: Path, *, whole: bool = False) -> Path:
    """Return the run directory that `name` means: its path, or the start or end of its name in the folder `runs`.

    If `name` is "", return the newest run in `runs`; with `whole`, the newest one whose cells were not chosen with
    ``--cell``, if there is one.

    Raises:
        InputError: no run matches, or more than one.
    """
    if name and (Path(name) / "manifest.json").is_file():
        return Path(name)
    if name:
        check_no_file(Path(name), "a run directory")
    if os.sep in name:
        raise InputError(f"{name}: not a run directory: {RunDirectory(Path(name)).why_none()}")
    if runs.is_file():
        raise InputError(f"{runs}: is a file. --runs needs the folder that holds the runs")
    directories = sorted(path.parent for path in runs.glob("*/manifest.json"))
    if not directories:
        raise InputError(f"{runs}: no run in it; 'mplab run FILE' makes one, --runs names another folder")
    if not name:
        newest_first = reversed(directories)
        fitting = (path for path in newest_first if not (whole and RunDirectory(path).read_manifest().plan.chosen))
        return next(fitting, directories[-1])
    return runs / meant("run", name, [path.name for path in directories], runs)


def meant(kind: str, name: str, names: Sequence[str], folder: object) -> str:
    """Return the only one of `names` that begins or ends with `name`.

    Args:
        kind: what the names are, for messages: ``run``.
        name: the word of the user.
        names: names in the folder, at least one.
        folder: where they are, for messages.

    Raises:
        InputError: no name fits, or several do.
    """
    matches = [one for one in names if one.startswith(name) or one.endswith(name)]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join((matches or list(names))[-5:])
    if matches:
        raise InputError(f"{folder}: {name!r} fits {len(matches)} {kind}s. Give more of the name: {listed}")
    raise InputError(f"{folder}: no {kind} is called {name!r}. {kind.capitalize()}s: {listed}")
