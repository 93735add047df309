"""Logging of mplab: one line on standard error for each event.

Tracebacks of unexpected errors go to a file. They omit the values of variables, which may be secrets.
"""

import sys
import traceback
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor

from mplab.base.files import state_directory

_MOST_BYTES = 1_000_000


def traceback_file() -> Path:
    """Return ``$XDG_STATE_HOME/mplab/tracebacks.log``."""
    return state_directory() / "tracebacks.log"


def keep_traceback(error: BaseException) -> str:
    """Append the traceback of `error` to `traceback_file`. Return the path of the file, for a message.

    If the file cannot be written, the returned text also has the reason. A file of more than 1 MB is emptied first.
    """
    path = traceback_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            if file.tell() > _MOST_BYTES:
                file.truncate(0)
            file.write("".join(traceback.format_exception(error)) + "\n")
    except OSError as problem:
        return f"{path} (not written: {problem})"
    return str(path)


def configure(*, for_people: bool) -> None:
    """Log to standard error.

    Args:
        for_people: True: sentences for a terminal; False: logfmt with timestamps.
    """
    end: list[Processor] = (
        [_sentence]
        if for_people
        else [structlog.processors.TimeStamper(fmt="iso"), structlog.processors.LogfmtRenderer()]
    )
    structlog.configure(
        processors=[_traceback_to_file, *end], logger_factory=_to_stderr, cache_logger_on_first_use=False
    )


def _to_stderr(*_arguments: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)


def _traceback_to_file(_logger: object, _name: str, event: EventDict) -> EventDict:
    """Replace ``exc_info`` in a log record by the path of the file to which the traceback was appended."""
    error = sys.exception() if event.pop("exc_info", False) else None
    if error is not None:
        event["traceback"] = keep_traceback(error)
    return event


def _sentence(_logger: object, _name: str, event: EventDict) -> str:
    facts = "; ".join(f"{key}: {value}" for key, value in event.items() if key != "event" and value != "")
    return f"mplab: {event['event']}: {facts}"
