"""What can go wrong in the analysis.

::

    AnalysisError               exit code
    ├── NotARunError            2   the path is not a run directory, or its manifest cannot be read
    ├── NotAnalysedError        2   the run has no report yet
    ├── ProgramMissingError     2   mptrace is not built, or is not where it was said to be
    ├── ScenarioMissingError    2   a scenario's folder has no usable scores.py
    ├── MetricConflictError     2   two scenarios give a metric of one name different meanings
    ├── TablesError             2   tables of a cell are damaged, or from a newer mptrace
    ├── BudgetError             2   a limit has a unit that its metric has not
    ├── QueryError              2   an SQL statement that the index cannot answer
    ├── FigureError             2   a figure of this name does not exist
    ├── BundleError             2   a run that cannot be bundled, or a bundle that is damaged or none
    ├── CaptureError            2   a capture cannot be read or converted for another tool
    ├── StoreError              2   where runs are said to be cannot be read or written
    ├── AddressError            2   what is said of a cluster is not an address, or does not fit it
    ├── ToolMissingError        3   the tool to compare with is not installed
    └── ClusterError            3   the cluster cannot be reached, is lost, or is not fit for this analysis
"""

from pathlib import Path
from typing import ClassVar


class AnalysisError(Exception):
    """Base of every error of this package; ``exit_code`` is what the command line ends with."""

    exit_code: ClassVar[int] = 2


class NotARunError(AnalysisError):
    """The path does not hold a run that can be read."""

    def __init__(self, path: Path, problem: str) -> None:
        """``problem`` says what is missing or wrong."""
        super().__init__(f"{path}: not a run directory: {problem}")
        self.path = path
        self.problem = problem


class NotAnalysedError(AnalysisError):
    """The run directory holds no ``report/summary.json``."""


class ProgramMissingError(AnalysisError):
    """A program that the analysis runs is not there."""


class ScenarioMissingError(AnalysisError):
    """No folder of a scenario, or its ``scores.py`` lacks a part or cannot be imported."""


class MetricConflictError(AnalysisError):
    """A metric's name has two meanings."""


class TablesError(AnalysisError):
    """Tables that cannot be read; they can be made again from the captures."""


class BudgetError(AnalysisError):
    """A limit cannot be compared with what was measured."""


class QueryError(AnalysisError):
    """An SQL statement is wrong, or asks for a table that is not in the index."""


class FigureError(AnalysisError):
    """No figure has this name."""


class BundleError(AnalysisError):
    """A run cannot be bundled as it is, or a bundle cannot be used: damaged, cut off, or none at all."""


class CaptureError(AnalysisError):
    """A capture that mptrace or the tool to compare with cannot read."""


class ToolMissingError(AnalysisError):
    """The tool to compare with is not installed; the message says how to get it."""

    exit_code = 3


class StoreError(AnalysisError):
    """A folder of runs, local or elsewhere, that cannot be listed, read or written."""


class AddressError(AnalysisError):
    """An address of a cluster that is none, or options that do not go with it."""


class ClusterError(AnalysisError):
    """There is no cluster to work with: not reachable, without workers, of other versions, or gone."""

    exit_code = 3
