"""Format the numbers of comparisons and trends: one unit and one number of decimals for all values of a metric."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mplab.analysis.statistics.effects import Interval
from mplab.analysis.text import DASH, HARD_SPACE, MINUS, THIN_SPACE

_DIGITS = 3
"""Minimum number of significant digits of the smallest value, if `_MOST_DECIMALS` suffice."""

_MOST_DECIMALS = 3


def change_percent(fraction: float | None, *, unit: bool = True) -> str:
    """Return a change as a signed percentage with one decimal: ``+13.2 %``; a dash for None. Zero has no sign."""
    if fraction is None:
        return DASH
    text = f"{abs(fraction) * 100:,.1f}".replace(",", THIN_SPACE)
    mark = "" if float(text.replace(THIN_SPACE, "")) == 0 else MINUS if fraction < 0 else "+"
    return f"{mark}{text}{HARD_SPACE}%" if unit else f"{mark}{text}"


def interval_percent(interval: Interval | None) -> str:
    """Return the ends of an interval of changes: ``+8.1 to +19.4 %``; "" for None."""
    if interval is None:
        return ""
    return f"{change_percent(interval.low, unit=False)} to {change_percent(interval.high)}"


@dataclass(frozen=True)
class Amounts:
    """The way in which all values of a metric are shown: ``unit``, and values multiplied by ``factor``.

    Durations below a second are shown in ms. No value has an exponent.
    """

    unit: str
    factor: float
    decimals: int

    def text(self, value: float | None, *, sign: bool = False) -> str:
        """Return a value without its unit: ``0.82``; a dash for None."""
        if value is None:
            return DASH
        text = f"{abs(value) * self.factor:,.{self.decimals}f}".replace(",", THIN_SPACE)
        zero = float(text.replace(THIN_SPACE, "")) == 0
        return ("" if zero else MINUS if value < 0 else "+" if sign else "") + text

    def with_unit(self, value: float | None, *, sign: bool = False) -> str:
        """Return a value with its unit: ``820 ms``; a dash for None."""
        text = self.text(value, sign=sign)
        return text if value is None or not self.unit else f"{text}{HARD_SPACE}{self.unit}"


def amounts(values: Iterable[float | None], unit: str) -> Amounts:
    """Return the way in which ``values`` in ``unit`` are shown."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    factor = 1.0
    if unit == "s" and sizes and max(sizes) < 1:
        unit, factor = "ms", 1000.0
    power = math.floor(math.log10(min(sizes) * factor)) if sizes else _DIGITS - 1
    return Amounts(unit, factor, min(_MOST_DECIMALS, max(0, _DIGITS - 1 - power)))
