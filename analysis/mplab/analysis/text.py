"""Format numbers and words for people."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose

MINUS = "\N{MINUS SIGN}"
HARD_SPACE = "\N{NO-BREAK SPACE}"
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"
DASH = "\N{EN DASH}"
LONG = 1e15
"""From this size on, a number is shown as a power of ten."""
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Terminal control characters, bidirectional controls and characters that XML forbids, except tab and line feed."""


def printable(text: str) -> str:
    """Return ``text`` with U+FFFD for each character of `UNPRINTABLE`."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def number(value: float | None) -> str:
    """Return a number as text: no decimals from 100 on, one from 10 on, two from 1 on, and three below 1.

    Below 0.001, the number has two significant digits; below 10⁻⁹, it becomes 0. From 10¹⁵ on, it is ``1.23 × 10¹⁵``.
    None becomes a dash.
    """
    if value is None:
        return DASH
    size = abs(value)
    if size < 1e-9:
        return "0"
    if size < 1e-3:
        text = f"{size:.{1 - math.floor(math.log10(size))}f}"
    elif size >= LONG:
        text = power_of_ten(size)
    elif size >= 100:
        text = f"{size:,.0f}".replace(",", THIN_SPACE)
    else:
        decimals = 1 if size >= 10 else 2 if size >= 1 else 3
        text = f"{size:.{decimals}f}"
    return (MINUS if value < 0 and float(re.sub(r"[^0-9.]", "", text)) else "") + text


def power_of_ten(size: float) -> str:
    """Return a positive number with three significant digits and a power of ten: ``1.23 × 10¹⁵``."""
    mantissa, _, exponent = f"{size:.2e}".partition("e")
    return f"{mantissa}{HARD_SPACE}×{HARD_SPACE}10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def quantity(value: float | None, unit: str) -> str:
    """Return a number with its unit as text (see `number`); a dash for None."""
    return f"{number(value)}{HARD_SPACE}{unit}".rstrip() if value is not None else DASH


@dataclass(frozen=True)
class Scale:
    """A unit in which numbers of one sentence or table cell are shown, and its size in the unit of the values."""

    unit: str
    factor: float = 1.0

    def number(self, value: float | None) -> str:
        """Return a value as text without its unit (see `number`)."""
        return number(value if value is None else value * self.factor)

    def text(self, value: float | None) -> str:
        """Return a value as text with its unit; a dash for None."""
        if value is not None and not self.unit and value == round(value) and abs(value) < LONG:
            return f"{value:.0f}"  # a count
        return quantity(value if value is None else value * self.factor, self.unit)

    def signed(self, value: float) -> str:
        """Return a value as text with its sign and unit; zero has no sign."""
        text = self.text(value)
        return f"+{text}" if value > 0 else text


def scale_of(unit: str, values: Iterable[float]) -> Scale:
    """Return the scale for values in ``unit``: milliseconds for times of which all are shorter than 1 s."""
    if unit == "s" and max((abs(value) for value in values), default=1.0) < 1:
        return Scale("ms", 1000.0)
    return Scale(unit)


def signed(value: float | None) -> str:
    """Return a number as text with a plus or minus sign; zero has no sign."""
    text = number(value)
    return f"+{text}" if value is not None and value > 0 else text


def spread(low: float, high: float) -> str:
    """Return the ends of an interval as text: ``−0.52 … −0.41``."""
    return f"{number(low)} … {number(high)}"


def signed_share(value: float) -> str:
    """Return a value of -1 … 1 as text with two decimals and a true minus sign; zero has no sign."""
    text = f"{value:.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


def p_text(p: float | None, prefix: str = "") -> str:
    """Return a p-value as text: ``0.031`` or ``< 0.001``; with the prefix ``p``, ``p = 0.031`` or ``p < 0.001``.

    None becomes a dash.
    """
    if p is None:
        return DASH
    sign = " = " if prefix else ""
    return f"{prefix}{sign}{p:.3f}" if p >= 0.001 else f"{prefix} < 0.001".strip()


def percent(fraction: float | None, *, sign: bool = False) -> str:
    """Return a fraction as a percentage: ``12 %`` for 0.123, and one decimal below 10 %; a dash for None.

    ``sign`` adds a plus sign to positive values.
    """
    if fraction is None:
        return DASH
    value = fraction * 100
    text = f"{abs(value):.0f}" if abs(value) >= 9.95 else f"{abs(value):.1f}"
    if float(text) == 0:
        return f"0{HARD_SPACE}%"
    mark = MINUS if value < 0 else "+" if sign else ""
    return f"{mark}{text}{HARD_SPACE}%"


def tenths(fraction: float | None, *, sign: bool = False) -> str:
    """Return a fraction as a percentage with one decimal: ``12.3 %`` for 0.123; a dash for None.

    ``sign`` adds a plus sign to positive values. Zero has no sign.
    """
    if fraction is None:
        return DASH
    text = f"{abs(fraction) * 100:.1f}"
    mark = "" if float(text) == 0 else MINUS if fraction < 0 else "+" if sign else ""
    return f"{mark}{text}{HARD_SPACE}%"


def decimals_apart(value: float, *bounds: float) -> int:
    """Return the number of decimals, 1 to 3, with which ``value`` is shown to differ from its bounds, unless equal."""
    for decimals in (1, 2):
        if all(isclose(bound, value) or round(bound, decimals) != round(value, decimals) for bound in bounds):
            return decimals
    return 3


def duration(seconds: float | None) -> str:
    """Return a duration as text: ``3 h 12 min``, ``12 min 5 s`` or ``4.2 s``; a dash for None."""
    if seconds is None:
        return DASH
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def data(size_bytes: float) -> str:
    """Return a size in bytes as text with a decimal prefix: ``1.23 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 999.5 or unit == "GB":
            break
        size_bytes /= 1000
    return f"{number(size_bytes)} {unit}"


def slug(*parts: str) -> str:
    """Join ``parts`` to the stem of a file name, which has only lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(part for part in parts if part).lower()).strip("-")


def plural(count: int, word: str) -> str:
    """Return a number with its noun in the singular or plural: ``1 cell``, ``2 cells``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def listed(words: list[str]) -> str:
    """Join words to a list in a sentence: ``a``, ``a and b`` or ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
