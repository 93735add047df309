"""Errors on a terminal and in files."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from mplab.base import logs
from mplab.base.errors import DeviceError
from mplab.base.places import ROOT
from mplab.base.undo import UndoStack


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = structlog.get_config()
    logs.configure(for_people=True)
    yield
    structlog.configure(**before)


def fail(error: Exception) -> None:
    key = "s3cr3t"
    assert key
    raise error


def undo(error: Exception) -> None:
    stack = UndoStack()
    stack.register("router wifi: as it was found", lambda: fail(error))
    stack.undo_all()


def test_an_expected_error_of_an_undo_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    undo(DeviceError("router wifi", "lost while shaping"))
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "mplab: undo failed: step: router wifi: as it was found; error: router wifi: lost while shaping\n",
    )
    assert not logs.traceback_file().exists()


def test_an_unexpected_one_leaves_its_traceback_without_variables_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    undo(ValueError("no such thing"))
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(logs.traceback_file()) in err
    traceback = logs.traceback_file().read_text()
    assert "ValueError: no such thing" in traceback
    assert "in fail" in traceback
    assert "s3cr3t" not in traceback + err


def test_the_file_of_tracebacks_begins_again_at_1_mb() -> None:
    logs.traceback_file().parent.mkdir()
    logs.traceback_file().write_bytes(b"x" * 1_100_000)
    logs.keep_traceback(ValueError("one"))
    assert logs.traceback_file().stat().st_size < 1000


def test_a_command_that_meets_a_defect_says_where_the_traceback_is() -> None:
    script = (
        "import sys; sys.argv = ['mplab', 'transports']\n"
        "from mplab.cli import main\n"
        "main.app = lambda **_: {}['missing']\n"
        "main.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr == f"mplab: unexpected error: KeyError: 'missing'. Report it with {logs.traceback_file()}\n"
    assert "KeyError: 'missing'" in logs.traceback_file().read_text()
