"""Make the changes of a link condition at their planned times, in parallel with the scenario."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import TracebackType
from typing import Self

import structlog

from mplab.base.endpoints import Endpoints
from mplab.base.errors import CellError, DeviceError
from mplab.base.outages import Disturbances
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.phone.interface import PhoneInterface
from mplab.drivers.shaper import Shaper
from mplab.format.link import Moment
from mplab.format.path import PathCondition
from mplab.scenarios.base.protocol import Observer

LATE_S = 0.1
"""Delay, in seconds, above which a change is flagged as late."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Effect:
    """The effect that one change of a link condition had on the path.

    Attributes:
        outage: ``begins`` or ``ends``, if the change made the path unusable or usable; otherwise "".
        none: why the change had no effect; "" if it had one.
    """

    outage: str = ""
    none: str = ""


class Changer:
    """Makes one change at a time to the phone's interfaces, its routes, and the conditions of its links.

    Args:
        phone: the phone, with its transport set up.
        shaper: shapes the paths.
        endpoints: endpoints of the lab.
        peer: address or network of the destination of all connections that leave the phone; "": the proxy.
        paths: interface → link condition before the first change.
        undo: receives the undo of changes to the phone. The undo of the link conditions is registered already.
    """

    def __init__(
        self,
        phone: Phone,
        shaper: Shaper,
        *,
        endpoints: Endpoints,
        peer: str = "",
        paths: Mapping[str, PathCondition],
        undo: UndoStack,
    ) -> None:
        self._phone = phone
        self._shaper = shaper
        self._conditions = dict(paths)
        self._dark: set[str] = set()
        self._out: set[str] = set()
        self._undo = undo
        self._interfaces: dict[str, PhoneInterface] = {}
        self._peer = peer or endpoints.proxy
        self._spare = {device: cycle(known) for device, known in endpoints.spare.items()}

    def prepare(self, moments: Sequence[Moment]) -> None:
        """Read the state of the phone's interfaces, and register an undo that restores it after the cell.

        Does nothing if all changes only shape the paths or switch their radios.
        """
        if not any(m.interface or m.access_point or m.default_route or m.multipath for m in moments):
            return
        for name in self._phone.interfaces:
            interface = PhoneInterface(self._phone, name, peer=self._peer)
            self._undo.register(f"{self._phone.name}: {name} as before", interface.restore)
            self._interfaces[name] = interface

    def look(self, moment: Moment) -> None:
        """Read the new state of the interfaces that the change `moment` affected; the next change starts from it."""
        if moment.default_route:
            for interface in self._interfaces.values():
                interface.read()
        elif moment.interface == "up" or moment.access_point == "new" or moment.multipath:
            self._interfaces[moment.device].read()

    def carry_out(self, moment: Moment) -> Effect:
        """Make a change and return its effect. Raises DeviceError if the phone or the link emulator did not make it."""
        device = moment.device
        before = device in self._out
        none = self._move(moment)
        self._shape(moment)
        if device in self._out and not before:
            return Effect("begins", none)
        return Effect("ends" if before and device not in self._out else "", none)

    def _move(self, moment: Moment) -> str:
        """Change the phone's interfaces, routes or MPTCP.

        Returns:
            Why the change had no effect; "" if it had one.

        Raises:
            DeviceError: the phone did not make the change.
        """
        device = moment.device
        none = ""
        if moment.interface == "down" or moment.access_point == "lost":
            self._interfaces[device].take_down()
            self._out.add(device)
        elif moment.interface == "up":
            self._interfaces[device].bring_up()
            self._settle(device)
        elif moment.access_point == "new":
            if device not in self._spare:
                raise DeviceError(self._phone.name, f"{device}: unknown address for the new access point")
            self._interfaces[device].bring_up(next(self._spare[device]))
            self._dark.discard(device)
            self._settle(device)
        if moment.default_route:
            self._phone.prefer(device)
        if moment.multipath and not self._interfaces[device].set_multipath(moment.multipath):
            none = "the transport has no MPTCP endpoints"
        return none

    def _settle(self, device: str) -> None:
        """Record that a path is usable, because its interface `device` came up; do nothing if the radio is off."""
        if device not in self._dark:
            self._out.discard(device)

    def _shape(self, moment: Moment) -> None:
        device = moment.device
        self._conditions[device] = moment.condition
        if moment.radio == "off":
            self._dark.add(device)
            self._out.add(device)
        elif moment.radio == "on":
            self._dark.discard(device)
            self._out.discard(device)
        if moment.radio or moment.reshaped or moment.access_point == "new":
            condition = moment.condition
            if device in self._dark:
                condition = condition.dark()
            self._shaper.change(device, condition)


class ChangeSchedule:
    """Makes changes at their times, counted from the start of its ``with`` block, until the block ends.

    A change that fails ends the schedule. The block then ends with that error, unless it raises another error.

    Args:
        moments: the changes, in the order of their times.
        changer: makes the changes.
        observe: records each change as an observation ``change``.
        monotonic: clock by which the changes are timed, s.
        wall: returns Unix time, s.
    """

    def __init__(
        self,
        moments: Sequence[Moment],
        changer: Changer,
        observe: Observer,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._moments = moments
        self._changer = changer
        self._observe = observe
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)
        self._begun_s = 0.0
        self._error: Exception | None = None
        self.disturbances = Disturbances()
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        """Prepare the changes, then start the clock."""
        self._changer.prepare(self._moments)
        self._begun_s = self._monotonic()
        if self._moments:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make no further change; wait for a change in progress. Raises CellError if a change failed."""
        self._ended.set()
        if self._moments:
            try:
                self._thread.join()
            except BaseException:
                self._thread.join()  # after an interrupt, too: the undo that follows must not overlap with a change
                raise
        if self._error is None:
            return
        if error is not None:
            error.add_note(str(self._error))
            return
        raise CellError(str(self._error)) from self._error

    def _run(self) -> None:
        for moment in self._moments:
            if self._ended.wait(max(self._begun_s + moment.at_s - self._monotonic(), 0.0)):
                return
            try:
                self._happen(moment)
            except Exception as error:
                _log.warning("change failed", change=moment.text, error=str(error))
                self._error = CellError(f"{_place(moment)}: {error}")
                self._observe("change", **_described(moment), error=str(error))
                return

    def _happen(self, moment: Moment) -> None:
        begun_s, wall_s = self._monotonic(), self._wall()
        late_s = begun_s - self._begun_s - moment.at_s
        effect = self._changer.carry_out(moment)
        done_s = self._wall()
        self._note(moment, effect, wall_s, done_s)
        fields: dict[str, object] = {"late_s": round(late_s, 4), "took_s": round(self._monotonic() - begun_s, 4)}
        if late_s > LATE_S:
            fields["late"] = True
            self.warnings.append(f"{_place(moment)}: {late_s:.1f} s late: the host was busy")
        if effect.outage:
            fields["outage"] = effect.outage
        if effect.none:
            fields["no_effect"] = effect.none
        self._observe("change", **_described(moment), begun=round(wall_s, 6), **fields)
        self._changer.look(moment)

    def _note(self, moment: Moment, effect: Effect, begun_s: float, done_s: float) -> None:
        story, device = self.disturbances, moment.device
        if effect.outage == "begins":
            story.begin(device, begun_s)
        elif effect.outage == "ends":
            story.end(device, done_s)
        if moment.interface == "down" or moment.access_point == "lost":
            story.leave(device, begun_s)
        elif moment.interface == "up" or moment.access_point == "new":
            story.come_back(device, done_s)
        if moment.multipath and not effect.none:
            # Not an outage for the application, but MPTCP is ordered not to use the path during this time.
            if moment.multipath == "on":
                story.end(device, done_s)
            else:
                story.begin(device, begun_s)
        if moment.reshaped:
            story.reshaped.add(device)
        if moment.default_route:
            story.rerouted_s = min(story.rerouted_s, begun_s)


def _place(moment: Moment) -> str:
    return f"change at {moment.at_s:g} s ({moment.path}: {moment.text})"


def _described(moment: Moment) -> dict[str, object]:
    return {"at_s": moment.at_s, "path": moment.path, "interface": moment.device, "what": moment.text}
