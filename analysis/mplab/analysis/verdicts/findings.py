"""Decide which transport is better in a group, whether two are equivalent, or that the values show neither.

A group has the values of all transports for one metric with its labels, in one scenario under one link condition. The
question is whether the best multipath transport differs from the best single path. docs/statistics.md has the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, TypeAlias

from mplab.analysis.metric import Labels, Metric, in_unit
from mplab.analysis.statistics.contrast import Contrast
from mplab.analysis.statistics.effects import Interval, gain
from mplab.analysis.statistics.equivalence import equivalence_interval, equivalent, needed_for_equivalence
from mplab.analysis.statistics.paired import differences, hodges_lehmann
from mplab.analysis.statistics.power import FEWEST_PAIRS, LEVEL, needed_pairs
from mplab.analysis.statistics.summaries import Group, Series
from mplab.format.experiment import SmallestEffect

Verdict = Literal["better", "equivalent", "undecided", "too few"]
GroupKey: TypeAlias = tuple[str, str, str, Labels]


@dataclass(frozen=True)
class PairFinding:
    """The comparison of two transports of a group, with its verdict.

    Attributes:
        sample: the best multipath transport; the best transport if the group lacks multipath transports or single
            paths.
        reference: the best single path; the second-best transport if the group lacks one of both kinds.
        verdict: ``better``, ``equivalent``, ``undecided``, or ``too few``: with this number of blocks, no difference
            can be significant.
        winner: the better transport; None unless the verdict is ``better``.
        pairs: number of blocks in which both transports have a value.
        shift: estimate of sample - reference, in the metric's unit; None without a common block.
        shift_interval: 95 % interval of `shift`.
        equivalence: 90 % interval of `shift`.
        smallest: smallest effect of interest, in the metric's unit.
        p: p of the signed-rank test, corrected for the `tests` of its family.
        tests: number of tests in the family: all contrasts of the headline metrics, or all others.
        needed: number of blocks that would support a verdict; None: unknown.
    """

    group: Group
    sample: Series
    reference: Series
    verdict: Verdict
    winner: Series | None
    pairs: int
    shift: float | None
    shift_interval: Interval | None
    equivalence: Interval | None
    smallest: float
    p: float | None
    tests: int
    needed: int | None

    @property
    def relative(self) -> float | None:
        """Return the improvement of the sample over the reference, as a fraction of the reference's median.

        For a multipath transport this is the gain G, from medians; else it is from `shift`. Positive: the sample is
        better. None if the median is not positive, or without a common block.
        """
        base = median(self.reference.numbers)
        if self.by_medians:
            return gain([base], median(self.sample.numbers), self.group.metric.better)
        return _improvement(self.shift, self.group.metric) / base if self.shift is not None and base > 0 else None

    @property
    def by_medians(self) -> bool:
        """Return whether the stated difference is that of the medians, not `shift`: the transports have a G."""
        compared = self.sample.comparison
        if compared is None or compared.gain is None or self.group.metric.unit == "%":
            return False
        return compared.baseline == self.reference.transport.label

    @property
    def relative_interval(self) -> Interval | None:
        """Return the 95 % interval of `relative`.

        It is the interval of G, if the transports have a G; else that of the shift, divided by the reference's median.
        """
        if self.by_medians and self.sample.comparison is not None:
            return self.sample.comparison.gain_interval
        base, interval = median(self.reference.numbers), self.shift_interval
        if interval is None or base <= 0:
            return None
        ends = sorted(_improvement(end, self.group.metric) / base for end in (interval.low, interval.high))
        return Interval(ends[0], ends[1])


def smallest_effect(metric: Metric, reference: float, smallest: SmallestEffect) -> float:
    """Return the smallest effect of interest in the metric's unit, for a reference with the median ``reference``."""
    relative = abs(reference) * smallest.relative_percent / 100
    time = in_unit(smallest.time_s, "s", metric.unit)
    return max(relative, time) if time is not None else relative


def find(groups: Sequence[Group], smallest: SmallestEffect) -> dict[GroupKey, PairFinding]:
    """Return key of the group → finding, for each group with a better side and values of two transports."""
    tests = {headline: _tests(groups, headline=headline) for headline in (True, False)}
    compared = [group for group in groups if not group.metric.traced]
    found = ((group.key, _find(group, smallest, tests[group.metric.headline])) for group in compared)
    return {key: finding for key, finding in found if finding is not None}


def _tests(groups: Sequence[Group], *, headline: bool) -> int:
    """Return the number of tests in a family; before there are enough blocks for any test, that of its contrasts."""
    family = [contrast for group in groups if group.metric.headline is headline for contrast in group.contrasts]
    return sum(contrast.p is not None for contrast in family) or len(family)


def _find(group: Group, smallest: SmallestEffect, tests: int) -> PairFinding | None:
    pair = _pair(group.measured, group.metric)
    if pair is None:
        return None
    sample, reference = pair
    own, other = sample.by_block, reference.by_block
    blocks = sorted(set(own) & set(other))
    effect = smallest_effect(group.metric, median(reference.numbers), smallest)
    finding = PairFinding(
        group, sample, reference, "too few", None, len(blocks), None, None, None, effect, None, tests, None
    )
    if not blocks:
        return finding
    diffs = differences([own[block] for block in blocks], [other[block] for block in blocks])
    shift, interval, p = hodges_lehmann(diffs), equivalence_interval(diffs), None
    contrast = _contrast(group, sample, reference)
    if contrast is not None:
        flipped = contrast.transport != sample.transport.label
        shift_interval = _mirrored(contrast.interval) if flipped else contrast.interval
        finding, p = replace(finding, shift_interval=shift_interval, p=contrast.p_family), contrast.p_family
    finding = replace(finding, shift=shift, equivalence=interval)
    if equivalent(interval, effect):
        return replace(finding, verdict="equivalent")
    if p is not None and p <= LEVEL:
        improved = _improvement(shift, group.metric)
        apart = median(sample.numbers) - median(reference.numbers)
        if abs(shift) >= effect and apart * shift >= 0:
            return replace(finding, verdict="better", winner=sample if improved > 0 else reference)
        return replace(finding, verdict="undecided", needed=needed_for_equivalence(diffs, effect))
    needed = needed_for_equivalence(diffs, effect) if abs(shift) < effect else None
    if needed is None and (needed := needed_pairs(diffs, LEVEL / max(tests, 1))) is not None:
        needed = max(needed, FEWEST_PAIRS, len(blocks) + 1)
    few = len(blocks) < FEWEST_PAIRS
    return replace(finding, verdict="too few" if few else "undecided", needed=FEWEST_PAIRS if few else needed)


def _pair(measured: Sequence[Series], metric: Metric) -> tuple[Series, Series] | None:
    """Return the two series to compare: (best multipath, best single path), or else (best, second-best)."""
    if metric.better == "neither" or len(measured) < 2:
        return None
    sign = 1 if metric.better == "lower" else -1
    ranked = sorted(measured, key=lambda series: sign * median(series.numbers))
    several = [series for series in ranked if not series.transport.single_path]
    singles = [series for series in ranked if series.transport.single_path]
    return (several[0], singles[0]) if several and singles else (ranked[0], ranked[1])


def _contrast(group: Group, sample: Series, reference: Series) -> Contrast | None:
    labels = {sample.transport.label, reference.transport.label}
    return next((c for c in group.contrasts if {c.transport, c.reference} == labels), None)


def _improvement(shift: float, metric: Metric) -> float:
    return -shift if metric.better == "lower" else shift


def _mirrored(interval: Interval | None) -> Interval | None:
    return Interval(-interval.high, -interval.low) if interval else None
