"""The ``Shaper`` protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.errors import DeviceError
from orchestrator.spec.link import PathCondition


class ProbeError(DeviceError):
    """A link could not be measured."""


@dataclass(frozen=True)
class PathMeasurement:
    """What a probe found on one path; a rate is None where none was asked."""

    down_kbps: float | None
    up_kbps: float | None
    rtt_ms_median: float
    rtt_ms_iqr: float
    loss_percent: float


class Shaper(Protocol):
    """Applies link conditions to the paths of one phone."""

    kind: str

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int) -> None:
        """Make the conditions (interface → condition) real on every path; the sequence of losses follows `seed`."""

    def clear(self) -> None:
        """Take every condition away."""

    def state(self) -> Mapping[str, Any]:
        """What is applied now, as the shaper itself says."""

    def counters(self) -> Mapping[str, int]:
        """Packets and bytes in, out, dropped, as ``"wlan0.up.packets_in"``."""

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure every path end to end, all at once.

        Raises:
            ProbeError: a path does not answer.
        """
