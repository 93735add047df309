"""Sweeps: link conditions that differ in some keys, as in ``sweep: {lte: {rtt: 50..500 ms step 50 ms}}``."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Self, get_args

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from mplab.base.suggest import describe, show
from mplab.format.direction import UNLIMITED, WAYS, Distribution, Middlebox
from mplab.format.names import MAPPING, TEXT, FileModel
from mplab.format.trace import parse_trace_name
from mplab.format.units import parse_duration_ms, parse_percent, parse_rate_kbps
from mplab.userfiles.links.pathfile import parse_queue
from mplab.userfiles.strict.inherit import PATHS

MOST = 1000
"""Maximum number of conditions of one sweep."""

_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?"
_UNIT = r"[^\s0-9.][^\s.]*"
_RANGE = re.compile(
    rf"\s*({_NUMBER})\s*({_UNIT})?\s*\.\.\s*({_NUMBER})\s*({_UNIT})?\s+step\s+({_NUMBER})\s*({_UNIT})?\s*", re.ASCII
)
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*({_UNIT})\s*", re.ASCII)
_TITLES = {"wifi": "WiFi", "lte": "LTE"}


@dataclass(frozen=True)
class SweepValue:
    """One value of a sweep: its text in a file, its number, and its unit ("" for words)."""

    text: str
    number: str = ""
    unit: str = ""


def _values(check: Callable[[object], object]) -> Callable[[object], tuple[SweepValue, ...]]:
    """Return a validator that parses a range, or a list of values and ranges, into sweep values.

    `check` raises ValueError for a wrong value.
    """

    def parse(raw: object) -> tuple[SweepValue, ...]:
        entries = raw if isinstance(raw, list) else [raw]
        values = tuple(value for entry in entries for value in _entry(entry, check))
        texts = [value.text for value in values]
        twice = next((text for text in texts if texts.count(text) > 1), None)
        if twice is not None:
            raise ValueError(f"{show(twice)} is there twice")
        if not values:
            raise ValueError("found an empty list: at least one value is needed")
        return values

    return parse


def _entry(entry: object, check: Callable[[object], object]) -> Iterator[SweepValue]:
    if not isinstance(entry, str):
        raise ValueError(  # noqa: TRY004 - pydantic takes this one for a message
            f"found {describe(entry)}: values like '50 ms', or a range like '50..500 ms step 50 ms', are needed"
        )
    if ".." in entry:
        values: Iterator[SweepValue] = iter(_range(entry))
    elif match := _QUANTITY.fullmatch(entry):
        values = iter([SweepValue(f"{match[1]} {match[2]}", match[1], match[2])])
    else:
        values = iter([SweepValue(entry.strip())])
    for value in values:
        check(value.text)
        yield value


def _range(text: str) -> list[SweepValue]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"range {show(text)}: must be like '50..500 ms step 50 ms'")
    units = {unit for unit in match.group(2, 4, 6) if unit}
    if len(units) != 1:
        units_text = f"found {' and '.join(sorted(units))}" if units else "like '50..500 ms step 50 ms'"
        raise ValueError(f"range {show(text)}: one unit for all its numbers is needed, {units_text}")
    (unit,) = units
    first, last, step = (Decimal(match[group]) for group in (1, 3, 5))
    if step <= 0 or last < first:
        raise ValueError(f"range {show(text)}: must go up, by a step of more than 0")
    count = (last - first) / step
    if count != int(count):
        reached = first + int(count) * step
        raise ValueError(f"range {show(text)}: does not reach its end: {reached:f} {unit} would be the last one")
    if count >= MOST:
        raise ValueError(f"range {show(text)}: {int(count) + 1} values, at most {MOST} are allowed")
    numbers = [f"{first + index * step:f}" for index in range(int(count) + 1)]
    return [SweepValue(f"{number} {unit}", number, unit) for number in map(_plain, numbers)]


def _plain(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _rate(value: object) -> object:
    return None if value == UNLIMITED else parse_rate_kbps(value)


def _distribution(value: object) -> object:
    if value not in get_args(Distribution):
        raise ValueError(f"found {describe(value)}. Allowed: {', '.join(get_args(Distribution))}")
    return value


def _middlebox(value: object) -> object:
    if value not in get_args(Middlebox):
        raise ValueError(f"found {describe(value)}. Allowed: {', '.join(get_args(Middlebox))}")
    return value


def _schema(example: str) -> WithJsonSchema:
    text = {"type": "string", "examples": [example]}
    return WithJsonSchema({"anyOf": [text, {"type": "array", "minItems": 1, "items": text}]})


Durations = Annotated[
    tuple[SweepValue, ...], BeforeValidator(_values(parse_duration_ms)), _schema("50..500 ms step 50 ms")
]
Percents = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(parse_percent)), _schema("0.5..10 % step 0.5 %")]
Rates = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(_rate)), _schema("1..10 Mbit/s step 1 Mbit/s")]
Queues = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(parse_queue)), _schema("100 packets")]
Traces = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(parse_trace_name)), _schema("Some-LTE.down")]
Middleboxes = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(_middlebox)), _schema("strip-mptcp")]
Distributions = Annotated[tuple[SweepValue, ...], BeforeValidator(_values(_distribution)), _schema("normal")]


def _kind(value: object) -> str:
    return MAPPING if isinstance(value, dict | BaseModel) else TEXT


class SweptDirection(FileModel):
    """Swept keys of one direction of a path, with their values."""

    rate: Rates = ()
    delay: Durations = ()
    jitter: Durations = ()
    distribution: Distributions = ()
    loss: Percents = ()
    reorder: Percents = ()
    duplicate: Percents = ()
    queue: Queues = ()
    trace: Traces = ()


SweptWay = Annotated[
    Annotated[Rates, Tag(TEXT)] | Annotated[SweptDirection, Tag(MAPPING)],
    Discriminator(_kind),
]


class SweptPath(FileModel):
    """Swept keys of one path, or of both paths together, with their values."""

    down: SweptWay = ()
    up: SweptWay = ()
    rtt: Durations = ()
    loss: Percents = ()
    jitter: Durations = ()
    distribution: Distributions = ()
    reorder: Percents = ()
    duplicate: Percents = ()
    queue: Queues = ()
    middlebox: Middleboxes = ()


class SweepFile(SweptPath):
    """Swept keys: keys below ``wifi`` or ``lte`` vary one path; keys outside them vary both paths alike."""

    wifi: SweptPath = Field(default_factory=SweptPath)
    lte: SweptPath = Field(default_factory=SweptPath)
    core_rtt: Durations = ()

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        axes = list(_axes(self))
        if not axes:
            raise ValueError("varies nothing: like {lte: {rtt: 50..500 ms step 50 ms}} is needed")
        count = math.prod(len(axis.values) for axis in axes)
        if count > MOST:
            raise ValueError(f"{count} conditions: at most {MOST} are allowed")
        return self


@dataclass(frozen=True)
class _Axis:
    """One swept key: its path in ``sweep``, such as ``("lte", "down", "loss")``, and its values."""

    place: tuple[str, ...]
    values: tuple[SweepValue, ...]

    def names(self) -> list[str]:
        """Return each value in the form of a part of a condition's name: ``50``, ``0p5``.

        The parts have units if the units of the values differ.
        """
        alike = len({value.unit for value in self.values}) == 1
        return [_slug(value, with_unit=not alike) for value in self.values]

    def words(self, value: SweepValue) -> str:
        """Return the swept key and one of its values as text: ``LTE rtt 50 ms``."""
        return " ".join([*(_TITLES.get(part, part) for part in self.place), value.text])


def _slug(value: SweepValue, *, with_unit: bool) -> str:
    if not value.number:
        return re.sub(r"[^a-z0-9]+", "-", value.text.lower()).strip("-")
    unit = re.sub(r"[^a-z0-9]+", "", value.unit.lower().replace("%", "percent")) if with_unit else ""
    return _plain(value.number).lstrip("+").replace(".", "p") + unit


def _axes(model: BaseModel, place: tuple[str, ...] = ()) -> Iterator[_Axis]:
    for key in type(model).model_fields:
        if key not in model.model_fields_set:
            continue
        value = getattr(model, key)
        if isinstance(value, BaseModel):
            yield from _axes(value, (*place, key))
        else:
            yield _Axis((*place, key), value)


@dataclass(frozen=True)
class Variant:
    """One condition of a sweep.

    Attributes:
        suffix: end of the condition's name, after the sweep's name and a hyphen.
        words: values of the swept keys as text, for the condition's title.
        keys: swept keys with their values, as in a link file.
    """

    suffix: str
    words: str
    keys: Mapping[str, Any]


def variants(sweep: SweepFile) -> list[Variant]:
    """Return one condition for each combination of the swept keys' values; the last key varies fastest."""
    axes = list(_axes(sweep))
    conditions = []
    for chosen in itertools.product(*(zip(axis.values, axis.names(), strict=True) for axis in axes)):
        keys: dict[str, Any] = {}
        for axis, (value, _) in zip(axes, chosen, strict=True):
            for key_path in _places(axis.place):
                _put(keys, key_path, value.text)
        words = ", ".join(axis.words(value) for axis, (value, _) in zip(axes, chosen, strict=True))
        conditions.append(Variant("-".join(name for _, name in chosen), words, keys))
    return conditions


def _places(place: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the key paths in a link condition that are set by the swept key at the key path `place` of ``sweep``.

    A swept key outside ``wifi`` and ``lte`` sets the same key of both paths; ``core_rtt`` sets only ``core_rtt``.
    """
    return [place] if place[0] in {*PATHS, "core_rtt"} else [(path, *place) for path in PATHS]


def _put(keys: dict[str, Any], place: tuple[str, ...], text: str) -> None:
    *above, last = place
    for part in above:
        below = keys.setdefault(part, {})
        if not isinstance(below, dict):
            below = keys[part] = {"rate": below}
        keys = below
    if last in WAYS and isinstance(keys.get(last), dict):
        keys[last]["rate"] = text
    else:
        keys[last] = text
