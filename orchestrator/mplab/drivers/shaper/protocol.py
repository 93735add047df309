"""The ``Shaper`` protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypedDict

from mplab.base.errors import DeviceError
from mplab.format.direction import Direction
from mplab.format.path import PathCondition


class ProbeError(DeviceError):
    """A path could not be measured."""


@dataclass(frozen=True)
class PathMeasurement:
    """Result of a probe of one path; a rate that was not requested has the value None.

    Attributes:
        down_kbps: measured rate towards the phone, kbit/s.
        up_kbps: measured rate from the phone, kbit/s.
        rtt_ms_median: median round-trip time, ms.
        rtt_ms_iqr: interquartile range of the round-trip times, ms.
        loss_percent: share of lost echoes over the round trip, percent.
        loss_sent: number of echoes sent to measure the loss; 0: unknown.
    """

    down_kbps: float | None
    up_kbps: float | None
    rtt_ms_median: float
    rtt_ms_iqr: float
    loss_percent: float
    loss_sent: int = 0


class Shaper(Protocol):
    """Applies link conditions to the paths of one phone."""

    kind: str

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply the conditions (interface → condition); `seed` determines the sequence of losses.

        `core_rtt_ms` is added to the round-trip time between the proxy and the servers.
        """

    def change(self, interface: str, condition: PathCondition) -> None:
        """Apply another condition to a path in use; the sequence of losses and a trace continue."""

    def clear(self) -> None:
        """Remove all conditions."""

    def state(self) -> Mapping[str, object]:
        """Return the applied conditions as the shaper reports them."""

    def where(self, interface: str) -> str:
        """Return the place that shapes a path, for reports: ``linkem``, ``server proxy (tc)``."""

    def warnings(self) -> list[str]:
        """Return known reasons why paths may differ from the requested conditions."""

    def counters(self) -> Mapping[str, int]:
        """Return packets and bytes received, sent and dropped: ``"wlan0.up.packets_in"``."""

    def check_alive(self) -> None:
        """Raise DeviceError when the shaper has ended, was lost, or no longer applies the conditions."""

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure all paths end to end at the same time.

        Raises:
            ProbeError: a path does not answer.
        """


class Emulator(Shaper, Protocol):
    """A `Shaper` that a lab starts and stops."""

    def start(self, *, seed: int) -> None:
        """Start the emulator with all links open. Raises DeviceError when it is not ready."""

    def revive(self) -> list[str]:
        """Start it again with all links open when it has ended unexpectedly; return one sentence if so.

        Raises:
            DeviceError: it is not ready.
        """

    def stop(self) -> None:
        """Stop the emulator."""


@dataclass(frozen=True)
class Selector:
    """Packets to shape at an interface: those of one address, or all.

    Attributes:
        interface: interface of the router or server towards the phone, or interface of the phone.
        mac: ``aa:bb:cc:dd:ee:ff``, or "".
        ip: IPv4 or IPv6 address, or "".
        at_phone: the interface is the phone's own: packets that leave it come from the phone.
    """

    interface: str
    mac: str = ""
    ip: str = ""
    at_phone: bool = False

    def __str__(self) -> str:
        """Return ``10.0.0.2 at phy0-ap0``."""
        return f"{self.mac or self.ip or 'everything'} at {self.interface}"


class PathState(TypedDict):
    """Applied conditions of one path."""

    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class PathShaping(Protocol):
    """Shaped paths on a held machine."""

    def shape(self, key: str, selector: Selector, *, up: Direction, down: Direction, seed: int | None = None) -> None:
        """Apply a condition to one phone's path, completely or not at all, and verify it by reading it back.

        Args:
            key: name of the path on this machine: ``phone-1.wlan0``.
            selector: packets of the path; must be the same for the same key.
            up: from the phone.
            down: towards it.
            seed: for random effects, if the machine supports one; None: keep the previous one.

        Raises:
            LabNotReadyError: the machine cannot apply this condition.
            DeviceError: it refused, or reads back other values; the path keeps its previous condition.
        """

    def unshape(self, key: str) -> None:
        """Remove one path's condition; do nothing for a path without one. Other paths stay unchanged."""

    def state(self) -> Mapping[str, PathState]:
        """Return the applied conditions by path as the machine reports them."""

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return counters by path: ``{"up.packets_out": 12, …}``."""


class Alive(Protocol):
    """A hold on a machine."""

    def check_alive(self) -> None:
        """Raise DeviceError when the hold was lost: rebooted, unreachable, or released by its dead-man's switch."""


class HeldMachine(Protocol):
    """A machine that this process holds, so that no other process can shape it."""

    @property
    def name(self) -> str:
        """Name for messages: ``router wifi``."""

    @property
    def method(self) -> str:
        """Method of shaping, for ``cell.json``: ``tc``."""

    @property
    def warnings(self) -> list[str]:
        """Reasons why it may not apply the requested conditions exactly."""

    @property
    def shaping(self) -> PathShaping:
        """Shaped paths on it. Raises DeviceError when it is not held."""

    @property
    def hold(self) -> Alive:
        """The hold on it."""

    def renew(self) -> None:
        """Hold it again, without shaping, if the hold was lost.

        Raises:
            LabNotReadyError: it does not return, or another owner holds it now.
            DeviceError: earlier changes on it cannot be undone.
        """
