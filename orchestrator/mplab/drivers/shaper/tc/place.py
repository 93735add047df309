"""What shapes (a router, a server, a phone), held by this run: shaped, watched, and given back as it was found."""

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
"""How long a machine that reboots is waited for."""
_log = structlog.get_logger(__name__)


class Place:
    """A router, server or phone for as long as its context: nobody else may shape it meanwhile.

    Args:
        name: for messages: ``router wifi``.
        shell: on it.
        interface: that is shaped where the lab file names none; "": it always does.
        interfaces: that will be shaped; default: `interface`.
        dead_man_s: silence after which it takes everything back by itself.
        restore_command: gives it back from another process; the owner's name is added.
        owner: in whose name it is held.
    """

    method: ClassVar[str] = "tc"
    openwrt: ClassVar[bool] = False
    state_directory: ClassVar[str]
    """Folder for notes there."""
    watches_itself: ClassVar[bool] = True
    """Nothing is installed: the dead-man's switch runs from when it is taken until it is given back."""

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
        """Reasons why it may not give the requested conditions, found when it was taken."""

    # --- What kinds of places differ in ---------------------------------------------------------------------------

    def _check_ready(self) -> None:
        """Before it is held; raises LabNotReadyError."""

    def _prepare_held(self) -> None:
        """What is changed as long as it is held, with notes of how it is taken back."""

    def _switch_offloads_off(self, interfaces: Sequence[str] = ()) -> None:
        """Switch offloads that put packets together off while it is held: at `interfaces`, by default at all."""
        found = parse_offloads(self.shell.script(SHOW, *interfaces).stdout, self._interfaces)
        self.warnings += [f"{self.name}: {warning}" for warning in found.warnings(openwrt=self.openwrt)]
        if found.on:
            back, change = found.switch()
            note = self.hold.note_undo(_UNDO_OFFLOADS, back)
            self.hold.change(f"{note}\n{change}", "switching offloads off")

    # --- Holding it -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Connect, look, hold it, and start the heartbeat.

        Raises:
            LabNotReadyError: it cannot be reached, cannot shape, or is somebody else's; nothing was changed.
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
        """Take everything back, let go, disconnect."""
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
        """Take every change back; connects again when the connection is lost.

        Raises:
            PlaceError: something could not be taken back.
            LabNotReadyError: it cannot be reached; its dead-man's switch takes all back.
        """
        if self._shaping is not None:
            self._shaping.forget()
        self.hold.give_back()

    def renew(self) -> None:
        """Hold it again after it was lost (SSH dropped, rebooted, given back by itself); one that boots is waited for.

        Does nothing when it was not lost. Nothing is shaped then.

        Raises:
            LabNotReadyError: it cannot be reached, or another owner holds it now.
            PlaceError: what is left on it cannot be taken back.
        """
        deadline = time.monotonic() + _BACK_TIMEOUT_S
        while self.hold.seems_lost:
            try:
                self.restore()
                self._take_again()
            except LabNotReadyError:
                if self.shell.alive or time.monotonic() > deadline:
                    raise  # it answers, and another owner holds it; or it does not come back
                time.sleep(_BACK_POLL_S)

    def _take_again(self) -> None:
        """All that `__enter__` does over a connection that is there; when it fails, it is as not held at all."""
        try:
            self.hold.take()
            self._look()
            self._prepare_held()
        except Exception:
            self._let_go()
            raise

    @property
    def shaping(self) -> Shaping:
        """What is shaped on it. Raises PlaceError: it is not held."""
        if self._shaping is None:
            raise PlaceError(self.name, "not connected")
        return self._shaping

    @property
    def found(self) -> Capabilities:
        """What it can do."""
        return self.shaping.found
