"""Quantities that must have a unit: ``7040 kbit/s``, ``50 ms``, ``10 kB``, ``10 %``.

Each type is an annotated number for pydantic models. It parses text. It rejects a number without unit or with an
unknown unit; the message lists the allowed units. In JSON mode, the value is written as text, so that
``model_validate(model_dump(mode="json"))`` gives the same values::

    class Parameters(mplab.scenarios.base.Parameters):
        sizes: tuple[SizeBytes, ...] = (10_000, 1_000_000)   # defaults: numbers in the unit of the type
        pause: DurationS = 2.0

Add further bounds with ``Annotated[SizeBytes, Field(gt=0)]`` or, for an error message with units, with `between`:
``Annotated[DurationS, between("patience", 1, 60)]``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from mplab.base.suggest import did_you_mean, show

Number = TypeVar("Number", int, float)

_QUANTITY = re.compile(r"\s*(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[^\s0-9.](?:.*\S)?)?\s*", re.ASCII)


@dataclass(frozen=True)
class Quantity:
    """One kind of quantity, like a rate: its units with their sizes in the base unit, and its bounds."""

    kind: str
    units: Mapping[str, Decimal]
    base: str
    maximum: Decimal
    aliases: Mapping[str, str]
    """Common other spellings → the unit to suggest."""
    zero_allowed: bool = True
    hidden: frozenset[str] = frozenset()
    """Units that are parsed but not used for writing."""

    def parse(self, found: object) -> Decimal:
        """Return the value of `found`, text such as ``50 ms``, as a number in the base unit of this kind of quantity.

        Raises:
            ValueError: `found` is no number with a known unit, is negative or above the maximum, or is 0 where 0 is not
                allowed.
        """
        quantity = f"{self.kind} {show(found)}"
        allowed = ", ".join(self.units)
        readable = isinstance(found, str | int | float) and not isinstance(found, bool)
        match = _QUANTITY.fullmatch(str(found)) if readable else None
        if match is None:
            raise ValueError(f"{quantity}: a number with a unit is needed, like {self.example!r}; units: {allowed}")
        unit = match["unit"]
        if unit is None:
            raise ValueError(f"{quantity}: a number needs a unit: {allowed}")
        if unit not in self.units:
            near = self.aliases.get(unit.lower())
            hint = f" Did you mean {near!r}?" if near else did_you_mean(unit, self.units)
            raise ValueError(f"{quantity}: unknown unit {unit!r}.{hint} Allowed: {allowed}")
        value = Decimal(match["number"]) * self.units[unit]
        if value < 0:
            raise ValueError(f"{quantity}: must not be negative")
        if value == 0 and not self.zero_allowed:
            raise ValueError(f"{quantity}: must be more than 0")
        if value > self.maximum:
            raise ValueError(f"{quantity}: must be at most {self.format(float(self.maximum))}")
        return value

    def format(self, value: float) -> str:
        """Return text that `parse` reads as exactly `value`, in the largest unit that needs at most 3 decimals."""
        exact = Decimal(repr(value))
        writable = sorted(((size, unit) for unit, size in self.units.items() if unit not in self.hidden), reverse=True)
        for size, unit in writable:
            number = exact / size
            if number >= 1 and number == round(number, 3):
                return f"{_plain(number)} {unit}"
        return f"{_plain(exact / self.units[self.base])} {self.base}"

    @property
    def example(self) -> str:
        """Example of a value with its unit, for error messages: ``10 ms``."""
        return f"10 {self.base}"

    @property
    def units_text(self) -> str:
        """All units as text: ``ms, s, min, h``."""
        return ", ".join(self.units)

    @property
    def pattern(self) -> str:
        """Regular expression (ECMA 262) that matches a number with one of the units, for the JSON Schema."""
        units = "|".join(re.escape(unit).replace("/", r"\/") for unit in self.units)
        return rf"^\s*\+?[0-9]+(\.[0-9]+)?\s*({units})\s*$"


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_RATE = Quantity(
    "rate",
    {"kbit/s": Decimal(1), "Mbit/s": Decimal(1000), "Gbit/s": Decimal(1_000_000)},
    base="kbit/s",
    maximum=Decimal(100_000_000),
    aliases={
        **dict.fromkeys(("k", "kb", "kbps", "kbit", "kbits", "kb/s", "kbits/s", "kbit/sec"), "kbit/s"),
        **dict.fromkeys(("m", "mb", "mbps", "mbit", "mbits", "mb/s", "mbits/s", "mbit/sec", "mbit/s"), "Mbit/s"),
        **dict.fromkeys(("g", "gb", "gbps", "gbit", "gbits", "gb/s", "gbits/s", "gbit/sec", "gbit/s"), "Gbit/s"),
    },
    zero_allowed=False,
)
_DURATION_UNITS = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600)}
_DURATION_ALIASES = {
    **dict.fromkeys(("msec", "msecs", "millis", "milliseconds", "millisecond"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
}
_SECONDS = Quantity(
    "duration",
    _DURATION_UNITS,
    base="s",
    maximum=Decimal(30 * 86400),
    aliases=_DURATION_ALIASES,
    hidden=frozenset({"min", "h"}),
)
_MILLISECONDS = Quantity(
    "duration",
    {unit: size * 1000 for unit, size in _DURATION_UNITS.items()},
    base="ms",
    maximum=Decimal(30 * 86400 * 1000),
    aliases=_DURATION_ALIASES,
    hidden=frozenset({"s", "min", "h"}),
)
_AGE = Quantity(
    "age",
    {"min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)},
    base="d",
    maximum=Decimal(36500 * 86400),
    aliases={
        **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
        **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
        **dict.fromkeys(("day", "days"), "d"),
    },
    zero_allowed=False,
)
_SIZE = Quantity(
    "size",
    {
        "B": Decimal(1),
        "kB": Decimal(10**3),
        "MB": Decimal(10**6),
        "GB": Decimal(10**9),
        "TB": Decimal(10**12),
        "KiB": Decimal(2**10),
        "MiB": Decimal(2**20),
        "GiB": Decimal(2**30),
    },
    base="B",
    maximum=Decimal(10**12),
    aliases={
        **dict.fromkeys(("b", "byte", "bytes"), "B"),
        **dict.fromkeys(("k", "kb", "kbyte", "kbytes", "kilobyte", "kilobytes"), "kB"),
        **dict.fromkeys(("m", "mb", "mbyte", "mbytes", "megabyte", "megabytes"), "MB"),
        **dict.fromkeys(("g", "gb", "gbyte", "gbytes", "gigabyte", "gigabytes"), "GB"),
        **dict.fromkeys(("t", "tb", "tbyte", "tbytes", "terabyte", "terabytes"), "TB"),
        **dict.fromkeys(("ki", "kib"), "KiB"),
        **dict.fromkeys(("mi", "mib"), "MiB"),
        **dict.fromkeys(("gi", "gib"), "GiB"),
    },
    hidden=frozenset({"KiB", "MiB", "GiB"}),
)
_PERCENT = Quantity(
    "percentage",
    {"%": Decimal(1)},
    base="%",
    maximum=Decimal(100),
    aliases=dict.fromkeys(("percent", "pct", "per cent"), "%"),
)


def quantity_of(pattern: str) -> Quantity | None:
    """Return the kind of quantity whose JSON Schema has `pattern`; None: there is no such kind."""
    return next((q for q in (_RATE, _SECONDS, _AGE, _SIZE, _PERCENT) if q.pattern == pattern), None)


def parse_rate_kbps(value: object) -> float:
    """Parse a rate of more than 0: ``"1.5 Mbit/s"`` → 1500.0 kbit/s. Raises ValueError."""
    return float(_RATE.parse(value))


def parse_duration_s(value: object) -> float:
    """Parse a duration: ``"50 ms"`` → 0.05 s. Raises ValueError."""
    return float(_SECONDS.parse(value))


def parse_duration_ms(value: object) -> float:
    """Parse a duration: ``"50 ms"`` → 50.0 ms. Raises ValueError."""
    return float(_MILLISECONDS.parse(value))


def parse_age_s(value: object) -> float:
    """Parse an age of more than 0: ``"30 d"`` → 2592000.0 s. Raises ValueError."""
    return float(_AGE.parse(value))


def parse_size_bytes(value: object) -> int:
    """Parse a size in whole bytes: ``"64 KiB"`` → 65536 bytes. Raises ValueError."""
    size = _SIZE.parse(value)
    if size != int(size):
        raise ValueError(f"size {show(value)}: not a whole number of bytes")
    return int(size)


def parse_percent(value: object) -> float:
    """Parse a percentage from 0 to 100: ``"10 %"`` → 10.0. Raises ValueError."""
    return float(_PERCENT.parse(value))


def format_rate(rate_kbps: float) -> str:
    """Format a rate: 7040.0 kbit/s → ``"7.04 Mbit/s"``."""
    return _RATE.format(rate_kbps)


def format_duration_s(duration_s: float) -> str:
    """Format a duration: 0.05 s → ``"50 ms"``; 90.0 s → ``"90 s"``."""
    return _SECONDS.format(duration_s)


def format_duration_ms(duration_ms: float) -> str:
    """Format a duration: 50.0 ms → ``"50 ms"``."""
    return _MILLISECONDS.format(duration_ms)


def format_age_s(age_s: float) -> str:
    """Format an age: 2592000.0 s → ``"30 d"``."""
    return _AGE.format(age_s)


def format_size(size_bytes: int) -> str:
    """Format a size: 65536 bytes → ``"65.536 kB"``."""
    return _SIZE.format(size_bytes)


def size_label(text: str) -> str:
    """Return the value that a size has as a label: ``"128 KiB"`` → ``"131.072 kB"``; other text is not changed."""
    try:
        return format_size(parse_size_bytes(text))
    except ValueError:
        return text


LabelText = Annotated[str, AfterValidator(size_label)]
"""Value of a label, with the unit of a size as in results."""


def format_percent(percent: float) -> str:
    """Format a percentage: 10.0 → ``"10 %"``."""
    return _PERCENT.format(percent)


def _as_text(format_value: Callable[..., str]) -> PlainSerializer:
    return PlainSerializer(format_value, return_type=str, when_used="json")


def _schema(quantity: Quantity, examples: list[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": quantity.pattern, "examples": examples})


RateKbps = Annotated[
    float,
    BeforeValidator(parse_rate_kbps),
    _as_text(format_rate),
    _schema(_RATE, ["7040 kbit/s", "1.5 Mbit/s"]),
]
"""Rate, more than 0: float, kbit/s."""

DurationS = Annotated[
    float,
    BeforeValidator(parse_duration_s),
    _as_text(format_duration_s),
    _schema(_SECONDS, ["30 s", "50 ms", "2 min"]),
]
"""Duration, 0 or more: float, seconds."""

AgeS = Annotated[
    float,
    BeforeValidator(parse_age_s),
    _as_text(format_age_s),
    _schema(_AGE, ["30 d", "12 h"]),
]
"""Age, more than 0: float, seconds."""

DurationMs = Annotated[
    float,
    BeforeValidator(parse_duration_ms),
    _as_text(format_duration_ms),
    _schema(_MILLISECONDS, ["50 ms", "1.5 s"]),
]
"""Duration, 0 or more: float, milliseconds."""

SizeBytes = Annotated[
    int,
    BeforeValidator(parse_size_bytes),
    _as_text(format_size),
    _schema(_SIZE, ["10 kB", "1 MB", "64 KiB"]),
]
"""Size, 0 or more: int, bytes. k is 1000, Ki is 1024."""

Percent = Annotated[
    float,
    BeforeValidator(parse_percent),
    _as_text(format_percent),
    _schema(_PERCENT, ["10 %", "0.5 %"]),
]
"""Percentage, 0…100: float, percent."""


def between(
    key: str,
    least: float,
    most: float,
    rule: str = "from {least} to {most} is possible",
    *,
    write: Callable[..., str] = "{:g} s".format,
) -> AfterValidator:
    """Return a validator that rejects values less than `least` or more than `most`.

    Args:
        key: key of the value in the file, for the message.
        least: minimum, in the base unit of the type.
        most: maximum, in the base unit of the type.
        rule: text of the allowed range in the message; ``{least}`` and ``{most}`` stand for the formatted bounds.
        write: formats a value; default: as seconds.
    """

    def check(value: Number) -> Number:
        if not least <= value <= most:
            raise ValueError(f"{key} {write(value)}: {rule.format(least=write(least), most=write(most))}")
        return value

    return AfterValidator(check)
