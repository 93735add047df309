"""Run the command ``mplab``: add its verbs, and turn errors into messages and exit codes."""

import importlib.metadata
import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from mplab.analysis.errors import AnalysisError
from mplab.base import logs, plugintrace
from mplab.base.errors import LabNotReadyError, MplabError
from mplab.base.extras import advice
from mplab.base.files import kind_of_failure
from mplab.cli.command import VerbApp
from mplab.cli.failure import report, report_usage, wants_json
from mplab.cli.verb_loader import add_verb, add_verbs
from mplab.cli.verbs import ALIASES, PANELS

_INTERRUPTED = 130
"""Exit code after SIGINT or SIGTERM."""

app = VerbApp(
    name="mplab",
    help="Experiments on multipath transport for phones: shape and probe links, verify transports, drive apps, "
    "score the user's experience.",
    epilog="Exit codes: 0 ok · 1 some cells failed or are invalid, or the disk is full · "
    "2 bad option, path, experiment or lab file · 3 lab not ready · 4 budget or regression gate failed · "
    "130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for _package, _panel in PANELS.items():
    add_verbs(app, f"mplab.cli.verbs.{_package}", _panel)
for _alias, _module in ALIASES.items():
    add_verb(app, f"mplab.cli.verbs.{_module}", alias=_alias)


def _version(requested: bool) -> None:
    if requested:
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
            help="Write every call of a plug-in to standard error; processes inside a lab write to the run's logs.",
        ),
    ] = False,
) -> None:
    if trace_plugins:
        os.environ[plugintrace.VARIABLE] = "1"
        plugintrace.start_if_asked()


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM: raise KeyboardInterrupt, so that changes are undone. Further SIGTERMs are ignored."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command ``mplab``. After an error, print one message and exit with the error's exit code.

    The traceback of an unexpected error is written to a file, and the exit code is 1.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    logs.configure(for_people=True)
    as_json = wants_json(sys.argv[1:])
    try:
        code = app(prog_name="mplab", standalone_mode=False)  # typer must not print its errors itself
        if as_json and code == _INTERRUPTED:  # typer has handled KeyboardInterrupt
            report("interrupted", _INTERRUPTED, as_json=True)
        sys.exit(code if isinstance(code, int) else 0)
    except TyperException as error:
        report_usage(error, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Abort:
        report("stopped: the input ended", 1, as_json=as_json)
        sys.exit(1)
    except (MplabError, AnalysisError) as error:
        report(str(error), error.exit_code, as_json=as_json)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:  # not about a file: a defect, whose traceback helps
            raise
        failure = kind_of_failure(error)
        report(f"{os.fsdecode(error.filename)}: {error.strerror}", failure.exit_code, as_json=as_json)
        sys.exit(failure.exit_code)
    except KeyboardInterrupt:
        report("interrupted", _INTERRUPTED, as_json=as_json)
        sys.exit(_INTERRUPTED)
    except Exception as error:  # a defect of mplab: its traceback is for developers
        if message := advice(error):
            report(message, LabNotReadyError.exit_code, as_json=as_json)
            sys.exit(LabNotReadyError.exit_code)
        text = f"unexpected error: {type(error).__name__}: {error}. Report it with {logs.keep_traceback(error)}"
        report(text, 1, as_json=as_json)
        sys.exit(1)
