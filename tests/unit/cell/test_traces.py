"""The decoder of a cell's captures: its errors fail the cell."""

from pathlib import Path

import pytest

from mplab.base.errors import DeviceError
from mplab.cell import instruments
from mplab.cell.instruments import read_trace


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exec sleep 60", "did not read the phone's captures within 0.2 s"),
        ("echo cut >&2; exit 1", "cannot read the phone's captures .*exit code 1.*: cut"),
    ],
)
def test_a_decoder_that_fails(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "mptrace"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("MPLAB_MPTRACE", str(program))
    monkeypatch.setattr(instruments, "_MPTRACE_TIMEOUT_S", 0.2 if "sleep" in script else 30.0)
    with pytest.raises(DeviceError, match=message):
        read_trace([tmp_path / "phone-wlan0.pcapng"])
