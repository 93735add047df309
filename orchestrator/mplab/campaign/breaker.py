"""When a resource that goes wrong again and again is left alone: for a while, then until somebody has looked at it."""

from dataclasses import dataclass
from typing import Literal

from mplab.format.campaign import ResourceStatus


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker of a phone, router, server or lab.

    Attributes:
        failures: after so many tries in a row that went wrong it rests.
        rest_s: so long, seconds; then one try decides.
        rests: so often in a row; then it is in quarantine.
    """

    failures: int
    rest_s: float
    rests: int

    def judge(self, status: ResourceStatus) -> Literal["use", "rest", "quarantine"]:
        """What becomes of a resource after the try that `status` has counted."""
        if status.failures < self.failures:
            return "use"
        return "rest" if status.rests < self.rests else "quarantine"

    @staticmethod
    def usable(status: ResourceStatus, now: float) -> bool:
        """Whether it may be used at `now`, Unix seconds."""
        rests = status.rests_until is not None and now < status.rests_until
        return not (status.job or status.quarantined or rests)
