"""One transport beside another, block by block: everything that is said of the two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mplab.analysis.statistics.correction import benjamini_hochberg, holm
from mplab.analysis.statistics.distribution import QuantileShift, kolmogorov_smirnov, quantile_shifts
from mplab.analysis.statistics.effects import Interval, cliffs_delta
from mplab.analysis.statistics.paired import (
    Significance,
    bca_interval,
    differences,
    dominance,
    hodges_lehmann,
    signed_rank_interval,
    signed_rank_test,
)
from mplab.analysis.statistics.power import needed_pairs

SIGNED_RANK, BCA = "signed rank", "BCa bootstrap"


@dataclass(frozen=True)
class Contrast:
    """``transport`` against ``reference``: differences are of the former less the latter, in the metric's unit.

    Blocks in which one of them has no value are left out.
    """

    transport: str
    reference: str
    pairs: int
    shift: float
    """Hodges and Lehmann's estimate of the difference."""
    signed_rank: Interval | None
    """From six pairs on; see `mplab.analysis.statistics.paired.signed_rank_interval`."""
    bootstrap: Interval | None
    """BCa, from three pairs on."""
    test: Significance | None
    dominance: float
    cliffs_delta: float
    ks: tuple[float, float] | None
    """Kolmogorov and Smirnov's distance, and its p."""
    quantiles: tuple[QuantileShift, ...]
    needed: int | None
    """Repetitions with which such an effect is seen with 80 % at the level of 5 %; None: there is no effect."""
    p_holm: float | None = None
    p_bh: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The one to read: of the signed ranks where there is one."""
        return self.signed_rank or self.bootstrap

    @property
    def interval_method(self) -> str:
        """Which one `interval` is."""
        if self.signed_rank is not None:
            return SIGNED_RANK
        return BCA if self.bootstrap is not None else ""

    @property
    def p(self) -> float | None:
        """Of the signed-rank test, for this contrast alone."""
        return self.test.p if self.test else None


def contrast(
    labels: tuple[str, str], sample: Mapping[int, float], reference: Mapping[int, float], seed: int
) -> Contrast | None:
    """What two transports' values by block say of each other; None when they share no block."""
    blocks = sorted(set(sample) & set(reference))
    if not blocks:
        return None
    own, other = [sample[block] for block in blocks], [reference[block] for block in blocks]
    found = differences(own, other)
    return Contrast(
        transport=labels[0],
        reference=labels[1],
        pairs=len(blocks),
        shift=hodges_lehmann(found),
        signed_rank=signed_rank_interval(found),
        bootstrap=bca_interval(found, seed),
        test=signed_rank_test(found),
        dominance=dominance(found),
        cliffs_delta=cliffs_delta(own, other),
        ks=kolmogorov_smirnov(own, other),
        quantiles=quantile_shifts(own, other, seed),
        needed=needed_pairs(found),
    )


def corrected(family: Sequence[Contrast]) -> list[Contrast]:
    """The same, each with its p corrected for all that have one."""
    tested = [place for place, one in enumerate(family) if one.p is not None]
    values = [one.p for one in family if one.p is not None]
    found = list(family)
    for place, strict, lenient in zip(tested, holm(values), benjamini_hochberg(values), strict=True):
        found[place] = replace(found[place], p_holm=strict, p_bh=lenient)
    return found
