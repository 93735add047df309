"""When a path of the phone was not to be used, because the experiment asked for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

RETURN_S = 5.0
"""After an outage a path is not there at once: connections that were refused try again at growing intervals."""


@dataclass(frozen=True)
class Outage:
    """One time that an interface could not carry anything; `end_s` is infinite while it lasts. Unix seconds."""

    device: str
    begin_s: float
    end_s: float = inf


@dataclass
class Disturbances:
    """What the changes of a cell did to its paths: the intended reasons why a transport did not use one."""

    outages: list[Outage] = field(default_factory=list)
    reshaped: set[str] = field(default_factory=set)
    """Interfaces whose condition changed."""
    rerouted_s: float = inf
    """Since when the default route goes another way than the transport's; unix seconds."""

    absences: list[Outage] = field(default_factory=list)
    """When the phone had not even the interface: routes went another way. An outage can be longer, as when a signal is
    lost first."""

    def begin(self, device: str, time_s: float) -> None:
        """An outage begins; one that lasts already goes on."""
        _begin(self.outages, device, time_s)

    def end(self, device: str, time_s: float) -> None:
        """The outage that lasts, if any, is over."""
        _end(self.outages, device, time_s)

    def leave(self, device: str, time_s: float) -> None:
        """The interface goes down."""
        _begin(self.absences, device, time_s)

    def come_back(self, device: str, time_s: float) -> None:
        """The interface is up again."""
        _end(self.absences, device, time_s)

    def down(self, device: str, time_s: float) -> bool:
        """Whether the interface was down at `time_s`, or at that moment being taken down or up."""
        return any(gone.device == device and gone.begin_s <= time_s <= gone.end_s for gone in self.absences)

    @property
    def devices(self) -> set[str]:
        """Interfaces with outages."""
        return {outage.device for outage in self.outages}

    def out(self, device: str, time_s: float) -> bool:
        """Whether `time_s` is in an outage of the interface, or so little after it that nothing need work yet."""
        return any(
            outage.device == device and outage.begin_s <= time_s <= outage.end_s + RETURN_S for outage in self.outages
        )

    def excuse(self, devices: Iterable[str], begin_s: float, end_s: float) -> bool:
        """Whether one of the interfaces was out for half of a time or more, so that it need not have been used then."""
        return any(self._out_s(device, begin_s, end_s) * 2 >= end_s - begin_s for device in self.devices & set(devices))

    def _out_s(self, device: str, begin_s: float, end_s: float) -> float:
        """How long the interface was out, and coming back, between two times."""
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
