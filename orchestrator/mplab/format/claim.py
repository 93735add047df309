"""Model of a claim in manifest.json: a statement of a paper about a metric, and the comparison of a run with it.

`mplab.userfiles.experiments.claims` has the model of a claim in an experiment file.
"""

import dataclasses
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from mplab.format.record import CONFIG, OMIT_EMPTY
from mplab.format.units import LabelText

ClaimKind = Literal["gain", "no_difference", "value", "share", "trend", "correlation"]
ClaimStatistic = Literal["median", "mean", "pooled"]
TrendForm = Literal["change", "flat", "crossover"]
ClaimWord = Literal["better", "worse", "rising", "falling"]
Verdict = Literal["as claimed", "same direction", "not seen", "contradicted", "not measurable here", "no data"]
"""Verdict on a claim; see `mplab.analysis.verdicts.judging`."""

LINKS = "links"
"""Value of `Trend.along` if the points of the trend are link conditions."""


@dataclass(frozen=True, config=CONFIG)
class ClaimedRange:
    """Claimed range of a claim's quantity, in `unit`; None: an open end.

    Attributes:
        low, high: the ends. For one number, they enclose all numbers that round to it.
        number: the number, if the paper has only one; the analysis gives it a tolerance.
        word: a direction without a number. The ends are then None: the smallest effect of the experiment is the end.
    """

    low: Annotated[float | None, OMIT_EMPTY] = None
    high: Annotated[float | None, OMIT_EMPTY] = None
    unit: str = "%"
    number: Annotated[float | None, OMIT_EMPTY] = None
    word: Annotated[ClaimWord | None, OMIT_EMPTY] = None


@dataclass(frozen=True, config=CONFIG)
class Trend:
    """Points of a trend: link conditions, or values of a label.

    Attributes:
        form: change: of the metric from the first to the last point, percent; flat: a change within a margin;
            crossover: position from which on the transport is no longer the better one.
        along: ``links``, or the name of a label.
        at: position of each point: of the claim's links, or of the values of the label; empty: 0, 1, 2, …
    """

    form: TrendForm = "change"
    along: str = LINKS
    at: Annotated[tuple[float, ...], OMIT_EMPTY] = ()


@dataclass(frozen=True, config=CONFIG, kw_only=True)
class Claim:
    """Claim of a paper about the values of a transport for one metric.

    Attributes:
        figure: figure, table or section of the paper, such as ``nikravesh2016-fig17``.
        width: source of the range's width: ``paper``, or ``ours: `` with the reason.
        metric: name of the metric; "" only if the claim cannot be measured.
        transport: label of the transport; "" only if the claim cannot be measured.
        claimed: claimed range of the quantity of `kind`. None: the claim cannot be measured and has no number.
        other_metric: second metric of a correlation.
        other_transports: labels of further transports whose cells count in a correlation.
        against: labels of the transports with which `transport` is compared; the best one counts. For a value or a
            share: the transport that forms pairs with `transport`; empty: there are no pairs.
        against_link, against_scenario: where `against` was measured, if not where `transport` was; "": there.
        scenarios, links: labels and names; empty: all.
        labels: label → values that the claim is about; a label without an entry: all its values.
        pooled_labels: labels whose values are pooled within each cell.
        groups: ``most`` or ``all`` groups must agree with the claim.
        not_measurable: reason why this lab cannot measure it; "": it can.
    """

    text: str
    source: str = ""
    figure: str = ""
    width: str = ""
    metric: str = ""
    transport: str = ""
    kind: ClaimKind = "gain"
    claimed: ClaimedRange | None = None
    trend: Annotated[Trend | None, OMIT_EMPTY] = None
    other_metric: Annotated[str, OMIT_EMPTY] = ""
    other_transports: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    against: tuple[str, ...] = ()
    against_link: str = ""
    against_scenario: str = ""
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    labels: dict[str, tuple[LabelText, ...]] = dataclasses.field(default_factory=dict)
    pooled_labels: tuple[str, ...] = ()
    statistic: ClaimStatistic = "median"
    groups: Literal["most", "all"] = "most"
    not_measurable: str = ""
    place: Annotated[str, Field(exclude=True)] = dataclasses.field(default="", compare=False)
    """File and line of the claim, for messages."""

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert a record of an older version, whose only kind is a gain with two ends in percent."""
        fields = data.kwargs if isinstance(data, ArgsKwargs) else data
        if isinstance(fields, dict) and "gain_percent" in fields:
            kept = {key: value for key, value in fields.items() if key != "gain_percent"}
            match fields["gain_percent"]:
                case [low, high]:
                    return {**kept, "kind": "gain", "claimed": {"low": low, "high": high, "unit": "%"}}
            raise ValueError("gain_percent: a list of two numbers is needed")
        return data

    @property
    def of_pairs(self) -> bool:
        """Return whether the quantity is the relative difference of pairs of cells, or the share of better pairs."""
        return self.kind in ("value", "share") and bool(self.against)

    def is_about(self, scenario: str, link: str) -> bool:
        """Return whether the claim covers a scenario (by its label) under a link condition."""
        return (not self.scenarios or scenario in self.scenarios) and (not self.links or link in self.links)
