"""Run commands as root: by adbd itself, ``su -c`` or ``su 0``, if the phone supports one of them."""

import contextlib
import shlex
import time
from enum import Enum
from typing import Literal

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.phone.adb.link import Link

RootWish = Literal["auto", "su", "adb", "none"]

_SU_TIMEOUT_S = 15.0
"""Magisk asks the phone's user and refuses after 10 s without an answer."""
_RESTART_TIMEOUT_S = 30.0
_GONE_TIMEOUT_S = 5.0


class Root(Enum):
    """Method of running a command as root."""

    ADBD = "adbd is root"
    SU_C = "su -c"
    SU_0 = "su 0"
    NONE = "none"

    def line(self, command: str) -> str:
        """Return the command line for adb's shell that runs `command` as root (`NONE`: as the shell's user)."""
        if self is Root.SU_C:
            return f"su -c {shlex.quote(command)}"
        if self is Root.SU_0:
            return f"su 0 sh -c {shlex.quote(command)}"
        return command


def find_root(link: Link, wish: RootWish = "auto") -> Root:
    """Return the method that works; ``adb root`` is tried last because it restarts adbd.

    Args:
        link: to the phone.
        wish: the only method to try; ``none``: do not use root.

    Raises:
        LabNotReadyError: the requested method does not work.
        DeviceError: the phone is lost.
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
    """Return True when a method found earlier still works. Raises DeviceError when the phone is lost."""
    return dialect is Root.NONE or _is_root(link, dialect)


def give_up_adb_root(link: Link) -> None:
    """Restart adbd as the shell's user (``adb unroot``)."""
    _restart_adbd(link, "unroot:")


def _is_root(link: Link, dialect: Root) -> bool:
    done = link.run(dialect.line("id -u"), timeout_s=_SU_TIMEOUT_S)
    return done.exit_code == 0 and done.stdout.strip() == b"0"


def _restart_adbd(link: Link, service: str) -> bool:
    """Restart adbd as root or as shell user; return True when it runs as requested."""
    wanted = service == "root:"
    if "cannot" in link.ask(f"host:transport:{link.serial}", service):
        return False
    # adbd answers before it exits: until then, a connection still reaches the old process.
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
