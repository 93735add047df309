"""Packet-delivery traces: Mahimahi's format, and nothing else."""

from pathlib import Path

import pytest

from mplab.format.trace import Trace


def write(directory: Path, text: str) -> Trace:
    file = directory / "Some-LTE.down"
    file.write_text(text, encoding="utf-8")
    return Trace(file)


def test_a_trace_has_a_mean_rate(tmp_path: Path) -> None:
    trace = write(tmp_path, "0\n1\n\n1\n 10\n")
    trace.check()
    assert trace.times_ms() == (0, 1, 1, 10)
    assert (trace.profile().opportunities, trace.profile().lasts_ms) == (4, 10)
    assert trace.profile().mean_kbps == pytest.approx(4 * 1504 * 8 / 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2.5\n", ":2: found '2.5', a whole number of milliseconds is needed"),
        ("-1\n", ":1: found '-1'"),
        ("5\n4\n", ":2: 4 ms is before 5 ms: times must not go back"),
        ("", "the last line must be more than 0 ms"),
        ("0\n0\n", "the last line must be more than 0 ms"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        write(tmp_path, text).check()


def test_an_unknown_trace_suggests_one_that_exists(tmp_path: Path) -> None:
    write(tmp_path, "1\n")
    (tmp_path / "README.md").touch()
    (tmp_path / "Some-LTE.down.yaml").touch()
    with pytest.raises(ValueError, match=r"Did you mean 'Some-LTE\.down'\? Allowed: Some-LTE\.down \(files in "):
        Trace(tmp_path / "Some-LTE.up").check()
