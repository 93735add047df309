"""Hold a shaping machine (a router, a server, a phone) during a run; watch it and release it as it was found."""

import contextlib
import time
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Self

import structlog

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.capabilities import Capabilities, look
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.offloads import SHOW, parse_offloads
from mplab.drivers.shaper.tc.shaping import Shaping
from mplab.drivers.shaper.tc.shell import PlaceError, Shell

_UNDO_OFFLOADS = "38-offloads"
_BACK_TIMEOUT_S, _BACK_POLL_S = 180.0, 1.0
"""Maximum time to wait for a machine that reboots, s."""
_log = structlog.get_logger(__name__)


class Place:
    """Router, server or phone that no other process can shape during its context.

    Args:
        name: for messages: ``router wifi``.
        shell: on the machine.
        interface: interface to shape when the lab file sets none; "": the lab file always sets one.
        interfaces: interfaces to shape; default: `interface`.
        dead_man_s: silence after which the machine undoes everything itself.
        restore_command: releases it from another process; the owner's name is appended.
        owner: owner of the hold.
    """

    method: ClassVar[str] = "tc"
    openwrt: ClassVar[bool] = False
    state_directory: ClassVar[str]
    """Folder for notes on the machine."""
    watches_itself: ClassVar[bool] = True
    """True when nothing is installed: the dead-man's switch runs only while the machine is held."""

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
        """Reasons why it may not apply the requested conditions exactly, found when it was taken."""

    # --- Hooks for kinds of machines --------------------------------------------------------------------------------

    def _check_ready(self) -> None:
        """Check the machine before it is held. Raises LabNotReadyError when it is not ready."""

    def _prepare_held(self) -> None:
        """Make the changes that last while the machine is held, and store their undo."""

    def _switch_offloads_off(self, interfaces: Sequence[str] = ()) -> None:
        """Disable offloads that join packets while the machine is held: at `interfaces`, by default at all."""
        found = parse_offloads(self.shell.script(SHOW, *interfaces).stdout, self._interfaces)
        self.warnings += [f"{self.name}: {warning}" for warning in found.warnings(openwrt=self.openwrt)]
        if found.on:
            back, change = found.switch()
            note = self.hold.note_undo(_UNDO_OFFLOADS, back)
            self.hold.change(f"{note}\n{change}", "switching offloads off")

    # --- Holding it -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Connect, check the machine, hold it, and start the heartbeat.

        Raises:
            LabNotReadyError: it cannot be reached, cannot shape, or another owner holds it; nothing was changed.
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
        self._shaping = Shaping(self.hold, look(self.shell, self._interfaces, openwrt=self.openwrt))
        self.warnings = [f"{self.name}: {warning}" for warning in self.found.warnings()]

    def _let_go(self) -> None:
        try:
            self.restore()
        except (DeviceError, LabNotReadyError) as error:
            _log.error("not given back", place=self.name, error=str(error))

    def restore(self) -> None:
        """Undo all changes; reconnect when the connection is lost.

        Raises:
            PlaceError: a change could not be undone.
            LabNotReadyError: the machine cannot be reached; its dead-man's switch undoes all changes.
        """
        if self._shaping is not None:
            self._shaping.forget()
        self.hold.give_back()

    def renew(self) -> None:
        """Hold the machine again after a loss (SSH dropped, reboot, dead-man's switch). Wait while the machine boots.

        Does nothing when the hold was not lost. Afterwards, no path is shaped.

        Raises:
            LabNotReadyError: it cannot be reached, or another owner holds it now.
            PlaceError: earlier changes on it cannot be undone.
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
        """Do the steps of `__enter__` over the existing connection; on an error, release the machine."""
        try:
            self.hold.take()
            self._look()
            self._prepare_held()
        except Exception:
            self._let_go()
            raise

    @property
    def shaping(self) -> Shaping:
        """Shaped paths on it. Raises PlaceError when it is not held."""
        if self._shaping is None:
            raise PlaceError(self.name, "not connected")
        return self._shaping

    @property
    def found(self) -> Capabilities:
        """Abilities of the machine. Raises PlaceError when it is not held."""
        return self.shaping.found
