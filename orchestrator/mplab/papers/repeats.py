"""Compare a further run of an experiment with its recorded result: does each finding agree?"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from mplab.format.finding import ClaimFinding, Ends
from mplab.format.paperresult import ClaimResult, PaperResult


@dataclass(frozen=True)
class Repeat:
    """A finding as recorded, and as found again if the further run has its group."""

    figure: str
    text: str
    recorded: ClaimFinding
    again: ClaimFinding | None

    @property
    def agrees(self) -> bool | None:
        """Return whether the intervals overlap, or the only interval holds the other estimate.

        None: neither run has an interval, or one lacks an estimate.
        """
        if self.again is None:
            return None
        one, two = _range(self.recorded), _range(self.again)
        if one is None or two is None or (self.recorded.interval is None and self.again.interval is None):
            return None
        return one[0] <= two[1] and two[0] <= one[1]

    @property
    def same_verdict(self) -> bool | None:
        """Return whether both runs have the same verdict; None: the further run does not have it."""
        return None if self.again is None else self.again.verdict == self.recorded.verdict


def _range(finding: ClaimFinding) -> tuple[float, float] | None:
    """Return the ends of the interval, or the estimate as both; None: there is no estimate."""
    if finding.estimate is None:
        return None
    ends: Ends = finding.interval or (finding.estimate, finding.estimate)
    low, high = ends
    return (-float("inf") if low is None else low, float("inf") if high is None else high)


def repeats(recorded: PaperResult, again: PaperResult) -> Iterator[Repeat]:
    """Yield the recorded findings that have an estimate, in their order, with those of a further run."""
    found = {key: finding for key, _, finding in _findings(again)}
    for key, claim, finding in _findings(recorded):
        yield Repeat(claim.figure, claim.text, finding, found.get(key))


def _findings(result: PaperResult) -> Iterator[tuple[Hashable, ClaimResult, ClaimFinding]]:
    """Yield (key, claim, finding) of the findings that have an estimate.

    Claims of a figure with the same text are distinguished by their order.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for claim in result.claims:
        name = claim.figure, claim.text
        seen[name] += 1
        for finding in claim.found:
            group = finding.scenario, finding.link, frozenset(finding.labels.items())
            if finding.estimate is not None:
                yield (name, seen[name], group), claim, finding
