"""Exceptions of the analysis. ``exit_code``, the exit code of the command line, is 2 unless a class has another one."""

from pathlib import Path
from typing import ClassVar


class AnalysisError(Exception):
    """Base class of the errors of this package; ``exit_code`` is the exit status of the command line."""

    exit_code: ClassVar[int] = 2


class NotARunError(AnalysisError):
    """The path does not hold a run that can be read."""

    def __init__(self, path: Path, problem: str) -> None:
        """``problem`` names the missing or wrong part."""
        super().__init__(f"{path}: not a run directory: {problem}")
        self.path = path
        self.problem = problem


class NotAnalysedError(AnalysisError):
    """The run directory holds no ``report/summary.json``."""


class ProgramMissingError(AnalysisError):
    """A program that the analysis runs is missing."""


class ScenarioMissingError(AnalysisError):
    """No scenario of this name is registered, or its ``scores`` cannot be imported or lack ``METRICS`` or ``score``."""


class MetricConflictError(AnalysisError):
    """Two scenarios define a metric of one name differently, or a scenario declares one name twice."""


class TablesError(AnalysisError):
    """Tables, scores or the summary of a run are damaged, missing or too new; ``mplab analyze`` makes them again."""


class BudgetError(AnalysisError):
    """The unit of a budget's limit cannot be converted to the unit of its metric."""


class QueryError(AnalysisError):
    """An SQL statement is wrong, or names a table that is not in the index."""


class FigureError(AnalysisError):
    """A figure or a cell to draw does not exist, or a figure cannot be used."""


class BundleError(AnalysisError):
    """A run cannot be bundled in its present state, or an archive is damaged, cut off, or not a bundle."""


class CaptureError(AnalysisError):
    """A capture cannot be read by mptrace or by the tool to compare with."""


class ToolMissingError(AnalysisError):
    """The tool to compare with is not installed; the message has the command that installs it."""

    exit_code = 3


class StoreError(AnalysisError):
    """A folder of runs, local or remote, cannot be listed, read or written."""


class AddressError(AnalysisError):
    """The address of a cluster is wrong, or an option is not allowed for this kind of address."""


class ClusterError(AnalysisError):
    """The cluster cannot be used: it is not reachable, has no workers, has other versions, or was lost."""

    exit_code = 3
