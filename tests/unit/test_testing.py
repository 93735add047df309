"""The pytest plug-in for authors of scenarios and transports."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.base.paths import RMNET
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.transport import Transport, names
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.testing.transports import left_by

SUITE = """
from mplab.base.machine import CommandResult


def test_a_cell(mplab_cell):
    cell = mplab_cell(reply=lambda argv: CommandResult(0, "", ""))
    assert cell.context.phone.shell(["true"]).exit_code == 0


def test_a_transport(mplab_transport, mplab_left_by):
    assert mplab_left_by(mplab_transport("mptcp")) == []
"""


@pytest.mark.parametrize("name", names())
def test_the_products_own_transports_leave_nothing(
    name: str, mplab_transport: Callable[[str], Transport], mplab_left_by: Callable[[Transport], list[str]]
) -> None:
    assert mplab_left_by(mplab_transport(name)) == []


class Forgetful(SinglePathTcp):
    """A transport that registers no undo."""

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        phone.prefer(RMNET)
        phone.ip("route add 10.0.0.0/8 dev rmnet0", "link set dev rmnet0 mtu 1400", "mptcp endpoint add 1 dev wlan0")
        phone.ip("mptcp endpoint flush", "rule add from 10.64.2.2 table 7")
        phone.ip("rule del from 10.64.2.2 table 7")


def test_what_a_transport_forgets_is_told() -> None:
    assert left_by(Forgetful("rmnet0", "10.64.2.2")) == [
        "default route over rmnet0",
        "link rmnet0: mtu 1400",
        "route 10.0.0.0/8 dev rmnet0",
    ]


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout


def test_loading_the_plug_in_imports_nothing_slow() -> None:
    code = (
        "import sys, mplab.testing.plugin;"
        "slow = {'polars', 'numpy', 'matplotlib', 'docker', 'paramiko', 'mplab.analysis', 'mplab.drivers'};"
        "sys.exit(repr(slow & set(sys.modules)) if slow & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
