"""Times when a path of the phone was unusable because of link changes that the experiment requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

RETURN_S = 5.0
"""Recovery time of a path after an outage, seconds: refused connections are retried at growing intervals."""


@dataclass(frozen=True)
class Outage:
    """A period in which the interface `device` carries no packets; `end_s` is infinite while the outage lasts.

    Both times are Unix seconds.
    """

    device: str
    begin_s: float
    end_s: float = inf


@dataclass
class Disturbances:
    """Effects of an experiment's link changes on the paths in one cell.

    A transport that avoids a path because of these effects is not at fault.
    """

    outages: list[Outage] = field(default_factory=list)
    reshaped: set[str] = field(default_factory=set)
    """Interfaces whose link condition changed during the scenario."""
    rerouted_s: float = inf
    """Time of the first change of the phone's default route, Unix seconds; infinite: no change."""

    absences: list[Outage] = field(default_factory=list)
    """Times when an interface of the phone was down, so that the phone's routes used its other interface.

    An outage can be longer than the absence in it, for example if the radio is off before the interface goes down.
    """

    def begin(self, device: str, time_s: float) -> None:
        """Record that an outage of the interface starts; do nothing if an earlier outage of it has not ended."""
        _begin(self.outages, device, time_s)

    def end(self, device: str, time_s: float) -> None:
        """Record the end of the interface's current outage, if there is one."""
        _end(self.outages, device, time_s)

    def leave(self, device: str, time_s: float) -> None:
        """Record that the interface goes down at `time_s`, Unix seconds; do nothing if it is already down."""
        _begin(self.absences, device, time_s)

    def come_back(self, device: str, time_s: float) -> None:
        """Record that the interface is up again from `time_s` on, Unix seconds; do nothing if it was not down."""
        _end(self.absences, device, time_s)

    def down(self, device: str, time_s: float) -> bool:
        """Return whether the interface was down at `time_s`, Unix seconds; both ends of an absence count as down."""
        return any(gone.device == device and gone.begin_s <= time_s <= gone.end_s for gone in self.absences)

    @property
    def devices(self) -> set[str]:
        """Names of the interfaces that had at least one outage."""
        return {outage.device for outage in self.outages}

    def out(self, device: str, time_s: float) -> bool:
        """Return whether `time_s` lies in an outage of the interface or in the recovery time after one."""
        return any(
            outage.device == device and outage.begin_s <= time_s <= outage.end_s + RETURN_S for outage in self.outages
        )

    def excuse(self, devices: Iterable[str], begin_s: float, end_s: float) -> bool:
        """Return whether an interface in `devices` was unusable for at least half of `begin_s` … `end_s`, Unix seconds.

        An interface is unusable during an outage and in the recovery time after it. If the
        result is True, a transport that did not use that interface in this time is not at fault.
        """
        return any(self._out_s(device, begin_s, end_s) * 2 >= end_s - begin_s for device in self.devices & set(devices))

    def _out_s(self, device: str, begin_s: float, end_s: float) -> float:
        """Return the seconds of outage and recovery time of the interface between `begin_s` and `end_s`."""
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
