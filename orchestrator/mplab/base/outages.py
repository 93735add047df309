"""Times when a path of the phone was unusable because the experiment requested it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

RETURN_S = 5.0
"""Recovery time of a path after an outage: refused connections are retried at growing intervals."""


@dataclass(frozen=True)
class Outage:
    """Time in which an interface could not carry packets. Unix seconds; `end_s` is infinite while it lasts."""

    device: str
    begin_s: float
    end_s: float = inf


@dataclass
class Disturbances:
    """Effects of a cell's changes on its paths: intended reasons why a transport did not use a path."""

    outages: list[Outage] = field(default_factory=list)
    reshaped: set[str] = field(default_factory=set)
    """Interfaces whose condition changed."""
    rerouted_s: float = inf
    """Time from which the default route differs from that of the transport; Unix seconds, infinite: never."""

    absences: list[Outage] = field(default_factory=list)
    """Times when the phone's interface was down, so that routes used the other path.

    An outage can be longer than the absence, for example when the signal is lost first.
    """

    def begin(self, device: str, time_s: float) -> None:
        """Record the start of an outage. If one lasts already, it continues."""
        _begin(self.outages, device, time_s)

    def end(self, device: str, time_s: float) -> None:
        """Record the end of the outage, if there is one."""
        _end(self.outages, device, time_s)

    def leave(self, device: str, time_s: float) -> None:
        """Record that the interface goes down."""
        _begin(self.absences, device, time_s)

    def come_back(self, device: str, time_s: float) -> None:
        """Record that the interface is up again."""
        _end(self.absences, device, time_s)

    def down(self, device: str, time_s: float) -> bool:
        """Return whether the interface was down at `time_s`, the moments of the changes included."""
        return any(gone.device == device and gone.begin_s <= time_s <= gone.end_s for gone in self.absences)

    @property
    def devices(self) -> set[str]:
        """Interfaces with outages."""
        return {outage.device for outage in self.outages}

    def out(self, device: str, time_s: float) -> bool:
        """Return whether `time_s` lies in an outage of the interface or in the recovery time after one."""
        return any(
            outage.device == device and outage.begin_s <= time_s <= outage.end_s + RETURN_S for outage in self.outages
        )

    def excuse(self, devices: Iterable[str], begin_s: float, end_s: float) -> bool:
        """Return whether one of the interfaces was out, or recovering, for at least half of the given time.

        Such an interface need not have been used in that time.
        """
        return any(self._out_s(device, begin_s, end_s) * 2 >= end_s - begin_s for device in self.devices & set(devices))

    def _out_s(self, device: str, begin_s: float, end_s: float) -> float:
        """Return the time for which the interface was out, or recovering, between two times, seconds."""
        total, reached = 0.0, begin_s
        for outage in sorted((o for o in self.outages if o.device == device), key=lambda o: o.begin_s):
            first, last = max(outage.begin_s, reached), min(outage.end_s + RETURN_S, end_s)
            if last > first:
                total, reached = total + last - first, last
        return total


def _begin(times: list[Outage], device: str, time_s: float) -> None:
    if not any(time.device == device and time.end_s == inf for time in times):
        times.append(Outage(device, time_s))


def _end(times: list[Outage], device: str, time_s: float) -> None:
    times[:] = [
        Outage(device, time.begin_s, time_s) if time.device == device and time.end_s == inf else time for time in times
    ]
