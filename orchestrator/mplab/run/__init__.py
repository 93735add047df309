"""Plan an experiment, run it in its lab, resume a run. Usable from Python without the command line (docs/python.md)."""

from mplab.run.executing import RunResult, execute
from mplab.run.planning import PlannedRun, plan
from mplab.run.resuming import plan_rest, resume
from mplab.run.watch import Watch

__all__ = ["PlannedRun", "RunResult", "Watch", "execute", "plan", "plan_rest", "resume"]
