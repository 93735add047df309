"""Protocols of shapers, which apply link conditions to a phone's paths, and of the machines that shapers use."""

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
    """Result of a probe of one path.

    Attributes:
        down_kbps: measured rate towards the phone, kbit/s; None: no rate was requested, so none was measured.
        up_kbps: measured rate from the phone, kbit/s; None: as for `down_kbps`.
        rtt_ms_median: median round-trip time, ms.
        rtt_ms_iqr: interquartile range of the round-trip times, ms.
        loss_percent: share of lost echoes over the round trip, percent.
        loss_sent: number of echoes sent to measure `loss_percent`; 0: unknown.
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
        """Replace the condition of one path; the path's random losses and packet-delivery trace continue."""

    def clear(self) -> None:
        """Remove the conditions of all paths of the phone."""

    def state(self) -> Mapping[str, object]:
        """Return the applied conditions as the shaper reports them; the format depends on the shaper."""

    def where(self, interface: str) -> str:
        """Return the name of the emulator or machine that shapes a path, for reports: ``server proxy (tc)``."""

    def warnings(self) -> list[str]:
        """Return known reasons why paths may differ from the requested conditions."""

    def counters(self) -> Mapping[str, int]:
        """Return counters of packets and bytes, by names such as ``"wlan0.up.packets_in"``."""

    def check_alive(self) -> None:
        """Raise DeviceError when the shaper has ended, was lost, or no longer applies the conditions."""

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure all paths end to end at the same time; return the measurements by interface.

        Raises:
            ProbeError: a path does not answer.
        """


class Emulator(Shaper, Protocol):
    """A `Shaper` that a lab starts and stops."""

    def start(self, *, seed: int) -> None:
        """Start the emulator with all links open, that is, without rate limit, delay and loss.

        Raises:
            DeviceError: the emulator is not ready in time.
        """

    def revive(self) -> list[str]:
        """Start the emulator again, with all links open, if it has ended unexpectedly.

        Returns:
            One sentence about the restart; [] if the emulator was still running.

        Raises:
            DeviceError: the emulator is not ready in time.
        """

    def stop(self) -> None:
        """Stop the emulator."""


@dataclass(frozen=True)
class PacketSelector:
    """Selection of packets to shape at an interface: those of one phone's address or, without address, all packets.

    Attributes:
        interface: interface of the router or server towards the phone, or interface of the phone.
        mac: hardware address of the phone, ``aa:bb:cc:dd:ee:ff``, or "".
        ip: IPv4 or IPv6 address of the phone, or "".
        at_phone: the interface belongs to the phone, so packets that leave it are uplink.
    """

    interface: str
    mac: str = ""
    ip: str = ""
    at_phone: bool = False

    def __str__(self) -> str:
        """Return the selector as text: ``10.0.0.2 at phy0-ap0``."""
        return f"{self.mac or self.ip or 'everything'} at {self.interface}"


class PathState(TypedDict):
    """Applied conditions of one path.

    Attributes:
        of: address and interface that select the path's packets: ``10.0.0.2 at phy0-ap0``.
        up: condition of packets from the phone, as the machine reports it.
        down: condition of packets towards the phone, as the machine reports it.
    """

    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class PathShaping(Protocol):
    """Applies conditions to paths on a held machine; see `HeldMachine`."""

    def shape(
        self, key: str, selector: PacketSelector, *, up: Direction, down: Direction, seed: int | None = None
    ) -> None:
        """Apply a condition to one phone's path, completely or not at all, and verify it by reading it back.

        Args:
            key: name of the path on this machine: ``phone-1.wlan0``.
            selector: packets of the path; must be the same for the same key.
            up: condition of packets from the phone.
            down: condition of packets towards the phone.
            seed: seed for random effects, if the machine supports one; None: keep the previous seed.

        Raises:
            LabNotReadyError: the machine cannot apply this condition.
            DeviceError: the machine refused, or reports other values; the path keeps its previous condition.
        """

    def unshape(self, key: str) -> None:
        """Remove one path's condition; do nothing for a path without one. Other paths stay unchanged."""

    def state(self) -> Mapping[str, PathState]:
        """Return the applied conditions of all paths, by key of the path, as the machine reports them."""

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return the packet and byte counters of all paths, by key of the path: ``{"phone-1.wlan0": {…}}``.

        The names of a path's counters begin with the direction: ``up.packets_out``.
        """


class Alive(Protocol):
    """A hold: the exclusive right of one process to shape a machine."""

    def check_alive(self) -> None:
        """Raise DeviceError when this process no longer holds the machine.

        The machine has then rebooted, is unreachable, or was released by its dead-man's switch.
        """


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
        """Reasons why the machine may not apply the requested conditions exactly."""

    @property
    def shaping(self) -> PathShaping:
        """Object that shapes paths on the machine. Raises DeviceError if this process has never held the machine."""

    @property
    def hold(self) -> Alive:
        """This process's exclusive right to shape the machine."""

    def renew(self) -> None:
        """Hold the machine again if the hold was lost; afterwards, no path is shaped.

        Raises:
            LabNotReadyError: the machine does not answer again, or another owner holds it now.
            DeviceError: earlier changes on the machine cannot be undone.
        """
