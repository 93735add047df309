"""The ``Shaper`` protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mplab.base.errors import DeviceError
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
