"""Run commands as root on a phone: adbd itself runs as root, or ``su -c``, or ``su 0``."""

import contextlib
import shlex
from enum import Enum
from typing import Literal

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.polling import wait_until
from mplab.drivers.phone.adb.link import Link

RootWish = Literal["auto", "su", "adb", "none"]

_SU_TIMEOUT_S = 15.0
"""Longer than the 10 s after which Magisk refuses if the phone's user does not answer its question."""
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
    """Return the first method of root access that works on the phone.

    ``adb root`` is tried last because it restarts adbd. With ``auto``, the result is `Root.NONE` if no method works. If
    adbd already runs as root, the result is `Root.ADBD`, even if ``su`` is requested.

    Args:
        link: connection to the phone.
        wish: method to use: ``su``, ``adb``, ``auto`` (any), or ``none`` (do not use root).

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
        method = "su" if wish == "su" else "'adb root'"
        raise LabNotReadyError(
            f"{link.label}: 'root: {wish}' is set, but {method} gives no root access. See docs/how-to/phone.md"
        )
    return Root.NONE


def still_root(link: Link, dialect: Root) -> bool:
    """Return True when the method `dialect`, found earlier, still works; always True for `Root.NONE`.

    Raises:
        DeviceError: the phone is lost.
    """
    return dialect is Root.NONE or _is_root(link, dialect)


def give_up_adb_root(link: Link) -> None:
    """Restart adbd as the shell's user (``adb unroot``)."""
    _restart_adbd(link, "unroot:")


def _is_root(link: Link, dialect: Root) -> bool:
    result = link.run(dialect.line("id -u"), timeout_s=_SU_TIMEOUT_S)
    return result.exit_code == 0 and result.stdout.strip() == b"0"


def _restart_adbd(link: Link, service: str) -> bool:
    """Restart adbd by the adb service ``root:`` or ``unroot:``; return True when adbd then runs as requested."""
    wanted = service == "root:"
    if "cannot" in link.ask(f"host:transport:{link.serial}", service):
        return False
    # adbd answers before it exits: until then, a connection still reaches the old process.
    wait_until(lambda: link.state() != "device", _GONE_TIMEOUT_S, interval_s=0.02)

    def restarted() -> bool:
        with contextlib.suppress(DeviceError, LabNotReadyError):
            link.connect(2.0)
            return _is_root(link, Root.ADBD) == wanted
        return False

    return wait_until(restarted, _RESTART_TIMEOUT_S, interval_s=0.2)
