"""Plan an experiment, run it in its lab, resume a run. Usable from Python without the command line (docs/python.md).

Belongs here: everything between an experiment and a complete run directory. Not here: options and printing (`cli`),
several runs (`campaign`), the steps and verdict of a cell (`cell`), parts of a lab (`lab`), numbers (`analysis`).

* Functions for callers: `planning`, `executing`, `resuming`, `reproducing`, `comparing`, `alone`, `control`,
  `progress`.
* The two processes of a run: `hostside` and `labside`, connected by `hostrpc`.
* Both: `blocks` (order of the cells), `run_directory`.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mplab.run.comparing import RunComparison, compare
    from mplab.run.control import go_on, pause
    from mplab.run.executing import RunResult, execute
    from mplab.run.planning import PlannedRun, plan
    from mplab.run.progress import RunCallbacks, RunStatus, status
    from mplab.run.reproducing import Reproduction, reproduce
    from mplab.run.resuming import plan_rest, resume

__all__ = [
    "PlannedRun",
    "Reproduction",
    "RunCallbacks",
    "RunComparison",
    "RunResult",
    "RunStatus",
    "compare",
    "execute",
    "go_on",
    "pause",
    "plan",
    "plan_rest",
    "reproduce",
    "resume",
    "status",
]

_NAMES = {
    "comparing": ("RunComparison", "compare"),
    "executing": ("RunResult", "execute"),
    "control": ("go_on", "pause"),
    "planning": ("PlannedRun", "plan"),
    "progress": ("RunStatus", "RunCallbacks", "status"),
    "reproducing": ("Reproduction", "reproduce"),
    "resuming": ("plan_rest", "resume"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name on first use. The process inside a lab uses none of these names and must start quickly.

        Raises:
            AttributeError: the package does not export the name.
        """
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
