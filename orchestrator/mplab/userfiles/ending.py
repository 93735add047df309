"""Stop rules of an experiment file: intervals that are narrow enough, or too many failures."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mplab.format.experiment import IntervalRule
from mplab.format.units import Percent
from mplab.userfiles.yaml import Document


class IntervalFile(BaseModel):
    """Stop rule: the 95 % intervals of a metric are narrow enough for every transport."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str = Field(min_length=1, description="Name of the metric.")
    within: Annotated[Percent, Field(gt=0)] = Field(description="Half of an interval's width at most, of a median.")
    of: Literal["differences", "medians"] = Field(
        "differences", description="Of a transport against the best single path, by block; or of each by itself."
    )
    after: int = Field(6, ge=3, le=1000, description="So many blocks are run in any case.")
    scenarios: tuple[str, ...] = Field((), description="Labels of the scenarios that are looked at; all by default.")
    links: tuple[str, ...] = Field((), description="Link conditions that are looked at; all by default.")


class StopFile(BaseModel):
    """Conditions that end a run before its plan is done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int | None = Field(None, ge=1, description="So many cells in a row that are not ok.")
    interval: IntervalFile | None = Field(None, description="Intervals that are narrow enough.")


def interval_rule(file: IntervalFile | None, document: Document) -> IntervalRule | None:
    """Return the rule with its file and line, for messages; None: the file has no such rule."""
    if file is None:
        return None
    place = document.place(("stop", "interval"))
    return IntervalRule(file.metric, file.within, file.of, file.after, file.scenarios, file.links, place)
