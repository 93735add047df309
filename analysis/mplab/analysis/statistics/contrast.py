"""Compare two transports block by block, correct p-values for many comparisons, and define the report's numbers.

A block is one repetition of every combination of scenario, link and transport.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from mplab.analysis.statistics.distribution import QuantileShift, kolmogorov_smirnov, quantile_shifts
from mplab.analysis.statistics.effects import Interval, cliffs_delta, magnitude
from mplab.analysis.statistics.paired import (
    Significance,
    bca_interval,
    differences,
    dominance,
    geometric_ratio,
    hodges_lehmann,
    signed_rank_interval,
    signed_rank_test,
    step_down,
)
from mplab.analysis.statistics.power import METHOD, needed_pairs
from mplab.analysis.text import DASH, number, p_text, signed, signed_share, spread

SIGNED_RANK, BCA = "signed rank", "BCa bootstrap"
MOST_NEEDED = 999
"""Largest number of needed repetitions that the report shows."""


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted so that they control the family-wise error rate (Holm 1979)."""
    sample = np.asarray(values, dtype=float)
    order = np.argsort(sample, kind="stable")
    steps = np.maximum.accumulate(sample[order] * np.arange(len(sample), 0, -1))
    adjusted = np.empty_like(sample)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(p) for p in adjusted]


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted so that they control the false discovery rate (Benjamini & Hochberg 1995)."""
    return [float(p) for p in scipy.stats.false_discovery_control(values, method="bh")] if len(values) else []


@dataclass(frozen=True)
class Contrast:
    """A comparison of two transports block by block, in one metric.

    Differences are ``transport`` minus ``reference``, in the metric's unit. Blocks in which one of them has no value
    are left out.
    """

    transport: str
    reference: str
    pairs: int
    shift: float
    """Hodges and Lehmann's estimate of the difference."""
    signed_rank: Interval | None
    """Signed-rank interval of `shift`; needs six pairs (`mplab.analysis.statistics.paired.signed_rank_interval`)."""
    bootstrap: Interval | None
    """BCa interval of `shift`; needs 3 to 50 pairs (`mplab.analysis.statistics.paired.bca_interval`)."""
    test: Significance | None
    dominance: float
    cliffs_delta: float
    ks: tuple[float, float] | None
    """(Kolmogorov and Smirnov's distance of the two distributions, p of its test)."""
    quantiles: tuple[QuantileShift, ...]
    needed: int | None
    """Number of repetitions that detects an effect of this size with a power of 80 % at the level of 5 %.

    None: there is no effect, or only one pair.
    """
    differences: Mapping[int, float]
    """Block → difference."""
    ratio: tuple[float, Interval | None] | None
    """(geometric mean of the blocks' ratios, its interval); None unless all values are positive."""
    p_family: float | None = None
    """``p`` corrected by the joint permutation test of Westfall and Young; set by `corrected`."""
    p_bh: float | None = None
    """``p`` corrected by the method of Benjamini and Hochberg; set by `corrected`."""

    @property
    def interval(self) -> Interval | None:
        """Return the signed-rank interval; with too few pairs for it, the bootstrap interval."""
        return self.signed_rank or self.bootstrap

    @property
    def interval_method(self) -> str:
        """Return the name of the method that computed `interval`; "" without an interval."""
        if self.signed_rank is not None:
            return SIGNED_RANK
        return BCA if self.bootstrap is not None else ""

    def scaled(self, factor: float) -> "Contrast":
        """Return the contrast with its shifts and their intervals multiplied by ``factor``, for a smaller unit."""

        def times(interval: Interval | None) -> Interval | None:
            return Interval(interval.low * factor, interval.high * factor) if interval else None

        return replace(
            self,
            shift=self.shift * factor,
            signed_rank=times(self.signed_rank),
            bootstrap=times(self.bootstrap),
            differences={block: difference * factor for block, difference in self.differences.items()},
            quantiles=tuple(
                QuantileShift(q.quantile, q.value * factor, q.reference * factor, times(q.interval))
                for q in self.quantiles
            ),
        )

    @property
    def p(self) -> float | None:
        """Return the p-value of the signed-rank test, not corrected for other contrasts."""
        return self.test.p if self.test else None


def contrast(
    labels: tuple[str, str], sample: Mapping[int, float], reference: Mapping[int, float], seed: int
) -> Contrast | None:
    """Compare the values of two transports block by block; return None when no block has values of both.

    Args:
        labels: the transport and its reference.
        sample: block → value of the transport.
        reference: block → value of the reference.
        seed: seed of the bootstrap.
    """
    blocks = sorted(set(sample) & set(reference))
    if not blocks:
        return None
    own, other = [sample[block] for block in blocks], [reference[block] for block in blocks]
    diffs = differences(own, other)
    return Contrast(
        transport=labels[0],
        reference=labels[1],
        pairs=len(blocks),
        shift=hodges_lehmann(diffs),
        signed_rank=signed_rank_interval(diffs),
        bootstrap=bca_interval(diffs, seed),
        test=signed_rank_test(diffs),
        dominance=dominance(diffs),
        cliffs_delta=cliffs_delta(own, other),
        ks=kolmogorov_smirnov(own, other),
        quantiles=quantile_shifts(own, other, seed),
        needed=needed_pairs(diffs),
        differences={block: float(difference) for block, difference in zip(blocks, diffs, strict=True)},
        ratio=geometric_ratio(own, other),
    )


def corrected(family: Sequence[Contrast], seed: int) -> list[Contrast]:
    """Return the contrasts with ``p_family`` and ``p_bh`` set: p corrected for all tests in ``family``.

    ``p_family`` is never below ``p``, so that it does not contradict the signed-rank interval.

    Args:
        family: contrasts of one run; equal block numbers mean the same block.
        seed: seed of the random signs, which many blocks need.
    """
    indices = [index for index, member in enumerate(family) if member.p is not None]
    values = [member.p for member in family if member.p is not None]
    joint = step_down([family[index].differences for index in indices], seed)
    result = list(family)
    for index, p, strict, lenient in zip(indices, values, joint, benjamini_hochberg(values), strict=True):
        result[index] = replace(result[index], p_family=max(p, strict), p_bh=lenient)
    return result


@dataclass(frozen=True)
class PageColumn:
    """A column of the table of contrasts in the report; ``note`` returns a small second line of the table cell.

    ``in_unit``: the numbers are in the unit of the table; ``printed``: the column is on paper, too.
    """

    title: str
    text: Callable[[Contrast], str]
    note: Callable[[Contrast], str] = lambda _: ""
    in_unit: bool = False
    printed: bool = True


@dataclass(frozen=True)
class Word:
    """An entry of the report's glossary."""

    word: str
    meaning: str
    source: str


@dataclass(frozen=True)
class ContrastField:
    """A number of a `Contrast`, with its key or column in each file of the report.

    ``value`` returns a number, a text, a list for JSON, or an `Interval`: two ends in JSON, two columns in CSV.
    """

    name: str
    """Key in ``summary.json``."""
    value: Callable[[Contrast], object]
    csv: tuple[str, ...]
    """Columns in ``contrasts.csv``; empty: JSON only."""
    page: PageColumn | None = None
    word: Word | None = None


CONTRAST_FIELDS = (
    ContrastField("pairs", lambda c: c.pairs, ("pairs",), PageColumn("pairs", lambda c: str(c.pairs))),
    ContrastField(
        "shift", lambda c: c.shift, ("shift",), PageColumn("Δ by block", lambda c: signed(c.shift), in_unit=True)
    ),
    ContrastField(
        "interval",
        lambda c: c.interval,
        ("low", "high"),
        PageColumn("95 % interval", lambda c: _interval_text(c.interval), lambda c: c.interval_method, in_unit=True),
    ),
    ContrastField("interval_method", lambda c: c.interval_method, ("interval",)),
    ContrastField("bootstrap", lambda c: c.bootstrap, ("bootstrap_low", "bootstrap_high")),
    ContrastField(
        "p",
        lambda c: c.p,
        ("p",),
        PageColumn("p alone", lambda c: p_text(c.p), lambda c: c.test.name if c.test else "", printed=False),
    ),
    ContrastField("test", lambda c: c.test.name if c.test else "", ("test",)),
    ContrastField("least_p", lambda c: c.test.least_p if c.test else None, ("least_p",)),
    ContrastField(
        "p_family", lambda c: c.p_family, ("p_family",), PageColumn("p family", lambda c: p_text(c.p_family))
    ),
    ContrastField("p_bh", lambda c: c.p_bh, ("p_bh",), PageColumn("p BH", lambda c: p_text(c.p_bh), printed=False)),
    ContrastField(
        "dominance",
        lambda c: c.dominance,
        ("dominance",),
        PageColumn("dominance", lambda c: signed_share(c.dominance)),
        Word(
            "Dominance",
            "The share of blocks in which the transport's value is greater, less the share in which it is smaller.",
            "Cliff 1993",
        ),
    ),
    ContrastField(
        "ratio",
        lambda c: c.ratio[0] if c.ratio else None,
        ("ratio",),
        PageColumn(
            "ratio",
            lambda c: number(c.ratio[0]) if c.ratio else DASH,
            lambda c: _interval_text(c.ratio[1]) if c.ratio and c.ratio[1] else "",
        ),
        Word(
            "Ratio",
            "The geometric mean of the blocks' ratios, transport by reference, with its 95 % t interval: 0.80 means "
            "20 % less than the reference. A dash when a value is not positive.",
            "Fleming & Wallace 1986",
        ),
    ),
    ContrastField("ratio_interval", lambda c: c.ratio[1] if c.ratio else None, ("ratio_low", "ratio_high")),
    ContrastField("cliffs_delta", lambda c: c.cliffs_delta, ("cliffs_delta",)),
    ContrastField("magnitude", lambda c: magnitude(c.cliffs_delta), ()),
    ContrastField(
        "ks",
        lambda c: c.ks[0] if c.ks else None,
        ("ks",),
        PageColumn("KS", lambda c: f"{c.ks[0]:.2f}, {p_text(c.ks[1], 'p')}" if c.ks else DASH, printed=False),
        Word(
            "KS",
            "The greatest distance between the two cumulative distributions, 0 to 1, and the p of its test, not "
            "corrected. The next column has the shifts at five quantiles; a large last one shows a longer tail.",
            "Kolmogorov 1933; Smirnov 1939; Doksum 1974",
        ),
    ),
    ContrastField("ks_p", lambda c: c.ks[1] if c.ks else None, ("ks_p",)),
    ContrastField(
        "quantiles",
        lambda c: [{"quantile": q.quantile, "shift": q.shift, "interval": ends(q.interval)} for q in c.quantiles],
        (),
        PageColumn(
            "Δ at 10 / 25 / 50 / 75 / 90 %",
            lambda c: " / ".join(signed(at.shift) for at in c.quantiles) or DASH,
            in_unit=True,
            printed=False,
        ),
    ),
    ContrastField(
        "needed",
        lambda c: c.needed,
        ("needed",),
        PageColumn("needed", lambda c: _needed_text(c.needed)),
        Word(
            "Needed",
            "Repetitions that detect an effect of this size with a power of 80 % at the level of 5 %, by the normal "
            "approximation, not corrected for many contrasts. With few blocks, the effect can be far from the true "
            "one, and so can this number: use it to plan the next run.",
            "Noether 1987",
        ),
    ),
    ContrastField("needed_method", lambda c: METHOD if c.needed is not None else "", ()),
)
"""The numbers of a contrast, in the order of ``summary.json``, ``contrasts.csv`` and the page's table of contrasts."""


def ends(interval: Interval | None) -> tuple[float, float] | None:
    """Return (low, high) of an interval; None without an interval."""
    return (interval.low, interval.high) if interval else None


def _interval_text(interval: Interval | None) -> str:
    return spread(interval.low, interval.high) if interval else DASH


def _needed_text(needed: int | None) -> str:
    if needed is None:
        return DASH
    return str(needed) if needed <= MOST_NEEDED else f"> {MOST_NEEDED}"
