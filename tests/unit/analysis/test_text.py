"""Printed forms of numbers and words."""

import pytest

from mplab.analysis import text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.1234, "0.123"),
        (1.234, "1.23"),
        (-12.34, "−12.3"),
        (1234.5, "1\N{NARROW NO-BREAK SPACE}234"),
        (0.00012, "1.20e-04"),
        (-0.0, "0"),
    ],
)
def test_number(value: float | None, expected: str) -> None:
    assert text.number(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(0.123, "12 %"), (-0.05, "−5.0 %"), (0.0004, "0 %")])
def test_percent(value: float, expected: str) -> None:
    assert text.percent(value).replace("\xa0", " ") == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(4.21, "4.2 s"), (725, "12 min 5 s"), (11520, "3 h 12 min"), (None, "–")]
)
def test_duration(seconds: float | None, expected: str) -> None:
    assert text.duration(seconds) == expected


def test_words() -> None:
    assert text.listed([]) == ""
    assert text.listed(["a"]) == "a"
    assert text.listed(["a", "b", "c"]) == "a, b and c"
    assert text.slug("Web H2", "", "baseline/1") == "web-h2-baseline-1"
    assert text.plural(1, "cell") == "1 cell"
    assert text.signed(0.5) == "+0.500"
