"""Exceptions of the analysis, with the exit codes of the command line.

::

    AnalysisError               exit code
    ├── NotARunError            2   the path is not a run directory, or its manifest cannot be read
    ├── NotAnalysedError        2   the run has no report yet
    ├── ProgramMissingError     2   mptrace is not built, or is not at the configured path
    ├── ScenarioMissingError    2   a scenario is not registered, or its scores.py cannot be used
    ├── MetricConflictError     2   two scenarios give a metric of one name different meanings
    ├── TablesError             2   tables, scores or a summary are damaged, or from a newer version
    ├── BudgetError             2   a limit has a unit that cannot be converted to its metric's
    ├── QueryError              2   an SQL statement that the index cannot answer
    ├── FigureError             2   a figure or a cell to draw does not exist, or a figure cannot be used
    ├── BundleError             2   a run cannot be bundled, or a bundle is damaged or unreadable
    ├── CaptureError            2   a capture cannot be read or converted for another tool
    ├── StoreError              2   a folder of runs cannot be read or written
    ├── AddressError            2   a cluster's address is wrong, or an option is not allowed for it
    ├── ToolMissingError        3   the tool to compare with is not installed
    └── ClusterError            3   the cluster cannot be reached, is lost, or has other versions
"""

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
