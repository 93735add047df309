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
        (0.00012, "0.00012"),
        (1e-12, "0"),
        (-0.0000567, "−0.000057"),
        (2.5e9, "2\N{NARROW NO-BREAK SPACE}500\N{NARROW NO-BREAK SPACE}000\N{NARROW NO-BREAK SPACE}000"),
        (-0.0, "0"),
        (-1.234e15, "−1.23\xa0×\xa010¹⁵"),
        (9.9999e299, "1.00\xa0×\xa010³⁰⁰"),
    ],
)
def test_number(value: float | None, expected: str) -> None:
    assert text.number(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(0.123, "12 %"), (-0.05, "−5.0 %"), (0.0004, "0 %")])
def test_percent(value: float, expected: str) -> None:
    assert text.percent(value).replace("\xa0", " ") == expected


@pytest.mark.parametrize(
    ("value", "sign", "expected"),
    [(0.1234, False, "12.3 %"), (-0.05, True, "−5.0 %"), (0.3, True, "+30.0 %"), (-0.0004, True, "0.0 %")],
)
def test_tenths(value: float, sign: bool, expected: str) -> None:
    assert text.tenths(value, sign=sign).replace("\xa0", " ") == expected


def test_rounding_keeps_a_value_apart_from_its_bounds() -> None:
    assert text.decimals_apart(30.0, 29.1, 31.2) == 1
    assert text.decimals_apart(0.94, 0.91, 1.2) == 2
    assert text.decimals_apart(0.9, 0.9, 1.2) == 1, "equal ones need no more digits"


def test_a_long_count_is_a_power_of_ten() -> None:
    assert text.Scale("").text(3e20) == "3.00\xa0×\xa010²⁰"


def test_times_are_in_milliseconds_if_all_are_short() -> None:
    assert text.scale_of("s", [0.074, 0.124]).text(0.124).replace("\xa0", " ") == "124 ms"
    assert text.scale_of("s", [0.82, 1.18]).text(0.82).replace("\xa0", " ") == "0.820 s"
    assert text.scale_of("Mbit/s", [0.5]).text(0.5).replace("\xa0", " ") == "0.500 Mbit/s"
    assert text.scale_of("", [3.0]).text(3.0) == "3"
    assert text.scale_of("s", [0.01]).signed(0.0028).replace("\xa0", " ") == "+2.80 ms"


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
