"""The ``Shaper`` protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypedDict

from mplab.base.errors import DeviceError
from mplab.format.direction import Direction
from mplab.format.path import PathCondition


class ProbeError(DeviceError):
    """A link could not be measured."""


@dataclass(frozen=True)
class PathMeasurement:
    """What a probe found on one path; a rate is None where none was asked.

    Attributes:
        loss_percent: of echoes, there and back.
        loss_sent: how many echoes that is a share of; 0: not known.
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
        """Make the conditions (interface → condition) real on every path; the sequence of losses follows `seed`.

        `core_rtt_ms` lies between the proxy and the servers, beside what is there already.
        """

    def change(self, interface: str, condition: PathCondition) -> None:
        """Put one path under another condition while it is in use; the sequence of losses and a trace go on."""

    def clear(self) -> None:
        """Take every condition away."""

    def state(self) -> Mapping[str, object]:
        """What is applied now, as the shaper itself says."""

    def where(self, interface: str) -> str:
        """Where a path is shaped, for the report: ``linkem``, ``server proxy (tc)``."""

    def warnings(self) -> list[str]:
        """Return reasons why paths may differ from the requested conditions, as far as the shaper knows."""

    def counters(self) -> Mapping[str, int]:
        """Packets and bytes in, out, dropped, as ``"wlan0.up.packets_in"``."""

    def check_alive(self) -> None:
        """Raise DeviceError when what shapes has ended, was lost, or no longer does what it was told."""

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure every path end to end, all at once.

        Raises:
            ProbeError: a path does not answer.
        """


class Emulator(Shaper, Protocol):
    """A `Shaper` that a lab starts and stops."""

    def start(self, *, seed: int) -> None:
        """Start it, every link open. Raises DeviceError."""

    def revive(self) -> list[str]:
        """Start it again, every link open, when it has ended by itself; one sentence then. Raises DeviceError."""

    def stop(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Selector:
    """Whose packets are shaped at an interface: those of one address, or all.

    Attributes:
        interface: of the router or server, towards the phone; or of the phone.
        mac: ``aa:bb:cc:dd:ee:ff``, or "".
        ip: IPv4 or IPv6 address, or "".
        at_phone: the interface is the phone's own: what leaves there comes from it.
    """

    interface: str
    mac: str = ""
    ip: str = ""
    at_phone: bool = False

    def __str__(self) -> str:
        """``10.0.0.2 at phy0-ap0``."""
        return f"{self.mac or self.ip or 'everything'} at {self.interface}"


class PathState(TypedDict):
    """What is applied to one path."""

    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class PathShaping(Protocol):
    """The paths that are shaped on a machine that is held."""

    def shape(self, key: str, selector: Selector, *, up: Direction, down: Direction, seed: int | None = None) -> None:
        """Put one phone's path under a condition: all of it or nothing, read back.

        Args:
            key: what the path is called here: ``phone-1.wlan0``.
            selector: whose packets; must be the same for the same key.
            up: from the phone.
            down: towards it.
            seed: of what is chance, where the machine takes one; None: as it was before.

        Raises:
            LabNotReadyError: the machine cannot do this.
            DeviceError: it refused, or reads back something else; this path is then as it was before.
        """

    def unshape(self, key: str) -> None:
        """Take one path's condition away; the others stay. Do nothing for a path that has none."""

    def state(self) -> Mapping[str, PathState]:
        """Return what is applied now, by path, as the machine says."""

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return counters by path: ``{"up.packets_out": 12, …}``."""


class Alive(Protocol):
    """A hold on a machine."""

    def check_alive(self) -> None:
        """Raise DeviceError when it was lost: rebooted, unreachable, given back by itself."""


class HeldMachine(Protocol):
    """A machine that this process holds, and nobody else may shape."""

    @property
    def name(self) -> str:
        """For messages: ``router wifi``."""

    @property
    def method(self) -> str:
        """What shapes on it, for ``cell.json``: ``tc``."""

    @property
    def warnings(self) -> list[str]:
        """Reasons why it may not give the requested conditions."""

    @property
    def shaping(self) -> PathShaping:
        """The paths that are shaped on it. Raises DeviceError: it is not held."""

    @property
    def hold(self) -> Alive:
        """The hold on it."""

    def renew(self) -> None:
        """Hold it again after it was lost; nothing is shaped then. Do nothing when it was not lost.

        Raises:
            LabNotReadyError: it does not come back, or another owner holds it now.
            DeviceError: what is left on it cannot be taken back.
        """
