"""Correct the p-values of the findings on claims for the number of findings, within a run or over several runs.

The method is that of Benjamini & Hochberg (1995), which controls the false discovery rate: the expected share of wrong
ones among the findings that are called certain. Each row of a table of claims is a separate statement, and one wrong
row does not make the others wrong; so the method need not control the chance of any wrong row (Holm 1979). The method
holds for independent tests and for tests with positive dependence (Benjamini & Yekutieli 2001), such as findings of
several transports against the same reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mplab.analysis.statistics.contrast import benjamini_hochberg

LEVEL = 0.05
"""Expected share of wrong ones among the certain findings."""


class Tested(Protocol):
    """A finding on a claim, such as `mplab.format.finding.ClaimFinding`."""

    @property
    def p(self) -> float | None:
        """Return the p-value, not corrected; None: there is no test."""

    @property
    def null(self) -> str:
        """Return the null hypothesis that the verdict rejects, such as ``outside the range``; "" without a test."""

    @property
    def verdict(self) -> str:
        """Return the verdict."""

    @property
    def certain(self) -> bool:
        """Return whether the interval supports the verdict as a whole."""


@dataclass(frozen=True)
class Correction:
    """Corrected p-value of a finding; ``confirmed``: the verdict is certain also after the correction."""

    p: float | None
    confirmed: bool


def correct(findings: Sequence[Tested], level: float = LEVEL) -> list[Correction]:
    """Return the correction of each finding, in their order, for all tests of ``findings``.

    A certain verdict stays certain if the corrected p is at most ``level``.
    """
    tested = [index for index, finding in enumerate(findings) if finding.p is not None]
    adjusted = benjamini_hochberg([p for finding in findings if (p := finding.p) is not None])
    corrected = dict(zip(tested, adjusted, strict=True))
    return [
        Correction(p := corrected.get(index), finding.certain and p is not None and p <= level)
        for index, finding in enumerate(findings)
    ]
