"""Claims of an experiment file: the model, and the conversion to the form in manifest.json."""

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from mplab.base.suggest import show
from mplab.format.claim import LINKS, Claim, ClaimedRange, ClaimKind, ClaimStatistic, ClaimWord, Trend, TrendForm
from mplab.format.names import FileModel
from mplab.format.units import Percent

KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
_NUMBER = re.compile(r"(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z%][A-Za-z/%]*)?", re.ASCII)
_FIGURE = r"[a-z]+[0-9]{4}-(fig|table|sec)[0-9]+(\.[0-9]+)*[a-z]{0,2}(-[a-z0-9]+)*"
_WIDTH = r"paper|ours: \S.*"
_WILD = frozenset("*?")
_NUMBER_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?\s*([A-Za-z%][A-Za-z/%]*)?$"


def parse_percent_range(value: object) -> ClaimedRange:
    """Parse a claimed percentage: ``"34 %"``, ``["11 %", "49 %"]``, ``["21 %", null]``; negative ones are allowed.

    Raises:
        ValueError: an end is no percentage, or both are open.
    """
    return _parse(value, percent=True)


def parse_gain(value: object) -> ClaimedRange:
    """Parse a claimed gain: as `parse_percent_range`, or ``better`` or ``worse``. Raises ValueError."""
    return ClaimedRange(word=value) if value in ("better", "worse") else parse_percent_range(value)


def parse_change(value: object) -> ClaimedRange:
    """Parse a claimed change: as `parse_percent_range`, or ``rising`` or ``falling``. Raises ValueError."""
    return ClaimedRange(word=value) if value in ("rising", "falling") else parse_percent_range(value)


def parse_share(value: object) -> ClaimedRange:
    """Parse a claimed share: as `parse_percent_range`, from 0 to 100 %, but not the whole range. Raises ValueError."""
    claimed = parse_percent_range(value)
    for end in (claimed.number, *(() if claimed.number is not None else (claimed.low, claimed.high))):
        if end is not None and not 0 <= end <= 100:
            raise ValueError(f"share {end:g} %: from 0 % to 100 % is possible")
    _refuse_all_of(claimed, 0, 100)
    return claimed


def parse_value_range(value: object) -> ClaimedRange:
    """Parse a claimed value: ``"12 ms"``, ``["1.2 s", "2 s"]`` or ``["3", null]``; both ends have the same unit.

    The unit is compared with that of the metric later. Raises ValueError.
    """
    return _parse(value, percent=False)


def parse_correlation(value: object) -> ClaimedRange:
    """Parse a claimed coefficient of correlation: a number or two, from -1 to 1. Raises ValueError."""
    claimed = _parse(value, percent=False)
    ends = (claimed.number, claimed.low, claimed.high) if claimed.number is None else (claimed.number,)
    if claimed.unit or any(end is not None and abs(end) > 1 for end in ends):
        raise ValueError(f"correlation {show(value)}: numbers from -1 to 1 are needed, without unit")
    _refuse_all_of(claimed, -1, 1)
    return claimed


def _refuse_all_of(claimed: ClaimedRange, low: float, high: float = math.inf) -> None:
    """Raise ValueError if a range contains all possible numbers, from ``low`` to ``high``."""
    if claimed.number is None and _low(claimed) <= low and (math.inf if claimed.high is None else claimed.high) >= high:
        raise ValueError("the range contains all possible numbers, so that the claim cannot be wrong")


def _low(claimed: ClaimedRange) -> float:
    return -math.inf if claimed.low is None else claimed.low


def _parse(value: object, *, percent: bool) -> ClaimedRange:
    if not isinstance(value, list):
        number, unit = _end(value, percent=percent)
        half = Decimal(1).scaleb(int(number.as_tuple().exponent)) / 2
        return ClaimedRange(float(number - half), float(number + half), unit, float(number))
    if len(value) != 2:
        raise ValueError(f"found {len(value)} numbers: one is needed, or two ends, like {_EXAMPLE[percent]}")
    ends = [None if end is None else _end(end, percent=percent) for end in value]
    given = [end for end in ends if end is not None]
    if not given:
        raise ValueError("both ends are open: at least one number is needed")
    if len({unit for _, unit in given}) > 1:
        raise ValueError(f"the ends have different units: {' and '.join(unit or 'none' for _, unit in given)}")
    low, high = (None if end is None else float(end[0]) for end in ends)
    if low is not None and high is not None and low > high:
        first, last = (f"{number:g} {given[0][1]}".rstrip() for number in (low, high))
        raise ValueError(f"from {first} to {last}: the smaller one comes first")
    return ClaimedRange(low, high, given[0][1])


_EXAMPLE = {True: "[11 %, 49 %] or [21 %, null]", False: "[1 s, 2 s] or [3 ms, null]"}


def _end(value: object, *, percent: bool) -> tuple[Decimal, str]:
    readable = isinstance(value, str | int | float) and not isinstance(value, bool)
    match = _NUMBER.fullmatch(str(value).strip()) if readable else None
    if match is None:
        raise ValueError(f"found {show(value)}: a number with a unit is needed, like {_EXAMPLE[percent]}")
    unit = match["unit"] or ""
    if percent and unit != "%":
        raise ValueError(f"percentage {show(value)}: a number needs a unit: %")
    return Decimal(match["number"]), unit


def claimed_text(claimed: ClaimedRange) -> str | list[str | None]:
    """Return a claimed range in the form of an experiment file."""
    if claimed.word is not None:
        return claimed.word
    if claimed.number is not None:
        return f"{claimed.number:g} {claimed.unit}".rstrip()
    return [None if end is None else f"{end:g} {claimed.unit}".rstrip() for end in (claimed.low, claimed.high)]


_TEXT = {"type": "string", "pattern": _NUMBER_PATTERN}
_NUMERIC = {"type": "number"}


def _schema(example: object, *words: ClaimWord, plain: bool = False) -> WithJsonSchema:
    """Return the schema of a range; ``plain``: numbers without unit are allowed."""
    end = [_TEXT, _NUMERIC] if plain else [_TEXT]
    ends = {"type": "array", "items": {"anyOf": [*end, {"type": "null"}]}, "minItems": 2, "maxItems": 2}
    options = [*end, ends, *([{"enum": list(words)}] if words else [])]
    return WithJsonSchema({"anyOf": options, "examples": [example]})


_AS_TEXT = PlainSerializer(lambda claimed: claimed and claimed_text(claimed), when_used="json")
Gain = Annotated[ClaimedRange, BeforeValidator(parse_gain), _AS_TEXT, _schema(["11 %", "49 %"], "better", "worse")]
Change = Annotated[ClaimedRange, BeforeValidator(parse_change), _AS_TEXT, _schema(["10 %", None], "rising", "falling")]
ClaimedValue = Annotated[ClaimedRange, BeforeValidator(parse_value_range), _AS_TEXT, _schema("12 ms", plain=True)]
ClaimedShare = Annotated[ClaimedRange, BeforeValidator(parse_share), _AS_TEXT, _schema("62.2 %")]
Coefficient = Annotated[ClaimedRange, BeforeValidator(parse_correlation), _AS_TEXT, _schema([0.5, 1], plain=True)]


def _check_pattern(pattern: str, key: str, needed: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, str) and value and not re.fullmatch(pattern, value):
            raise ValueError(f"{key} {show(value)}: {needed}")
        return value

    return BeforeValidator(check)


class TrendFile(FileModel):
    """A trend over link conditions, or over the values of a label: exactly one of change, flat and crossover."""

    change: Change | None = Field(
        None,
        description="Change of the metric from the first to the last point by the straight line through the points, "
        "relative to the first point: [10 %, null]; without a number: rising, falling.",
    )
    flat: Annotated[Percent, Field(gt=0)] | None = Field(
        None, description="Margin within which that change stays, in both directions."
    )
    crossover: ClaimedValue | None = Field(
        None, description="Position at which 'transport' stops being better than 'against', in the numbers of 'at'."
    )
    along: str = Field(
        LINKS,
        min_length=1,
        description="'links': the points are the claim's link conditions, in their order; otherwise the name of the "
        "label whose values are the points, sorted by value.",
    )
    at: tuple[float, ...] = Field(
        (),
        description="Position of each point: of the claim's link conditions, or of the values of the label, which "
        "'labels' must give; default: 0, 1, 2, …",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [key for key in ("change", "flat", "crossover") if getattr(self, key) is not None]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "empty"
            raise ValueError(f"{found}: exactly one of 'change', 'flat' and 'crossover' is needed")
        if any(later <= earlier for earlier, later in zip(self.at, self.at[1:], strict=False)):
            raise ValueError("'at': each position must be larger than the one before")
        if self.crossover is not None and self.crossover.unit:
            raise ValueError("'crossover' is in the numbers of 'at', without unit")
        return self


class CorrelationFile(FileModel):
    """Correlation of the claim's metric with another metric, over the cells of one or several transports."""

    metric: str = Field(min_length=1, description="Name of the other metric.")
    r: Coefficient = Field(description="Pearson's coefficient: a number, or its smallest and largest value.")
    transports: tuple[str, ...] = Field(
        (),
        description="Labels of further transports whose cells count, such as the same one with other options.",
    )


class ClaimFile(FileModel):
    """A paper's claim, which the report compares with the measured values.

    It has exactly one kind: the key `gain`, `no_difference`, `value`, `share`, `trend` or `correlation`. A range is one
    number, with a tolerance of 10 % (docs/claims.md), or two ends of which one may be open (null).
    """

    text: str = Field(min_length=1, description="The claim, in words.")
    source: str = Field("", description="Paper, and place of the claim in it.")
    figure: Annotated[
        str,
        _check_pattern(_FIGURE, "figure", "a figure, table or section is needed, like 'nikravesh2016-fig17'"),
        Field(json_schema_extra={"pattern": f"^({_FIGURE})?$"}),
    ] = Field("", description="Figure, table or section that the claim is of: nikravesh2016-fig17, -table4, -sec3.2-a.")
    range: Annotated[
        str,
        _check_pattern(_WIDTH, "range", "'paper' is needed, or 'ours: ' and the reason"),
        Field(json_schema_extra={"pattern": f"^({_WIDTH})?$"}),
    ] = Field("", description="Source of the width of the range: 'paper', or 'ours: ' and the reason.")
    metric: str = Field("", description="Name of the metric.")
    transport: str = Field("", description="Label of the transport that the claim is about.")
    gain: Gain | None = Field(
        None,
        description="Improvement over the best of 'against', relative to its value; negative: it is worse. Of a metric "
        "without a better side: the increase. Without a number: better, worse.",
    )
    no_difference: Annotated[Percent, Field(gt=0)] | None = Field(
        None, description="Margin of an equivalence with the best of 'against', relative to its value."
    )
    value: ClaimedValue | None = Field(
        None,
        description="Value of the metric, with its unit. With 'against': relative difference of pairs, in percent.",
    )
    share: ClaimedShare | None = Field(
        None,
        description="Value of a metric in percent of a whole. With 'against': share of the pairs in which 'transport' "
        "is better.",
    )
    trend: TrendFile | None = Field(None, description="Trend over link conditions, or over the values of a label.")
    correlation: CorrelationFile | None = Field(None, description="Correlation with another metric.")
    against: tuple[str, ...] = Field(
        (),
        description="Labels of the transports that it is compared with; the best of them counts. With 'value' or "
        "'share': the transport whose cell of the same block forms the pair.",
    )
    against_link: str = Field(
        "",
        description="Link condition of the other transports, if it differs. The transports can then be the same.",
    )
    against_scenario: str = Field(
        "",
        description="Label of the scenario of the other transports, if it differs. The transports can then be the "
        "same.",
    )
    scenarios: tuple[str, ...] = Field((), description="Labels of the scenarios that it is about; all by default.")
    links: tuple[str, ...] = Field(
        (), description="Link conditions that it is about, all by default; * and ? are wildcards."
    )
    labels: dict[str, tuple[str, ...]] = Field(
        {}, description="Labels of the values that it is about: {size: [1 MB]}; all by default."
    )
    pooled_labels: tuple[str, ...] = Field(
        (), description="Labels whose values are pooled within each cell: [site]; the others have a verdict each."
    )
    statistic: ClaimStatistic = Field(
        "median",
        description="median: of the cells' medians; mean: of the cells' means; pooled: median of the values of all "
        "repetitions within all cells, in which the cell is the block of the bootstrap.",
    )
    groups: Literal["most", "all"] = Field(
        "most", description='Groups that must agree: most, or all ("always", "never").'
    )
    not_measurable: str = Field("", description="Reason why this lab cannot measure it.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    @property
    def kinds(self) -> list[ClaimKind]:
        """Keys of kinds that the file gives."""
        return [kind for kind in KINDS if getattr(self, kind) is not None]

    def _problems(self) -> Iterator[str]:
        if len(self.kinds) > 1 or not (self.kinds or self.not_measurable):
            found = f"found {' and '.join(self.kinds)}" if self.kinds else "it has no kind"
            yield f"{found}: exactly one of {', '.join(KINDS)} is needed"
        if not self.not_measurable:
            yield from (f"key '{key}' is missing" for key in ("metric", "transport") if not getattr(self, key))
        compares = self.gain is not None or self.no_difference is not None
        crosses = self.trend is not None and self.trend.crossover is not None
        if compares or crosses:
            if not self.against:
                yield "'against' is missing: at least one transport"
        elif self.against and (self.value is not None or self.share is not None):
            yield from self._problems_of_pairs()
        elif self.against or self.against_link or self.against_scenario:
            yield "'against' is only for gain, no_difference, value, share and crossover"
        if len(set(self.against)) < len(self.against):
            yield "'against' names a transport twice"
        counted = (self.transport, *(self.correlation.transports if self.correlation is not None else ()))
        if len(set(counted)) < len(counted):
            yield "'correlation' counts a transport twice"
        if self.transport in self.against and not (self.against_link or self.against_scenario):
            yield (
                "'against' names the claim's own transport: that needs 'against_link' or 'against_scenario', another "
                "condition"
            )
        if crosses and self.against_link:
            yield "'against_link' cannot be used with a crossover"
        if (
            self.trend is not None
            and self.trend.along == LINKS
            and len(self.links) == 1
            and not _WILD & {*self.links[0]}
        ):
            yield "a trend along links needs two link conditions or more"

    def _problems_of_pairs(self) -> Iterator[str]:
        if len(self.against) > 1 or self.against_link or self.against_scenario:
            yield "pairs need one transport in 'against', and neither 'against_link' nor 'against_scenario'"
        if self.value is None:
            return
        if self.value.unit != "%":
            yield f"with 'against', 'value' is a relative difference in percent, not in {self.value.unit or 'no unit'}"
        if (_low(self.value) if self.value.number is None else self.value.number) < 0:
            yield "a relative difference of pairs has no sign: 'value' must be 0 % or more"
        _refuse_all_of(self.value, 0)


def links_of(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the link conditions that match patterns: in the order of the patterns, then of ``known``."""
    return list(dict.fromkeys(name for pattern in patterns for name in known if fnmatchcase(name, pattern)))


def claim_of(file: ClaimFile, links: Sequence[str], place: str) -> Claim:
    """Return a claim in the form that manifest.json has.

    Args:
        file: the claim, checked.
        links: names of the experiment's link conditions.
        place: file and line of the claim.
    """
    kind = file.kinds[0] if file.kinds else "value"
    trend = None
    claimed: ClaimedRange | None = None
    if file.no_difference is not None:
        claimed = _margin(file.no_difference)
    elif file.trend is not None:
        form = next(form for form in get_args(TrendForm) if getattr(file.trend, form) is not None)
        trend = Trend(form, file.trend.along, file.trend.at)
        claimed = _margin(file.trend.flat) if file.trend.flat is not None else file.trend.change or file.trend.crossover
    elif file.correlation is not None:
        claimed = file.correlation.r
    elif file.kinds:
        claimed = getattr(file, kind)
    return Claim(
        text=file.text,
        source=file.source,
        figure=file.figure,
        width=file.range,
        metric=file.metric,
        transport=file.transport,
        kind=kind,
        claimed=claimed,
        trend=trend,
        other_metric=file.correlation.metric if file.correlation is not None else "",
        other_transports=file.correlation.transports if file.correlation is not None else (),
        against=file.against,
        against_link=file.against_link,
        against_scenario=file.against_scenario,
        scenarios=file.scenarios,
        links=tuple(links_of(file.links, links)),
        labels=file.labels,
        pooled_labels=file.pooled_labels,
        statistic=file.statistic,
        groups=file.groups,
        not_measurable=file.not_measurable,
        place=place,
    )


def _margin(percent: float) -> ClaimedRange:
    return ClaimedRange(-percent, percent)
