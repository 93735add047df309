"""``mplab``: the verbs, and how errors end a command."""

import importlib.metadata
import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from mplab.analysis.errors import AnalysisError
from mplab.base import logs, plugintrace
from mplab.base.errors import HAS_PLACE, MplabError
from mplab.cli.output import err
from mplab.cli.verb_loader import add_later

app = typer.Typer(
    name="mplab",
    help="Experiments on multipath transport for phones: links shaped and probed, transports proved, apps driven, "
    "what the user felt scored.",
    epilog="Exit codes: 0 ok · 1 some cells failed or are invalid, or a file cannot be written · "
    "2 bad experiment or lab file · 3 lab not ready · 4 budget or regression gate failed · 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
VERBS = {
    "init": (
        "mplab.cli.verbs.experiments.init:init",
        "Write an experiment file, a lab file, or a campaign file, to begin with.",
    ),
    "doctor": ("mplab.cli.verbs.lab.doctor:doctor", "Check everything that a run needs, and say for each what to do."),
    "plan": (
        "mplab.cli.verbs.experiments.plan:plan",
        "Show what an experiment would run, in which order, and for how long; nothing is touched.",
    ),
    "run": ("mplab.cli.verbs.experiments.run:run", "Run an experiment and make its report."),
    "resume": (
        "mplab.cli.verbs.experiments.run:resume",
        "Go on with a run that was interrupted or killed; complete cells are kept.",
    ),
    "pause": (
        "mplab.cli.verbs.experiments.pause:pause",
        "Let a run wait after the cell that it is at, with its lab up, until 'mplab continue'.",
    ),
    "continue": ("mplab.cli.verbs.experiments.pause:go_on", "Let a run go on that 'mplab pause' made wait."),
    "status": (
        "mplab.cli.verbs.experiments.status:status",
        "Say how far a run is: cells done, what runs now, time left.",
    ),
    "analyze": (
        "mplab.cli.verbs.results.analyze:analyze",
        "Make tables, scores, figures and report again from a run's raw data, or check our tables.",
    ),
    "figures": (
        "mplab.cli.verbs.results.figures:figures",
        "Draw figures from a run's traces: SVG, and the data as CSV. Those without data are left out, with the reason.",
    ),
    "report": (
        "mplab.cli.verbs.results.report:report",
        "Show where a run's report is, and its numbers; makes it when it is not there.",
    ),
    "compare": (
        "mplab.cli.verbs.results.compare:compare",
        "Compare a run with a baseline: each metric's change, its budgets, and whether they were kept.",
    ),
    "trend": (
        "mplab.cli.verbs.results.trend:trend",
        "Draw each metric over all runs of an experiment, and say when its level changed.",
    ),
    "bundle": (
        "mplab.cli.verbs.results.bundle:bundle",
        "Make one archive of a run that others can check, analyse again and run again (docs/reproduce.md).",
    ),
    "reproduce": (
        "mplab.cli.verbs.results.reproduce:reproduce",
        "Check a bundle, make its report again from raw data, then run its experiment again and compare the results.",
    ),
    "plugins": (
        "mplab.cli.verbs.parts.plugins:plugins",
        "List scenarios, transports, shapers, phones, proxies, services and figures, with their origin.",
    ),
    "transports": (
        "mplab.cli.verbs.parts.transports:transports",
        "List the transports, and whether this host can run them.",
    ),
    "nightly": (
        "mplab.cli.verbs.experiments.nightly:app",
        "Campaigns: several experiments, night after night, over all phones.",
    ),
    "results": (
        "mplab.cli.verbs.results.results:app",
        "All runs of a folder as tables: an index, queries in SQL, exports.",
    ),
    "lab": ("mplab.cli.verbs.lab.lab:app", "Bring the virtual lab up by hand, and look into a running one."),
    "phone": ("mplab.cli.verbs.lab.phone:app", "Phones by adb: on a cable, or over TCP."),
    "proxy": (
        "mplab.cli.verbs.lab.proxy:app",
        "Proxy and origin services as containers: on this machine or, over SSH, on a server.",
    ),
    "router": (
        "mplab.cli.verbs.lab.router:app",
        "Routers, servers and phones that shape: the dead-man's switch, and shaping by hand.",
    ),
    "scenarios": (
        "mplab.cli.verbs.parts.scenarios:app",
        "List the app scenarios with parameters and metrics, or run one alone.",
    ),
    "links": ("mplab.cli.verbs.parts.links:app", "List the link conditions, explain and draw one, or check files."),
}
"""Verb → where it is, and its line in the help: the first line of its docstring (a test compares them)."""

for _name, (_target, _text) in VERBS.items():
    add_later(app, _name, _target, _text)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mplab {importlib.metadata.version('mplab')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    trace_plugins: Annotated[
        bool,
        typer.Option(
            "--trace-plugins",
            envvar=plugintrace.VARIABLE,
            help="Write every call of a plug-in to standard error; what runs inside a lab writes to the run's logs.",
        ),
    ] = False,
) -> None:
    if trace_plugins:
        os.environ[plugintrace.VARIABLE] = "1"
        plugintrace.start_if_asked()


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """SIGTERM is Ctrl-C: what was begun is undone; further ones do not disturb that."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _explain(text: str) -> None:
    """Print an error; lines that begin with a file and its line stay as they are, for editors."""
    if not HAS_PLACE.match(text):
        err.print("mplab:", style="bold red", end=" ")
    err.print(text, markup=False, soft_wrap=True)


def main() -> None:
    """Entry point of the command: errors that mplab explains end with their own exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    logs.configure(for_people=True)
    try:
        app()
    except (MplabError, AnalysisError) as error:
        _explain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:  # not about a file: a defect, whose traceback helps
            raise
        _explain(f"{os.fsdecode(error.filename)}: {error.strerror}")
        sys.exit(MplabError.exit_code)
    except KeyboardInterrupt:
        err.print("mplab: interrupted")
        sys.exit(130)
    except Exception as error:  # a defect of mplab: its traceback is for who repairs it
        err.print("mplab:", style="bold red", end=" ")
        text = f"unexpected error: {type(error).__name__}: {error}. Report it with {logs.keep_traceback(error)}"
        err.print(text, markup=False, soft_wrap=True)
        sys.exit(1)
