"""Define the exceptions of the analysis. The command line exits with the ``exit_code`` of the class, by default 2."""

from pathlib import Path
from typing import ClassVar


class AnalysisError(Exception):
    """Base class of the errors of this package; ``exit_code`` is the exit code of the command line."""

    exit_code: ClassVar[int] = 2


class NotARunError(AnalysisError):
    """The path does not hold a run that can be read."""

    def __init__(self, path: Path, problem: str) -> None:
        """Make the error; ``problem`` names the missing or wrong part of the run directory."""
        super().__init__(f"{path}: not a run directory: {problem}")
        self.path = path
        self.problem = problem


class NotAnalysedError(AnalysisError):
    """The run directory holds no ``report/summary.json``."""


class ProgramMissingError(AnalysisError):
    """A program that the analysis calls, such as mptrace, is not installed."""


class ScenarioMissingError(AnalysisError):
    """A scenario is not registered, or its module ``scores`` cannot be imported or lacks ``METRICS`` or ``score``."""


class MetricConflictError(AnalysisError):
    """Two scenarios define metrics of the same name differently, or one scenario declares the same name twice."""


class TablesError(AnalysisError):
    """Tables, scores or the summary of a run are damaged, missing or too new; ``mplab analyze`` makes new ones."""


class BudgetError(AnalysisError):
    """The limit that a budget sets has a unit that cannot be converted to the unit of its metric."""


class QueryError(AnalysisError):
    """An SQL statement is wrong, or names a table that is not in the index."""


class FigureError(AnalysisError):
    """A requested figure or cell does not exist, or the module of a figure cannot be loaded."""


class BundleError(AnalysisError):
    """A run cannot be bundled in its present state, or an archive is damaged, cut off, or not a bundle."""


class CaptureError(AnalysisError):
    """mptrace, or the tool that it is compared with, cannot read a capture."""


class ToolMissingError(AnalysisError):
    """The tool that mptrace is compared with is not installed; the message has the command that installs it."""

    exit_code = 3


class StoreError(AnalysisError):
    """A folder of runs, local or remote, cannot be listed, read or written."""


class AddressError(AnalysisError):
    """The address of a cluster is wrong, or an option is not allowed for this kind of address."""


class ClusterError(AnalysisError):
    """The cluster cannot be used: it is not reachable, has no workers, runs other versions of the code, or was lost."""

    exit_code = 3
