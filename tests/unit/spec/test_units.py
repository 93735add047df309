"""Quantities are read with their unit, and only with it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from mplab.format import units
from mplab.format.units import DurationMs, DurationS, Percent, RateKbps, SizeBytes


class Example(BaseModel):
    rate: RateKbps
    pause: DurationS
    rtt: DurationMs
    size: SizeBytes
    loss: Percent


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate_kbps, "7040 kbit/s", 7040.0),
        (units.parse_rate_kbps, "1.5 Mbit/s", 1500.0),
        (units.parse_rate_kbps, "1 Gbit/s", 1_000_000.0),
        (units.parse_rate_kbps, "  20kbit/s ", 20.0),
        (units.parse_duration_s, "30 s", 30.0),
        (units.parse_duration_s, "50 ms", 0.05),
        (units.parse_duration_s, "2 min", 120.0),
        (units.parse_duration_s, "1 h", 3600.0),
        (units.parse_duration_s, "0 s", 0.0),
        (units.parse_duration_ms, "1.5 s", 1500.0),
        (units.parse_duration_ms, "0.1 ms", 0.1),
        (units.parse_size_bytes, "10 kB", 10_000),
        (units.parse_size_bytes, "1 MB", 1_000_000),
        (units.parse_size_bytes, "64 KiB", 65_536),
        (units.parse_size_bytes, "0 B", 0),
        (units.parse_size_bytes, "1.5 kB", 1500),
        (units.parse_percent, "10 %", 10.0),
        (units.parse_percent, "100%", 100.0),
        (units.parse_percent, "0.5 %", 0.5),
    ],
)
def test_reads_number_and_unit(parse: Callable[[object], float], text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "found", "message"),
    [
        (units.parse_rate_kbps, 7040, "rate '7040': a number needs a unit: kbit/s, Mbit/s, Gbit/s"),
        (units.parse_rate_kbps, "7040", "rate '7040': a number needs a unit: kbit/s, Mbit/s, Gbit/s"),
        (units.parse_rate_kbps, "7 Mbps", "Did you mean 'Mbit/s'?"),
        (units.parse_rate_kbps, "7 mbit/s", "Did you mean 'Mbit/s'?"),
        (units.parse_rate_kbps, "7 s", "unknown unit 's'. Allowed: kbit/s, Mbit/s, Gbit/s"),
        (units.parse_rate_kbps, "0 kbit/s", "must be more than 0"),
        (units.parse_rate_kbps, "101 Gbit/s", "must be at most 100 Gbit/s"),
        (units.parse_duration_s, "5 minutes", "Did you mean 'min'?"),
        (units.parse_duration_s, "-5 s", "must not be negative"),
        (units.parse_duration_s, "٣ s", "a number with a unit is needed"),
        (units.parse_duration_s, "1e3 s", "unknown unit 'e3 s'"),
        (units.parse_duration_s, True, "a number with a unit is needed"),
        (units.parse_duration_s, None, "a number with a unit is needed"),
        (units.parse_duration_s, "9" * 400 + " s", "must be at most 2592000 s"),
        (units.parse_size_bytes, "0.3 B", "not a whole number of bytes"),
        (units.parse_size_bytes, "1 Kb", "Did you mean 'kB'?"),
        (units.parse_percent, "101 %", "must be at most 100 %"),
        (units.parse_percent, "10 percent", "Did you mean '%'?"),
    ],
)
def test_refusal_says_what_was_found_and_what_is_allowed(
    parse: Callable[[object], float], found: object, message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is what is tested
        parse(found)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (units.format_rate(7040.0), "7.04 Mbit/s"),
        (units.format_rate(20.0), "20 kbit/s"),
        (units.format_rate(1234.5678), "1234.5678 kbit/s"),
        (units.format_duration_s(0.05), "50 ms"),
        (units.format_duration_s(120.0), "120 s"),
        (units.format_duration_s(0.0), "0 s"),
        (units.format_duration_ms(50.0), "50 ms"),
        (units.format_duration_ms(1e-7), "0.0000001 ms"),
        (units.format_age_s(units.parse_age_s("30 d")), "30 d"),
        (units.format_age_s(43200.0), "12 h"),
        (units.format_size(150_000), "150 kB"),
        (units.format_size(1_000_000), "1 MB"),
        (units.format_size(0), "0 B"),
        (units.format_size(1514), "1.514 kB"),
        (units.format_percent(12.5), "12.5 %"),
    ],
)
def test_writes_the_largest_unit_that_stays_short(text: str, written: str) -> None:
    assert text == written


@given(st.floats(min_value=1e-6, max_value=1e8))
def test_rates_survive_writing_and_reading(rate_kbps: float) -> None:
    assert units.parse_rate_kbps(units.format_rate(rate_kbps)) == rate_kbps


@given(st.floats(min_value=0, max_value=1e6))
def test_durations_survive_writing_and_reading(duration_s: float) -> None:
    assert units.parse_duration_s(units.format_duration_s(duration_s)) == duration_s
    assert units.parse_duration_ms(units.format_duration_ms(duration_s)) == duration_s


@given(st.integers(min_value=0, max_value=10**12))
def test_sizes_survive_writing_and_reading(size_bytes: int) -> None:
    assert units.parse_size_bytes(units.format_size(size_bytes)) == size_bytes


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(st.integers()))
def test_anything_is_read_or_refused_in_words(found: object) -> None:
    for parse in (units.parse_rate_kbps, units.parse_duration_s, units.parse_size_bytes, units.parse_percent):
        try:
            value = parse(found)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017 - refusing is right as well
        else:
            assert value >= 0


@pytest.mark.parametrize(
    ("text", "label"),
    [("128 KiB", "131.072 kB"), ("1 MB", "1 MB"), ("1000 kB", "1 MB"), ("10 s", "10 s"), ("10/s", "10/s")],
)
def test_a_size_has_one_label(text: str, label: str) -> None:
    assert units.size_label(text) == label


def test_models_are_written_as_they_are_read() -> None:
    given_text = {"rate": "1.5 Mbit/s", "pause": "50 ms", "rtt": "50 ms", "size": "64 KiB", "loss": "2 %"}
    example = Example.model_validate(given_text)
    assert example.model_dump() == {"rate": 1500.0, "pause": 0.05, "rtt": 50.0, "size": 65_536, "loss": 2.0}
    assert Example.model_validate(example.model_dump(mode="json")) == example


def test_models_refuse_a_bare_number() -> None:
    with pytest.raises(ValidationError, match="size '3': a number needs a unit"):
        Example.model_validate({"rate": "1 Mbit/s", "pause": "1 s", "rtt": "1 ms", "size": 3, "loss": "2 %"})
