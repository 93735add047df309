"""The receive buffers of a phone's sockets are limited for a cell, and restored afterwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import DeviceError
from mplab.base.machine import CommandResult
from mplab.base.undo import UndoStack
from mplab.drivers.phone.buffers import RECEIVE_BUFFERS, limit_receive_buffer
from mplab.drivers.transport import make_transport
from mplab.format.sockets import SocketSettings
from mplab.lab.base import BaseLab
from mplab.lab.driver import LabSettings
from mplab.lab.phones.adb.lab import BenchLab
from mplab.userfiles.labs.labuse import VIRTUAL

SIZES = "4096\t131072\t6291456\n"


class Kernel:
    """A phone with one kernel parameter."""

    name = "phone"

    def __init__(self, value: str = SIZES, *, fixed: bool = False) -> None:
        self.value = value
        self._fixed = fixed

    def shell(self, argv: list[str]) -> CommandResult:
        assert argv == ["cat", "/proc/sys/net/ipv4/tcp_rmem"]
        return CommandResult(0, self.value, "")

    def sysctl(self, values: Mapping[str, object]) -> None:
        if not self._fixed:
            self.value = str(values[RECEIVE_BUFFERS])


@pytest.mark.parametrize(
    ("most_bytes", "limited"),
    [(65536, "4096 65536 65536"), (1 << 20, "4096 131072 1048576"), (16 << 20, "4096 131072 16777216")],
)
def test_the_maximum_is_set_and_restored(most_bytes: int, limited: str) -> None:
    phone: Any = Kernel()
    with UndoStack() as undo:
        limit_receive_buffer(phone, most_bytes, undo)
        assert phone.value == limited
    assert phone.value.split() == SIZES.split()


def test_a_kernel_that_keeps_its_value_is_an_error() -> None:
    phone: Any = Kernel(fixed=True)
    with (
        pytest.raises(DeviceError, match="is 4096 131072 6291456 after it was set to 4096 65536 65536"),
        UndoStack() as undo,
    ):
        limit_receive_buffer(phone, 65536, undo)


def test_a_kernel_that_shows_no_sizes_is_an_error() -> None:
    phone: Any = Kernel("")
    with pytest.raises(DeviceError, match="three numbers were expected"), UndoStack() as undo:
        limit_receive_buffer(phone, 65536, undo)


class RealPhone(Kernel):
    """A phone that records the scripts which its journal would run after a killed run."""

    label = "phone one"

    def __init__(self, value: str = SIZES) -> None:
        super().__init__(value)
        self.later: list[str] = []

    def register(self, name: str, script: str) -> None:
        assert name == "phone one: receive buffers"
        self.later.append(script)


def set_up(phone: Any, sizes_bytes: list[int | None], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseLab, "set_up_transport", lambda *_, **__: None)
    settings = LabSettings(seed=1, congestion_control="cubic", logs=folder, use=VIRTUAL)
    lab = BenchLab(settings)
    lab.phone = phone
    transport = make_transport("sptcp-wifi", None, {"wlan0": "10.64.1.2"})
    for most_bytes in sizes_bytes:
        with UndoStack() as undo:
            lab.set_up_transport(transport, sockets=SocketSettings("cubic", most_bytes), logs=folder, undo=undo)


def test_the_journal_restores_buffers_once_and_only_where_a_cell_limits_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hiding = RealPhone("")
    set_up(hiding, [None], tmp_path, monkeypatch)
    assert hiding.later == []
    with pytest.raises(DeviceError, match="three numbers were expected"):
        set_up(hiding, [65536], tmp_path, monkeypatch)
    phone = RealPhone()
    set_up(phone, [None, 65536, 65536], tmp_path, monkeypatch)
    assert phone.later == ["echo 4096 131072 6291456 > /proc/sys/net/ipv4/tcp_rmem"]
