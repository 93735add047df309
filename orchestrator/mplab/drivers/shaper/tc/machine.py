"""`TcMachine`: a router, server or phone that a run holds, watches and releases in its original state."""

import contextlib
import time
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Self

import structlog

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.capabilities import Capabilities, find_capabilities
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.offloads import SHOW, parse_offloads
from mplab.drivers.shaper.tc.shaping import Shaping
from mplab.drivers.shaper.tc.shell import MachineError, Shell

_UNDO_OFFLOADS = "38-offloads"
_BACK_TIMEOUT_S, _BACK_POLL_S = 180.0, 1.0
"""Maximum time to wait for a machine that reboots, and time between attempts to reconnect, s."""
_log = structlog.get_logger(__name__)


class TcMachine:
    """Router, server or phone that this process holds while the context is entered.

    Meanwhile no other process can shape the machine.

    Args:
        name: name in messages: ``router wifi``.
        shell: root shell on the machine.
        interface: interface to shape if `interfaces` is empty; must be set in that case.
        interfaces: interfaces to shape; default: only `interface`.
        dead_man_s: time without heartbeat after which the machine undoes all changes itself, s.
        restore_command: command line by which another process releases the machine; the hold's name is appended to it.
        owner: run or user that holds the machine.
    """

    method: ClassVar[str] = "tc"
    openwrt: ClassVar[bool] = False
    state_directory: ClassVar[str]
    """Folder on the machine for owner, heartbeat and undo scripts."""
    watches_itself: ClassVar[bool] = True
    """True: the dead-man's switch runs only while the machine is held. False: it is installed on the machine."""

    def __init__(
        self,
        name: str,
        shell: Shell,
        *,
        interface: str = "",
        interfaces: Sequence[str] = (),
        dead_man_s: float,
        restore_command: Sequence[str],
        owner: Owner,
    ) -> None:
        self.name = name
        self.shell = shell
        self.interface = interface
        self._interfaces = tuple(dict.fromkeys(interfaces or (interface,)))
        self._owner = owner
        self.hold = Hold(
            name,
            shell,
            self.state_directory,
            owner.token(),
            dead_man_s=dead_man_s,
            watches_itself=self.watches_itself,
        )
        self._restore_command = [*restore_command, self.hold.owner]
        self._stack = contextlib.ExitStack()
        self._shaping: Shaping | None = None
        self.warnings: list[str] = []
        """Reasons why the machine may not apply the requested conditions exactly, found when it was last taken."""

    # --- Hooks for kinds of machines --------------------------------------------------------------------------------

    def _check_ready(self) -> None:
        """Check the machine before it is held. Raises LabNotReadyError when it is not ready."""

    def _prepare_held(self) -> None:
        """Make the changes that this kind of machine needs while it is held; store the undo of each change first."""

    def _switch_offloads_off(self, interfaces: Sequence[str] = ()) -> None:
        """Disable offloads that join packets until the machine is released.

        `interfaces` are the interfaces to change; empty: all interfaces of the machine.
        """
        offloads = parse_offloads(self.shell.script(SHOW, *interfaces).stdout, self._interfaces)
        self.warnings += [f"{self.name}: {warning}" for warning in offloads.warnings(openwrt=self.openwrt)]
        if offloads.on:
            back, change = offloads.switch()
            note = self.hold.note_undo(_UNDO_OFFLOADS, back)
            self.hold.change(f"{note}\n{change}", "switching offloads off")

    # --- Holding it -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Connect, check the machine, hold it, and start the heartbeat.

        Raises:
            LabNotReadyError: the machine cannot be reached or cannot shape, or another owner holds it. All changes are
                undone.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._owner.lock(self.shell.where))
            self.shell.connect()
            stack.callback(self.shell.close)
            try:
                self._prepare(stack)
            except DeviceError as error:
                raise LabNotReadyError(str(error)) from error
            self._stack = stack.pop_all()
        return self

    def _prepare(self, stack: contextlib.ExitStack) -> None:
        self._check_ready()
        stack.callback(self._let_go)
        self.hold.take()
        self._look()
        if problems := list(self.found.problems()):
            raise LabNotReadyError(f"{self.name}: {'; '.join(problems)}")
        self._owner.undo.register(f"{self.name}: as it was found", self.restore, commands=[self._restore_command])
        self._prepare_held()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undo all changes, release the machine, and disconnect."""
        self._stack.__exit__(kind, error, trace)

    def _look(self) -> None:
        self._shaping = Shaping(self.hold, find_capabilities(self.shell, self._interfaces, openwrt=self.openwrt))
        self.warnings = [f"{self.name}: {warning}" for warning in self.found.warnings()]

    def _let_go(self) -> None:
        try:
            self.restore()
        except (DeviceError, LabNotReadyError) as error:
            _log.error("not released", machine=self.name, error=str(error))

    def restore(self) -> None:
        """Undo all changes and release the machine; reconnect when the connection is lost.

        Raises:
            MachineError: a change could not be undone.
            LabNotReadyError: the machine cannot be reached; its dead-man's switch undoes all changes.
        """
        if self._shaping is not None:
            self._shaping.forget()
        self.hold.give_back()

    def renew(self) -> None:
        """Hold the machine again if its hold was lost (SSH dropped, reboot, dead-man's switch). Wait while it boots.

        Afterwards, no path is shaped. If the hold was not lost, nothing happens.

        Raises:
            LabNotReadyError: the machine cannot be reached for 180 s, or another owner holds it now.
            MachineError: earlier changes on the machine cannot be undone.
        """
        deadline = time.monotonic() + _BACK_TIMEOUT_S
        while self.hold.seems_lost:
            try:
                self.restore()
                self._take_again()
            except LabNotReadyError:
                if self.shell.alive or time.monotonic() > deadline:
                    raise  # another owner holds it, or it does not return
                time.sleep(_BACK_POLL_S)

    def _take_again(self) -> None:
        """Hold and prepare the machine again over the existing connection; on an error, release the machine."""
        try:
            self.hold.take()
            self._look()
            self._prepare_held()
        except Exception:
            self._let_go()
            raise

    @property
    def shaping(self) -> Shaping:
        """Object that shapes paths on the machine. Raises MachineError if this process has never held the machine."""
        if self._shaping is None:
            raise MachineError(self.name, "not connected")
        return self._shaping

    @property
    def found(self) -> Capabilities:
        """Abilities of the machine, found when it was last held. Raises MachineError before the first hold."""
        return self.shaping.found


PHONE_STATE = "/data/local/tmp/mplab"
"""Folder for the files of a hold on phones: they have no /run, and `adb` can write to this folder."""


class LinuxMachine(TcMachine):
    """Linux machine. While it is held, offloads that join packets (TSO, GSO, GRO, LRO) are off at shaped interfaces."""

    def _prepare_held(self) -> None:
        self._switch_offloads_off(self._interfaces)


class LinuxHost(LinuxMachine):
    """Computer with Linux: a server, or this host. It must have `ethtool`."""

    state_directory: ClassVar[str] = "/run/mplab"

    def _check_ready(self) -> None:
        check_root(self.shell)
        if self.shell.script("command -v ethtool", check=False).exit_code != 0:
            raise LabNotReadyError(
                f"{self.name}: no ethtool, with which mplab stops the kernel from joining packets. Install the package "
                "ethtool"
            )


class RootedPhone(LinuxMachine):
    """Rooted phone that shapes its own paths, with any kind of root shell.

    Offloads that join packets are disabled only if the phone has `ethtool`.
    """

    state_directory: ClassVar[str] = PHONE_STATE

    def _check_ready(self) -> None:
        check_root(self.shell)


def check_root(shell: Shell) -> None:
    """Raise LabNotReadyError when a shell is not a root shell."""
    uid = shell.script("id -u").stdout.strip()
    if uid != "0":
        raise LabNotReadyError(f"{shell.name} ({shell.where}): user {uid} is not root, and only root can shape")
