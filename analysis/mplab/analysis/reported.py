"""Reads ``report/summary.json`` and checks it: another user may have made the run."""

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from mplab.analysis.errors import NotAnalysedError, TablesError
from mplab.analysis.files import parse_json
from mplab.analysis.run import first_problem
from mplab.format.record import Record, RecordName, Whole

FORMAT = 1
Ends = tuple[float, float] | None


class _Part(Record):
    """Keeps unknown fields: other programs may need them."""

    model_config = ConfigDict(extra="allow")


class _Comparison(_Part):
    baseline: str | None = None
    gain: float | None = None
    gain_interval: Ends = None


class _Series(_Part):
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
    comparison: _Comparison | None = None


class _Contrast(_Part):
    transport: str
    reference: str
    pairs: Whole
    shift: float
    interval: Ends = None
    p: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None
    dominance: float | None = None
    cliffs_delta: float | None = None
    needed: Whole | None = None


class _Group(_Part):
    scenario: RecordName
    link: RecordName
    metric: str
    unit: str
    title: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    headline: bool = False
    labels: dict[str, str] = Field(default_factory=dict)
    best: str | None = None
    transports: tuple[_Series, ...] = ()
    contrasts: tuple[_Contrast, ...] = ()


class _Answer(_Part):
    sentence: str


class _Budget(_Part):
    about: str
    text: str
    verdict: str


class _Summary(_Part):
    format: int = FORMAT
    metrics: tuple[_Group, ...] = ()
    answers: tuple[_Answer, ...] = ()
    warnings: tuple[str, ...] = ()
    budgets: tuple[_Budget, ...] = ()


def read_summary(run_dir: Path) -> dict[str, Any]:
    """``report/summary.json`` of a run, checked.

    Raises:
        NotAnalysedError: the run has no report.
        TablesError: it is damaged, or from a newer mplab.
    """
    path = run_dir / "report" / "summary.json"
    try:
        found = _Summary.model_validate(parse_json(path.read_bytes()))
    except FileNotFoundError as error:
        raise NotAnalysedError(f"{path}: there is no such file; `mplab report {run_dir}` makes it") from error
    except (OSError, ValueError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise TablesError(f"{path}: cannot be read ({reason}); `mplab analyze` makes it again") from error
    if found.format > FORMAT:
        raise TablesError(f"{path}: format {found.format}; this mplab reads up to {FORMAT}: make the report again")
    return found.model_dump(mode="json")
