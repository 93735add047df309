"""Run the process inside a lab: ``python -m mplab.run.labside.inside run DIR`` and ``… lab``.

The process is in the namespaces of the lab if the lab has any.

`mplab.run.hostside.hosting` and ``mplab lab up`` start it through `mplab.base.enter`; users do not call it. Standard
output has JSON lines: ``{"event": "up", …}`` when a lab is up, ``{"event": "error", "error": TEXT}`` before an exit
with an error.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from mplab.base import logs, plugintrace
from mplab.base.enter import in_lab
from mplab.base.errors import LabNotReadyError, MplabError
from mplab.base.timelimit import alarm
from mplab.cell.instruments import Instruments
from mplab.lab.catalog import catalog
from mplab.lab.session import LabSession, LabSessionSettings
from mplab.run.hostrpc import HostClient
from mplab.run.labside.run import RunLoop, open_lab

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _lab(settings: LabSessionSettings) -> None:
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in _ENDING:
        signal.signal(number, end)
    with LabSession(settings) as session:
        print(json.dumps({"event": "up", "lab": os.environ["MPLAB_LAB"], **session.describe()}), flush=True)
        if settings.keep:
            stop.wait()


def main(argv: list[str]) -> int:
    """Run the verb `argv[0]` (``run`` or ``lab``); return the exit code. Raises LabNotReadyError outside a lab."""
    if not in_lab():
        raise LabNotReadyError("this runs inside a lab only: use mplab run, or mplab lab up")
    verb, argument = argv
    logs.configure(for_people=False)
    plugintrace.start_if_asked()
    try:
        if verb == "run":
            run = RunLoop(
                Path(argument),
                HostClient.received(),
                catalog=catalog(),
                open_lab=open_lab,
                instruments=Instruments(limit=alarm),
            )
            for number in _ENDING:
                signal.signal(number, run.interrupt)
            run.execute()
        else:
            _lab(LabSessionSettings(**json.loads(argument)))
    except MplabError as error:
        # Use standard output, which is a pipe: the disk of the log files may be full.
        print(json.dumps({"event": "error", "error": str(error)}), flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
