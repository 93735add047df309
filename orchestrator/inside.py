"""What runs inside a lab's namespaces: ``python -m orchestrator.inside run DIR`` and ``… lab``.

Started by `orchestrator.cli` through `orchestrator.lab.enter`; not for people.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from orchestrator.errors import LabNotReadyError, MplabError
from orchestrator.lab.enter import in_lab
from orchestrator.lab.session import LabSession, LabSettings
from orchestrator.record.events import EventLog
from orchestrator.record.run_directory import RunDirectory
from orchestrator.run import Run

_UNEXPECTED_EXIT_CODE = 70


def _run(path: Path) -> None:
    try:
        Run(path).execute()
    except MplabError as error:
        with EventLog(RunDirectory.open(path).events_file) as events:
            events.append("run_stopped", error=str(error), exit_code=error.exit_code)
        raise


def _lab(settings: LabSettings) -> None:
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    with LabSession(settings) as session:
        print(json.dumps({"event": "up", "lab": os.environ["MPLAB_LAB"], **session.describe()}), flush=True)
        if settings.keep:
            stop.wait()


def main(argv: list[str]) -> int:
    """Run one verb; its exit code."""
    if not in_lab():
        raise LabNotReadyError("this runs inside a lab only: use mplab run, or mplab lab up")
    verb, argument = argv
    try:
        if verb == "run":
            _run(Path(argument))
        else:
            _lab(LabSettings(**json.loads(argument)))
    except MplabError as error:
        print(f"mplab: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
