"""How a phone gives root: adbd itself, ``su -c``, ``su 0``, or not at all."""

import contextlib
import shlex
import time
from enum import Enum
from typing import Literal

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.link import Link

RootWish = Literal["auto", "su", "adb", "none"]

_SU_TIMEOUT_S = 15.0
"""Magisk asks the phone's user, and answers no after 10 s."""
_RESTART_TIMEOUT_S = 30.0
_GONE_TIMEOUT_S = 5.0


class Root(Enum):
    """A dialect."""

    ADBD = "adbd is root"
    SU_C = "su -c"
    SU_0 = "su 0"
    NONE = "none"

    def line(self, command: str) -> str:
        """The command line for adb's shell that runs `command` as root; as the shell's user when there is no root."""
        if self is Root.SU_C:
            return f"su -c {shlex.quote(command)}"
        if self is Root.SU_0:
            return f"su 0 sh -c {shlex.quote(command)}"
        return command


def find_root(link: Link, wish: RootWish = "auto") -> Root:
    """Which dialect works, tried one after the other; ``adb root`` is tried last, since it restarts adbd.

    Args:
        link: to the phone.
        wish: the only one to try; ``none``: use no root although it may be there.

    Raises:
        LabNotReadyError: the one that was wished for does not work.
        DeviceError: the phone has gone.
    """
    if wish == "none":
        return Root.NONE
    if _is_root(link, Root.ADBD):
        return Root.ADBD
    if wish != "adb":
        for dialect in (Root.SU_C, Root.SU_0):
            if _is_root(link, dialect):
                return dialect
    debuggable = link.run("getprop ro.debuggable").stdout.strip() == b"1"
    if wish != "su" and (debuggable or wish == "adb") and _restart_adbd(link, "root:"):
        return Root.ADBD
    if wish != "auto":
        asked = "su" if wish == "su" else "'adb root'"
        raise LabNotReadyError(
            f"{link.label}: 'root: {wish}' was asked for, and {asked} gives none: see docs/phones.md"
        )
    return Root.NONE


def still_root(link: Link, dialect: Root) -> bool:
    """Whether a dialect that was found still works. Raises DeviceError."""
    return dialect is Root.NONE or _is_root(link, dialect)


def give_up_adb_root(link: Link) -> None:
    """Have adbd be the shell's user again. Raises LabNotReadyError."""
    _restart_adbd(link, "unroot:")


def _is_root(link: Link, dialect: Root) -> bool:
    done = link.run(dialect.line("id -u"), timeout_s=_SU_TIMEOUT_S)
    return done.exit_code == 0 and done.stdout.strip() == b"0"


def _restart_adbd(link: Link, service: str) -> bool:
    """Ask adbd to be root, or not; whether it did."""
    wanted = service == "root:"
    if "cannot" in link.ask(f"host:transport:{link.serial}", service):
        return False
    # It answers before it goes: until then, the connection is that of the old one.
    gone_by = time.monotonic() + _GONE_TIMEOUT_S
    while link.state() == "device" and time.monotonic() < gone_by:
        time.sleep(0.02)
    deadline = time.monotonic() + _RESTART_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(DeviceError, LabNotReadyError):
            link.connect(2.0)
            if _is_root(link, Root.ADBD) == wanted:
                return True
        time.sleep(0.2)
    return False
