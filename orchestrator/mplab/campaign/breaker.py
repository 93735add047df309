"""Stop using a resource after repeated failures: for a time, then until someone has checked it."""

from dataclasses import dataclass
from typing import Literal

from mplab.format.campaign import ResourceStatus


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker of a phone, router, server or lab.

    Attributes:
        failures: number of consecutive bad tries after which the resource rests.
        rest_s: duration of a rest, seconds; the next try decides whether it rests again.
        rests: number of consecutive rests after which the resource is in quarantine.
    """

    failures: int
    rest_s: float
    rests: int

    def judge(self, status: ResourceStatus) -> Literal["use", "rest", "quarantine"]:
        """Return what to do with a resource after a failed try: use it again, let it rest, or put it in quarantine.

        `status` already counts this failure.
        """
        if status.failures < self.failures:
            return "use"
        return "rest" if status.rests < self.rests else "quarantine"

    @staticmethod
    def usable(status: ResourceStatus, now: float) -> bool:
        """Return whether the resource may be used at `now`, Unix seconds."""
        rests = status.rests_until is not None and now < status.rests_until
        return not (status.job or status.quarantined or rests)
