"""Read ``report/summary.json``, and validate it, since another user may have made the run."""

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, model_validator

from mplab.analysis.errors import NotAnalysedError, TablesError
from mplab.analysis.files import parse_json
from mplab.analysis.record.run import first_problem
from mplab.format.finding import ClaimFinding
from mplab.format.record import Record, RecordName, Whole

FORMAT = 1
Ends = tuple[float, float] | None


class _Part(Record):
    """A part of ``report/summary.json``; unknown fields are kept, since other programs may need them."""

    model_config = ConfigDict(extra="allow")


class SummaryComparison(_Part):
    """A transport compared with the best single path (``baseline``) in one metric."""

    baseline: str | None = None
    gain: float | None = None
    gain_interval: Ends = None


class SummaryPooled(_Part):
    """Mean and median of all values of cells that have several, with intervals whose blocks are the cells."""

    effective_values: float | None = None
    mean: float | None = None
    mean_interval: Ends = None
    median: float | None = None
    median_interval: Ends = None


class SummarySeries(_Part):
    """Statistics of the values of one transport in a `SummaryGroup`."""

    transport: RecordName
    cells: Whole = 0
    n: Whole
    median: float | None = None
    q1: float | None = None
    q3: float | None = None
    mean: float | None = None
    sd: float | None = None
    min: float | None = None
    max: float | None = None
    interval: Ends = None
    comparison: SummaryComparison | None = None
    values: Whole = 0
    """Number of all values, if cells have several; 0: each cell has one, and there is no `pooled`."""
    pooled: SummaryPooled | None = None


class SummaryContrast(_Part):
    """A transport compared with another one (``reference``), block by block, in one metric."""

    transport: str
    reference: str
    pairs: Whole
    shift: float
    interval: Ends = None
    p: float | None = None
    p_family: float | None = Field(None, validation_alias=AliasChoices("p_family", "p_holm"))
    """Corrected p; reports of older versions corrected it by Holm's method."""
    p_bh: float | None = None
    dominance: float | None = None
    cliffs_delta: float | None = None
    needed: Whole | None = None


class SummaryGroup(_Part):
    """The results of all transports for one metric with its labels, in one scenario under one link condition."""

    scenario: RecordName
    link: RecordName
    metric: str
    unit: str
    title: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    headline: bool = False
    traced: bool = False
    labels: dict[str, str] = Field(default_factory=dict)
    best: str | None = None
    winner: str | None = None
    transports: tuple[SummarySeries, ...] = ()
    contrasts: tuple[SummaryContrast, ...] = ()


class SummaryAnswer(_Part):
    """The answer for one headline metric, in one sentence."""

    sentence: str


class SummaryBudget(_Part):
    """The verdict on a limit of a budget: ``about`` names the measured values, ``text`` has value and limit."""

    about: str
    text: str
    verdict: str


class SummaryClaim(_Part):
    """A claim of the experiment with its findings.

    Reports of older versions have no ``verdict`` over all groups; their findings, in other words, are left out.
    """

    text: str
    figure: str = ""
    verdict: str = ""
    confirmed: bool = False
    found: tuple[ClaimFinding, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_older_version(cls, data: object) -> object:
        return {**data, "found": ()} if isinstance(data, dict) and "verdict" not in data else data


class Summary(_Part):
    """Content of ``report/summary.json`` that mplab reads."""

    format: int = FORMAT
    metrics: tuple[SummaryGroup, ...] = ()
    answers: tuple[SummaryAnswer, ...] = ()
    warnings: tuple[str, ...] = ()
    budgets: tuple[SummaryBudget, ...] = ()
    claims: tuple[SummaryClaim, ...] = ()


@lru_cache(maxsize=256)
def _parsed(path: Path, _mtime_ns: int, _size: int) -> Summary:
    """Parse a ``summary.json``; cached by modification time and size, since several tables are made of one summary."""
    return Summary.model_validate(parse_json(path.read_bytes()))


def read_summary(run_dir: Path) -> Summary:
    """Read and check ``report/summary.json`` of a run.

    Raises:
        NotAnalysedError: the run has no report.
        TablesError: the report is damaged, or from a newer mplab.
    """
    path = run_dir / "report" / "summary.json"
    try:
        state = path.stat()
        summary = _parsed(path.absolute(), state.st_mtime_ns, state.st_size)
    except FileNotFoundError as error:
        raise NotAnalysedError(f"{path}: there is no such file; `mplab report {run_dir}` makes it") from error
    except (OSError, ValueError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise TablesError(f"{path}: cannot be read ({reason}); `mplab analyze` makes it again") from error
    if summary.format > FORMAT:
        raise TablesError(f"{path}: format {summary.format}; this mplab reads up to {FORMAT}: make the report again")
    return summary
