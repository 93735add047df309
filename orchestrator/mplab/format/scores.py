"""``scores.json``: the scores of one cell. The analysis writes the file, and can compute it again from the cell."""

from pydantic import Field

from mplab.format.record import Record

FORMAT = 1


class ScoreRow(Record):
    """One value of a metric, with its unit."""

    metric: str
    value: float
    unit: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Scores(Record):
    """``scores.json``."""

    format: int = FORMAT
    cell: str = ""
    values: tuple[ScoreRow, ...]
