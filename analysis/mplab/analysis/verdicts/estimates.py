"""Estimate the quantities of claims, such as a gain or a trend, with their intervals and tests.

All intervals are expanded percentile intervals of a bootstrap in which the cell is the block: see
`mplab.analysis.statistics.resampling`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np

from mplab.analysis.metric import Labels, Metric, in_unit, label_sort_key
from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, RESAMPLES, Interval, Sample, seed_of
from mplab.analysis.statistics.equivalence import CONFIDENCE as EQUIVALENCE
from mplab.analysis.statistics.resampling import cell_statistic, draws, least_p, percentile_interval, resampled, tail
from mplab.analysis.statistics.summaries import Analysis, Group, Series
from mplab.analysis.verdicts.findings import smallest_effect
from mplab.analysis.verdicts.judging import ClaimedBounds, Null, bounds_of
from mplab.format.claim import LINKS, Claim, Verdict
from mplab.format.experiment import SmallestEffect

FEWEST_PAIRS = 4
"""Minimum number of cells for a correlation."""

_LEAST = float(np.finfo(float).tiny)
"""Smallest effect of interest in a unit without one: every difference counts."""

Tests: TypeAlias = Mapping[Verdict, tuple[Null, float | None]]
"""Verdict → null hypothesis that it rejects, with the p-value, not corrected; None: there is no test."""


class UnmeasuredError(Exception):
    """The run has no data for a claim in one group; the message names the missing data."""


@dataclass(frozen=True)
class Place:
    """A group that a claim is about: a scenario under one or more link conditions, with some labels of the metric."""

    scenario: str
    links: tuple[str, ...]
    labels: Labels


@dataclass(frozen=True)
class ClaimEstimate:
    """The quantity of a claim in one group; see `mplab.format.finding.ClaimFinding`.

    ``opposite``: the transport is worse at the first point of a trend and better at the last one.
    """

    value: float | None
    interval: Interval | None
    bounds: ClaimedBounds
    unit: str
    transport: Series
    baseline: Series | None
    cells: tuple[int, ...]
    values: int
    tests: Tests
    opposite: bool = False


@dataclass(frozen=True)
class _Sample:
    """The values of a transport: those of each cell, their statistic, and the statistic of each resample of cells."""

    series: Series
    by_cell: Mapping[str, tuple[float, ...]]
    statistic: float
    drawn: Sample | None

    @property
    def n(self) -> int:
        return len(self.by_cell)

    @property
    def values(self) -> int:
        return sum(map(len, self.by_cell.values()))


@dataclass(frozen=True)
class _Quantity:
    """A quantity of a transport in a unit, mostly percent: its value, and that of each resample.

    ``beside`` has the reference, or the other points of a trend. ``least_p`` is the smallest possible one-sided p.
    """

    value: float
    drawn: Sample | None
    bounds: ClaimedBounds
    least_p: float
    mine: _Sample
    beside: Sequence[_Sample]
    compared: bool
    unit: str = "%"

    def estimate(self, confidence: float, tests: Tests) -> ClaimEstimate:
        return ClaimEstimate(
            self.value,
            percentile_interval(self.drawn, min(self.mine.n, *(sample.n for sample in self.beside)), confidence),
            self.bounds,
            self.unit,
            self.mine.series,
            self.beside[0].series if self.compared else None,
            (self.mine.n, *(sample.n for sample in self.beside)),
            self.mine.values,
            tests,
        )


@dataclass
class Estimator:
    """Estimates the quantities of claims from the statistics of a run. Resamples are kept, since claims share them."""

    analysis: Analysis
    _groups: dict[tuple[str, str, str], list[Group]] = field(init=False)
    _kept: dict[tuple[object, ...], _Sample] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the groups by scenario, link condition and metric."""
        self._groups = defaultdict(list)
        for group in self.analysis.groups:
            self._groups[group.scenario, group.link, group.metric.name].append(group)

    def metric(self, name: str) -> Metric | None:
        """Return the metric of this name; None if no cell has a value of it."""
        return next((group.metric for group in self.analysis.groups if group.metric.name == name), None)

    def labels(self, metric: str, scenario: str, link: str) -> list[Labels]:
        """Return the labels of a metric that have values, in a scenario under a link condition."""
        return [group.labels for group in self._groups.get((scenario, link, metric), ())]

    def estimate(self, claim: Claim, metric: Metric, place: Place) -> ClaimEstimate:
        """Return the quantity of a claim in one group. Raises `UnmeasuredError`."""
        if claim.claimed is None:
            raise UnmeasuredError("the claim has no number")
        if claim.kind == "correlation":
            return self._correlation(claim, metric, place)
        if claim.trend is not None:
            return self._trend(claim, metric, place)
        if claim.of_pairs:
            return self._paired(claim, metric, place)
        mine = self._sample(claim, metric, (place.scenario, place.links[0]), claim.transport, place.labels)
        if claim.kind in ("gain", "no_difference"):
            others = self._others(claim, metric, (place.scenario, place.links[0]), place.labels)
            return self._compared(claim, metric, mine, others)
        return _valued(claim, metric, mine, self._preferences)

    @property
    def _preferences(self) -> SmallestEffect:
        return self.analysis.run.manifest.experiment.smallest_effect

    def _compared(self, claim: Claim, metric: Metric, mine: _Sample, others: Sequence[_Sample]) -> ClaimEstimate:
        """Return the difference from the best reference, relative to it.

        A claimed direction needs no relative difference: that from a reference of 0 is in the metric's unit.
        """
        sign = -1.0 if metric.better == "lower" and claim.kind == "gain" else 1.0
        best = _best(metric, others)
        base = best.statistic
        relative = base != 0 or claim.claimed is None or claim.claimed.word is None
        if relative and base <= 0:
            raise UnmeasuredError(
                f"{best.series.transport.label} has the value {base:g}: there is no relative difference"
            )
        difference = sign * (mine.statistic - base)
        value = 100 * difference / base if relative else difference
        drawn = None
        if mine.drawn is not None and all(other.drawn is not None for other in others):
            bases = _best_drawn(metric, others)
            drawn = sign * (mine.drawn - bases)
            if relative:
                with np.errstate(divide="ignore", invalid="ignore"):
                    drawn = 100 * drawn / np.where(bases > 0, bases, np.nan)
        least = least_p(mine.n, min(other.n for other in others))
        if relative:
            smallest, unit = self._smallest(metric, base), "%"
        else:
            smallest, unit = smallest_effect(metric, 0.0, self._preferences) or _LEAST, metric.unit
        bounds = bounds_of(claim, self._preferences, smallest)
        quantity = _Quantity(value, drawn, bounds, least, mine, (best,), compared=True, unit=unit)
        return _equivalence(quantity) if claim.kind == "no_difference" else _effect(quantity)

    def _smallest(self, metric: Metric, reference: float) -> float:
        """Return the smallest effect of interest in percent of a reference."""
        return 100 * smallest_effect(metric, reference, self._preferences) / abs(reference)

    def _trend(self, claim: Claim, metric: Metric, place: Place) -> ClaimEstimate:
        trend = claim.trend
        if trend is None:
            raise UnmeasuredError("the claim has no trend")
        points = self._points(claim, place)
        if len(points) < 2:
            raise UnmeasuredError(f"{len(points)} points: a trend needs two")
        at = np.array([position for position, _, _ in points], dtype=float)
        where = [((place.scenario, link), labels) for _, link, labels in points]
        mine = [self._sample(claim, metric, there, claim.transport, labels) for there, labels in where]
        if trend.form == "crossover":
            others = [self._others(claim, metric, there, labels) for there, labels in where]
            return _crossover(metric, at, mine, others, bounds_of(claim, self._preferences))
        first = mine[0].statistic
        if first == 0:
            raise UnmeasuredError("the value at the first point is 0: there is no relative change")
        value = float(_change(np.array([sample.statistic for sample in mine]), at))
        columns = [sample.drawn for sample in mine if sample.drawn is not None]
        drawn = _change(np.stack(columns, axis=1), at) if len(columns) == len(mine) else None
        least = least_p(*(sample.n for sample in mine))
        bounds = bounds_of(claim, self._preferences, self._smallest(metric, first))
        quantity = _Quantity(value, drawn, bounds, least, mine[0], mine[1:], compared=False)
        return _equivalence(quantity) if trend.form == "flat" else _effect(quantity)

    def _points(self, claim: Claim, place: Place) -> list[tuple[float, str, Labels]]:
        """Return (position, link, labels) of each point of a trend; the values of a label are sorted.

        Raises:
            UnmeasuredError: the claim's number of positions differs from that of its points.
        """
        if claim.trend is None or claim.trend.along == LINKS:
            known = claim.links or [link.name for link in self.analysis.run.manifest.experiment.links]
            positions = _positions(claim, known)
            return [(positions[link], link, place.labels) for link in place.links]
        (link,), name = place.links, claim.trend.along
        found = {
            value
            for labels in self.labels(claim.metric, place.scenario, link)
            for label, value in labels
            if label == name and set(place.labels) <= set(labels)
        }
        wanted = {*claim.labels.get(name, ())} or found
        ordered = sorted(wanted, key=lambda value: label_sort_key(((name, value),)))
        return [(at, link, (*place.labels, (name, value))) for value, at in _positions(claim, ordered).items()]

    def _correlation(self, claim: Claim, metric: Metric, place: Place) -> ClaimEstimate:
        other = self.metric(claim.other_metric)
        if other is None:
            raise UnmeasuredError(f"no cell has a value of {claim.other_metric}")
        pairs: list[tuple[float, float]] = []
        series = None
        for link, transport in product(place.links, (claim.transport, *claim.other_transports)):
            mine = self._sample(claim, metric, (place.scenario, link), transport, place.labels)
            with_labels = tuple(item for item in place.labels if item[0] in other.labels)
            second = self._sample(claim, other, (place.scenario, link), transport, with_labels)
            series = series or mine.series
            for cell in mine.by_cell:
                if cell in second.by_cell:
                    both = (mine.by_cell[cell], second.by_cell[cell])
                    pairs.append(tuple(cell_statistic([own], claim.statistic) for own in both))  # type: ignore[arg-type]
        if series is None or len(pairs) < FEWEST_PAIRS:
            raise UnmeasuredError(f"{len(pairs)} cells have both metrics: {FEWEST_PAIRS} are needed")
        first, last = np.array(pairs).T
        if np.ptp(first) == 0 or np.ptp(last) == 0:
            raise UnmeasuredError("a metric has the same value in all cells: there is no correlation")
        key = (place.scenario, *place.links, metric.name, other.name, place.labels, claim.transport)
        chosen = resampled(len(pairs), self._seed("correlation", *key))
        drawn = _correlations(first[chosen], last[chosen])
        drawn = drawn[np.isfinite(drawn)]
        value = float(_correlations(first[np.newaxis], last[np.newaxis])[0])
        bounds = bounds_of(claim, self._preferences)
        tests = _tests_of_effect(value, drawn, bounds, least_p(len(pairs)))
        interval = percentile_interval(drawn, len(pairs))
        return ClaimEstimate(value, interval, bounds, "", series, None, (len(pairs),), len(pairs), tests)

    def _paired(self, claim: Claim, metric: Metric, place: Place) -> ClaimEstimate:
        """Return the relative difference of pairs, or the share of better pairs, over all link conditions of a place.

        The cells of a pair are of one block and link condition. A resample draws pairs.
        """
        of_pair = partial(_is_better, metric) if claim.kind == "share" else _relative_difference
        by_pair: dict[str, tuple[float, ...]] = {}
        series: list[tuple[Series, Series]] = []
        for link in place.links:
            before = len(by_pair)
            for group in self._groups.get((place.scenario, link, metric.name), ()):
                mine, other = group.of(claim.transport), group.of(claim.against[0])
                if mine is not None and other is not None and _is_about(claim, group.labels, place.labels):
                    series.append((mine, other))
                    for cell, values in _pairs(mine, other, of_pair):
                        by_pair[cell] = (*by_pair.get(cell, ()), *values)
            if len(by_pair) == before:
                group_name = " · ".join((place.scenario, link, *(value for _, value in place.labels)))
                raise UnmeasuredError(f"no block has values of {claim.transport} and {claim.against[0]} ({group_name})")
        pairs, seed = list(by_pair.values()), self._seed("pairs", place, metric.name, claim.transport)
        if claim.kind == "share":
            value, drawn = cell_statistic(pairs, "mean"), _better_shares(pairs, seed)
        else:
            value, drawn = cell_statistic(pairs, claim.statistic), draws(pairs, claim.statistic, seed)
        mine, other = series[0]
        estimate = _valued(claim, replace(metric, unit="%"), _Sample(mine, by_pair, value, drawn), self._preferences)
        return replace(estimate, baseline=other, cells=(len(pairs), len(pairs)))

    def _others(self, claim: Claim, metric: Metric, where: tuple[str, str], labels: Labels) -> list[_Sample]:
        there = (claim.against_scenario or where[0], claim.against_link or where[1])
        return [self._sample(claim, metric, there, label, labels) for label in claim.against]

    def _sample(self, claim: Claim, metric: Metric, where: tuple[str, str], transport: str, labels: Labels) -> _Sample:
        """Return the values of a transport with these labels; values of the claim's pooled labels are joined by cell.

        Args:
            claim: the claim, with its statistic and its pooled labels.
            metric: the metric.
            where: scenario and link condition.
            transport: label of the transport.
            labels: labels of the metric that are not pooled.

        Raises:
            UnmeasuredError: there are no values.
        """
        scenario, link = where
        key = (scenario, link, metric.name, transport, labels, claim.statistic, claim.pooled_labels, str(claim.labels))
        if key not in self._kept:
            by_cell: dict[str, tuple[float, ...]] = {}
            series = None
            for group in self._groups.get((scenario, link, metric.name), ()):
                if _is_about(claim, group.labels, labels) and (own := group.of(transport)) is not None:
                    series = series or own
                    for value in own.values:
                        by_cell[value.cell] = (*by_cell.get(value.cell, ()), *value.values)
            if series is None:
                shown = " · ".join(value for _, value in labels)
                group_name = " · ".join(part for part in (scenario, link, shown) if part)
                raise UnmeasuredError(f"{transport} has no value of {metric.name} ({group_name})")
            cells = list(by_cell.values())
            seed = self._seed(scenario, link, metric.name, labels, transport)
            statistic = cell_statistic(cells, claim.statistic)
            self._kept[key] = _Sample(series, by_cell, statistic, draws(cells, claim.statistic, seed))
        return self._kept[key]

    def _seed(self, *key: object) -> int:
        return seed_of(self.analysis.run.manifest.experiment.seed, "claim", *key)


def _is_about(claim: Claim, labels: Labels, wanted: Labels) -> bool:
    """Return whether values with ``labels`` belong to the group with the labels ``wanted``."""
    allowed = all(value in claim.labels[name] for name, value in labels if name in claim.labels)
    kept = tuple(item for item in labels if item[0] not in claim.pooled_labels)
    return allowed and sorted(kept) == sorted(wanted)


def _positions(claim: Claim, points: Sequence[str]) -> dict[str, float]:
    """Return point of a trend → its position; points are links, or values of a label. Raises `UnmeasuredError`."""
    at = claim.trend.at if claim.trend is not None else ()
    if at and len(at) != len(points):
        raise UnmeasuredError(f"the claim has {len(at)} positions for {len(points)} points: {', '.join(points)}")
    return dict(zip(points, at or map(float, range(len(points))), strict=True))


def _valued(claim: Claim, metric: Metric, mine: _Sample, preferences: SmallestEffect) -> ClaimEstimate:
    unit = claim.claimed.unit if claim.claimed is not None else ""
    factor = in_unit(1.0, metric.unit, unit)
    if factor is None:
        raise UnmeasuredError(f"{metric.name} is in {metric.unit or 'no unit'}, the claim in {unit or 'no unit'}")
    value, bounds = mine.statistic * factor, bounds_of(claim, preferences)
    drawn = mine.drawn * factor if mine.drawn is not None else None
    tests = _tests_of_range(value, drawn, bounds, least_p(mine.n))
    series, interval = mine.series, percentile_interval(drawn, mine.n)
    return ClaimEstimate(value, interval, bounds, unit, series, None, (mine.n,), mine.values, tests)


def _pairs(
    mine: Series, other: Series, of_pair: Callable[[float, float], float]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield (cell, quantity of each pair) for each cell whose block has a cell of the other transport as well.

    Values of cells with several repetitions form pairs by the number of the repetition.
    """
    references = {(value.block, repeat): number for value in other.values for repeat, number in value.numbered}
    for value in mine.values:
        both = [(number, references.get((value.block, repeat))) for repeat, number in value.numbered]
        if quantities := tuple(of_pair(own, reference) for own, reference in both if reference is not None):
            yield value.cell, quantities


def _relative_difference(value: float, reference: float) -> float:
    """Return |value − reference| / reference in percent.

    Raises:
        UnmeasuredError: the reference is not positive.
    """
    if reference <= 0:
        raise UnmeasuredError(f"a reference has the value {reference:g}: there is no relative difference")
    return 100 * abs(value - reference) / reference


def _is_better(metric: Metric, value: float, reference: float) -> float:
    """Return 100 if a value is better than the reference, else 0: a share in percent."""
    return 100.0 * (value > reference if metric.better == "higher" else value < reference)


def _better_shares(pairs: Sequence[Sequence[float]], seed: int) -> Sample | None:
    """Return draws of the share of better pairs, percent; None for fewer than three pairs.

    They are from the posterior with Jeffreys' prior (Brown, Cai & DasGupta 2001), whose interval has a width even if
    all pairs agree; that of a bootstrap has none then. A pair with several values counts with their mean.
    """
    n = len(pairs)
    if n < MIN_FOR_INTERVAL:
        return None
    better = n * cell_statistic(pairs, "mean") / 100
    drawn: Sample = 100 * np.random.default_rng(seed).beta(better + 0.5, n - better + 0.5, RESAMPLES)
    return drawn


def _effect(quantity: _Quantity) -> ClaimEstimate:
    tests = _tests_of_effect(quantity.value, quantity.drawn, quantity.bounds, quantity.least_p)
    return quantity.estimate(CONFIDENCE, tests)


def _equivalence(quantity: _Quantity) -> ClaimEstimate:
    """Return the estimate of a difference within a margin: two one-sided tests at 5 % (Schuirmann 1987)."""
    tests = _tests_of_range(quantity.value, quantity.drawn, quantity.bounds, quantity.least_p)
    _, p = tests["as claimed"]
    return quantity.estimate(EQUIVALENCE, {**tests, "as claimed": ("beyond the margin", p)})


def _tests_of_range(value: float, drawn: Sample | None, bounds: ClaimedBounds, least: float) -> Tests:
    """Return the test of the range for each verdict: that the quantity is outside it, and that it is inside (doubled).

    "Outside" are two one-sided tests (Schuirmann 1987): the larger p counts.
    """
    over, under = np.nextafter(bounds.high, np.inf), np.nextafter(bounds.low, -np.inf)
    tails = [tail(drawn, least, above=float(over)), tail(drawn, least, below=float(under))]
    outside = max((p for p in tails if p is not None), default=None)
    above = value > bounds.high
    one = tail(drawn, least, below=bounds.high) if above else tail(drawn, least, above=bounds.low)
    inside: tuple[Null, float | None] = ("inside the range", min(1.0, 2 * one) if one is not None else None)
    return {
        "as claimed": ("outside the range", outside),
        "same direction": inside,
        "not seen": inside,
        "contradicted": inside,
    }


def _tests_of_effect(value: float, drawn: Sample | None, bounds: ClaimedBounds, least: float) -> Tests:
    """Return the test for each verdict on an effect; a direction is shown by the two-sided test of no effect."""
    tests = _tests_of_range(value, drawn, bounds, least)
    if bounds.direction == 0:
        return tests
    tails = [p for p in (tail(drawn, least, above=0.0), tail(drawn, least, below=0.0)) if p is not None]
    shown: tuple[Null, float | None] = ("no effect", min(1.0, 2 * min(tails)) if tails else None)
    return {**tests, "same direction": shown, "contradicted": shown}


def _change(values: Sample, at: Sample) -> Sample:
    """Return the change from the first to the last point by the least-squares line, in percent of the first point.

    ``values`` has the points on its last axis.
    """
    centred = at - at.mean()
    slopes = (values * centred).sum(axis=-1) / (centred**2).sum()
    first = values[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        change: Sample = 100 * slopes * (at[-1] - at[0]) / np.where(first != 0, np.abs(first), np.nan)
    return change


def _crossover(
    metric: Metric, at: Sample, mine: Sequence[_Sample], others: Sequence[Sequence[_Sample]], bounds: ClaimedBounds
) -> ClaimEstimate:
    """Return the position at which the transport stops being better than the best of the others."""
    sign = -1.0 if metric.better != "higher" else 1.0
    leads = [sign * (own.statistic - _best(metric, beside).statistic) for own, beside in zip(mine, others, strict=True)]
    position = float(_crossings(np.array([leads]), at)[0])
    columns = []
    for own, beside in zip(mine, others, strict=True):
        if own.drawn is not None and all(other.drawn is not None for other in beside):
            columns.append(sign * (own.drawn - _best_drawn(metric, beside)))
    drawn = _crossings(np.stack(columns, axis=1), at) if len(columns) == len(mine) else None
    fewest = min(sample.n for beside in others for sample in beside), min(own.n for own in mine)
    least = least_p(*fewest)
    p = None
    if drawn is not None:
        p = max(least, (1 + int((~np.isfinite(drawn)).sum())) / (1 + len(drawn)))
    return ClaimEstimate(
        position if math.isfinite(position) else None,
        percentile_interval(drawn, min(fewest)),
        bounds,
        "",
        mine[0].series,
        _best(metric, others[0]).series,
        tuple(sample.n for sample in mine),
        sum(sample.values for sample in mine),
        {**_tests_of_range(position, drawn, bounds, least), "same direction": ("no crossover", p)},
        opposite=leads[0] <= 0 < leads[-1],
    )


def _crossings(leads: Sample, at: Sample) -> Sample:
    """Return the position of the first change from a lead to none, for each row, by linear interpolation.

    -inf: there is no lead at the first point; inf: there is a lead at all points.
    """
    ahead = leads > 0
    after = np.where(ahead.all(axis=1), 1, ahead.argmin(axis=1).clip(min=1))
    rows = np.arange(len(leads))
    before, behind = leads[rows, after - 1], leads[rows, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = before / (before - behind)
    positions = at[after - 1] + share * (at[after] - at[after - 1])
    found: Sample = np.where(~ahead[:, 0], -np.inf, np.where(ahead.all(axis=1), np.inf, positions))
    return found


def _correlations(first: Sample, second: Sample) -> Sample:
    """Return Pearson's coefficient of each row; NaN for a row in which all values are equal."""
    first, second = (rows - rows.mean(axis=1, keepdims=True) for rows in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Sample = (first * second).sum(axis=1) / np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return r


def _best_drawn(metric: Metric, samples: Sequence[_Sample]) -> Sample:
    """Return the best statistic among the samples in each resample."""
    drawn = np.stack([sample.drawn for sample in samples if sample.drawn is not None])
    best: Sample = drawn.max(axis=0) if metric.better == "higher" else drawn.min(axis=0)
    return best


def _best(metric: Metric, samples: Sequence[_Sample]) -> _Sample:
    pick = max if metric.better == "higher" else min
    return pick(samples, key=lambda sample: sample.statistic)
