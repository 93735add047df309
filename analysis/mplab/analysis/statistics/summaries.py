"""Summarise the scores of cells by scenario, link, metric and labels, and compare them with the best single path."""

import statistics as plain
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import NamedTuple

from mplab.analysis.metric import Labels, LabelsKey, Metric, label_sort_key
from mplab.analysis.record.decode import AnalysisProblem
from mplab.analysis.record.run import Run
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.scores.shares import InterfaceShare
from mplab.analysis.statistics.contrast import Contrast, contrast, corrected
from mplab.analysis.statistics.effects import (
    Description,
    Interval,
    cliffs_delta,
    describe,
    gain,
    gain_interval,
    magnitude,
    mann_whitney_p,
    seed_of,
)
from mplab.analysis.statistics.pooled import Estimate, effective_values, estimate
from mplab.format.experiment import TransportRecord

HEAD_COLUMNS = ("scenario", "link", "metric", "unit", "labels")
"""First columns of the report's CSV files; `Group.head` has their values."""


@dataclass(frozen=True)
class CellValue:
    """The value of a cell for a metric with its labels; the median if the cell has several values."""

    cell: str
    repetition: int
    value: float
    block: int = 0
    """Number of the cell's block, in which each transport runs once under the same losses; pairs are of one block."""
    each: tuple[tuple[int, float], ...] = ()
    """(number of the repetition inside the cell, value) of all values of the cell; (): only `value`."""

    @property
    def values(self) -> tuple[float, ...]:
        """Return all values of the cell, at least one."""
        return tuple(value for _, value in self.numbered)

    @property
    def numbered(self) -> tuple[tuple[int, float], ...]:
        """Return (number of the repetition inside the cell, value) of all values; 0 for a cell without repetitions."""
        return self.each or ((0, self.value),)


@dataclass(frozen=True)
class Pooled:
    """Statistics of all values of cells of which at least one has several values.

    ``effective``: number of independent values whose mean would have the same standard error (`effective_values`).
    """

    mean: Estimate
    median: Estimate
    effective: float


@dataclass(frozen=True)
class UnpairedComparison:
    """A transport compared with the best single path (``baseline``), without pairing their values by blocks.

    ``difference`` is the difference of the medians, in the metric's unit; ``p`` is that of the Mann-Whitney test. Only
    transports with more than one path have a ``gain`` (G of han2015).
    """

    baseline: str
    difference: float
    gain: float | None
    gain_interval: Interval | None
    cliffs_delta: float
    magnitude: str
    p: float | None


@dataclass(frozen=True)
class Series:
    """The values of one transport in a `Group`, with their statistics.

    ``cells`` counts its ok cells, including those without a value.
    """

    transport: TransportRecord
    cells: int
    values: tuple[CellValue, ...]
    description: Description | None
    comparison: UnpairedComparison | None = None
    pooled: Pooled | None = None
    """Statistics of all values of the cells; None if each cell has one value."""

    @property
    def numbers(self) -> list[float]:
        """Return one number per cell: its value, or the median of its values."""
        return [value.value for value in self.values]

    @property
    def by_cell(self) -> list[tuple[float, ...]]:
        """Return all values of each cell, for the functions of `mplab.analysis.statistics.resampling`."""
        return [value.values for value in self.values]

    @property
    def count(self) -> int:
        """Return the number of all values of the cells. They are not independent; the number of cells is."""
        return sum(map(len, self.by_cell))

    @property
    def by_block(self) -> dict[int, float]:
        """Return number of the block → value of the transport's cell in this block."""
        return {value.block: value.value for value in self.values}


@dataclass(frozen=True)
class Group:
    """The values of all transports for one metric with its labels, in one scenario under one link condition."""

    scenario: str
    link: str
    metric: Metric
    labels: Labels
    series: tuple[Series, ...]
    best: str | None
    """Label of the transport with the best median; None when the metric's ``better`` is ``neither``."""
    baseline: str | None
    """Label of the best single path."""
    contrasts: tuple[Contrast, ...] = ()
    """Contrasts of every transport with the best single path, and of the multipath transports with each other."""

    @property
    def key(self) -> tuple[str, str, str, Labels]:
        """Return scenario, link, name of the metric and labels, which identify the group in its run."""
        return (self.scenario, self.link, self.metric.name, self.labels)

    @property
    def label_text(self) -> str:
        """Return the values of the labels as text: ``1 MB``, with several labels ``1 MB · down``; "" without labels."""
        return " · ".join(value for _, value in self.labels)

    @property
    def head(self) -> tuple[str, str, str, str, str]:
        """Return the values for the columns `HEAD_COLUMNS` of a CSV file."""
        return (self.scenario, self.link, self.metric.name, self.metric.unit, self.label_text)

    @property
    def measured(self) -> tuple[Series, ...]:
        """Return the series of the transports that have values."""
        return tuple(series for series in self.series if series.values)

    @property
    def smallest_n(self) -> int:
        """Return the smallest number of values of a transport; 0 if a transport has no values."""
        return min((len(series.values) for series in self.series), default=0)

    @property
    def smallest_measured(self) -> int:
        """Return the smallest number of values among the transports with values."""
        return min((len(series.values) for series in self.measured), default=0)

    def of(self, label: str | None) -> Series | None:
        """Return the series of the transport with this label, or None if it has no values."""
        return next((series for series in self.measured if series.transport.label == label), None)

    def against_baseline(self, label: str) -> Contrast | None:
        """Return the contrast of the transport ``label`` with the best single path; None if it is missing."""
        return next((c for c in self.contrasts if (c.transport, c.reference) == (label, self.baseline)), None)


class _Key(NamedTuple):
    scenario: str
    link: str
    metric: str
    labels: Labels


def summarise(run: Run, metrics: Mapping[str, Sequence[Metric]], scores: Iterable[CellScores]) -> list[Group]:
    """Return a group per scenario, link, metric (headlines first) and labels, in this order, from the ok cells.

    Args:
        run: the run.
        metrics: scenario label → metrics of its plug-in.
        scores: scores of cells; cells that are not ok and metrics that are not in ``metrics`` are left out.
    """
    specs = {cell.id: cell.spec for cell in run.cells if cell.ok and cell.spec is not None}
    ok_cells = Counter((spec.scenario, spec.link, spec.transport) for spec in specs.values())
    values_of: dict[_Key, dict[str, list[CellValue]]] = defaultdict(lambda: defaultdict(list))
    for cell_scores in scores:
        spec = specs.get(cell_scores.cell)
        if spec is None:
            continue
        for (metric_name, labels), each in _values_of(cell_scores).items():
            key = _Key(spec.scenario, spec.link, metric_name, labels)
            value, block = plain.median(number for _, number in each), spec.block or spec.repetition
            kept = tuple(each) if len(each) > 1 or each[0][0] else ()
            cell_value = CellValue(cell_scores.cell, spec.repetition, value, block, kept)
            values_of[key][spec.transport].append(cell_value)
    order = _Order(run, metrics)
    groups = []
    for key in sorted((key for key in values_of if order.metric(key)), key=order.place):
        series = [
            _series(run, key, transport, ok_cells[key.scenario, key.link, transport.label], values_of[key])
            for transport in run.transports
            if ok_cells[key.scenario, key.link, transport.label]
        ]
        groups.append(_compared(run.manifest.experiment.seed, key, order.metrics[key[0], key[2]], series))
    return _corrected(groups, run.manifest.experiment.seed)


def without_cells(groups: Iterable[Group], cells: Collection[str], seed: int) -> list[Group]:
    """Return groups with their statistics computed again without the values of some cells.

    Args:
        groups: whole families of contrasts: all groups of headline metrics, or all of the others.
        cells: IDs of the cells.
        seed: seed of the run.
    """
    fewer = []
    for group in groups:
        key = _Key(*group.key)
        series = []
        for old in group.series:
            values = tuple(value for value in old.values if value.cell not in cells)
            numbers, own = [value.value for value in values], seed_of(seed, *key, old.transport.label)
            cells_left = old.cells - (len(old.values) - len(values))
            series.append(Series(old.transport, cells_left, values, describe(numbers, own) if values else None))
        fewer.append(_compared(seed, key, group.metric, series))
    return _corrected(fewer, seed)


class _Order:
    """Sorts groups in the order of the experiment file and of the plug-ins' METRICS; unknown names come last."""

    def __init__(self, run: Run, metrics: Mapping[str, Sequence[Metric]]) -> None:
        self.metrics = {
            (scenario, metric.name): metric
            for scenario, declared in metrics.items()
            for metric in sorted(declared, key=lambda metric: not metric.headline)
        }
        self._names = list(self.metrics)
        self._scenarios = [scenario.label for scenario in run.manifest.experiment.scenarios]
        self._links = [link.name for link in run.manifest.experiment.links]

    def metric(self, key: _Key) -> Metric | None:
        return self.metrics.get((key.scenario, key.metric))

    def place(self, key: _Key) -> tuple[tuple[int, str], tuple[int, str], int, LabelsKey]:
        return (
            _place(self._scenarios, key.scenario),
            _place(self._links, key.link),
            self._names.index((key.scenario, key.metric)),
            label_sort_key(key.labels),
        )


def _place(known: Sequence[str], name: str) -> tuple[int, str]:
    return (known.index(name), "") if name in known else (len(known), name)


def _values_of(scores: CellScores) -> dict[tuple[str, Labels], list[tuple[int, float]]]:
    """Return (metric, labels) → (repetition, value) of all values of a cell, in the order of its repetitions."""
    values_of: dict[tuple[str, Labels], list[tuple[int, float]]] = defaultdict(list)
    for value in sorted(scores.values, key=lambda value: value.repeat):
        values_of[value.metric, tuple(sorted(value.labels.items()))].append((value.repeat, value.value))
    return values_of


def _series(
    run: Run, key: _Key, transport: TransportRecord, cells: int, values_of: Mapping[str, list[CellValue]]
) -> Series:
    values = tuple(sorted(values_of.get(transport.label, []), key=lambda v: (v.repetition, v.cell)))
    if not values:
        return Series(transport, cells, (), None)
    seed = seed_of(run.manifest.experiment.seed, *key, transport.label)
    series = Series(transport, cells, values, describe([value.value for value in values], seed))
    if series.count == len(values):
        return series
    mean = estimate(series.by_cell, "mean", seed_of(seed, "mean"))
    middle = estimate(series.by_cell, "pooled", seed_of(seed, "pooled"))
    return replace(series, pooled=Pooled(mean, middle, effective_values(series.by_cell)))


def _compared(seed: int, key: _Key, metric: Metric, series: list[Series]) -> Group:
    singles = [s for s in series if s.values and s.transport.single_path and not metric.traced]
    best, base = _best(series, metric), _best(singles, metric)
    if base is not None:
        series = [
            replace(s, comparison=_comparison(s, base, singles, metric, seed_of(seed, *key, s.transport.label, "G")))
            if s.values and s is not base
            else s
            for s in series
        ]
    return Group(
        scenario=key.scenario,
        link=key.link,
        metric=metric,
        labels=key.labels,
        series=tuple(series),
        best=best.transport.label if best else None,
        baseline=base.transport.label if base else None,
        contrasts=tuple(_contrasts(seed, key, metric, series, base)),
    )


def _contrasts(
    seed: int, key: _Key, metric: Metric, series: Sequence[Series], base: Series | None
) -> Iterator[Contrast]:
    """Compare transports with the best single path, and multipath transports with each other; yield the contrasts.

    Nothing is yielded for a metric of the traces, and if neither higher nor lower values of the metric are better.
    """
    if metric.better == "neither" or metric.traced:
        return
    measured = [s for s in series if s.values]
    pairs = [(s, base) for s in measured if base is not None and s.transport.label != base.transport.label]
    several = [s for s in measured if not s.transport.single_path]
    pairs += [(later, earlier) for earlier, later in combinations(several, 2)]
    for sample, other in pairs:
        labels = (sample.transport.label, other.transport.label)
        compared = contrast(labels, sample.by_block, other.by_block, seed_of(seed, *key, *labels, "contrast"))
        if compared is not None:
            yield compared


def _corrected(groups: list[Group], seed: int) -> list[Group]:
    """Return the groups with p-values of contrasts corrected in two families: headline metrics, and the others."""
    for headline in (True, False):
        indices = [index for index, group in enumerate(groups) if group.metric.headline is headline]
        family = iter(
            corrected([member for index in indices for member in groups[index].contrasts], seed_of(seed, "family"))
        )
        for index in indices:
            own = tuple(islice(family, len(groups[index].contrasts)))
            groups[index] = replace(groups[index], contrasts=own)
    return groups


def _best(series: Sequence[Series], metric: Metric) -> Series | None:
    measured = [(s.description.median, s) for s in series if s.description is not None]
    if metric.better == "neither" or metric.traced or not measured:
        return None
    pick = min if metric.better == "lower" else max
    return pick(measured, key=lambda pair: pair[0])[1]


def _comparison(
    series: Series, base: Series, singles: Sequence[Series], metric: Metric, seed: int
) -> UnpairedComparison:
    medians = [plain.median(single.numbers) for single in singles]
    mine = plain.median(series.numbers)
    value, interval = None, None
    if not series.transport.single_path:
        value = gain(medians, mine, metric.better)
    if value is not None:
        interval = gain_interval([s.numbers for s in singles], series.numbers, metric.better, seed)
    delta = cliffs_delta(series.numbers, base.numbers)
    return UnpairedComparison(
        baseline=base.transport.label,
        difference=mine - plain.median(base.numbers),
        gain=value,
        gain_interval=interval,
        cliffs_delta=delta,
        magnitude=magnitude(delta),
        p=mann_whitney_p(series.numbers, base.numbers),
    )


@dataclass(frozen=True)
class Analysis:
    """A run with its statistics (``groups``), the interfaces' shares of its bytes, and the problems of the analysis."""

    run: Run
    groups: tuple[Group, ...] = ()
    shares: tuple[InterfaceShare, ...] = ()
    problems: tuple[AnalysisProblem, ...] = ()

    def panels(self, *, traced: bool) -> list[tuple[Group, ...]]:
        """Return the groups by scenario, link and metric: a panel is the content of one figure or table.

        ``traced``: only the metrics of the traces; otherwise only the others.
        """
        panels: dict[tuple[str, str, str], list[Group]] = {}
        for group in (group for group in self.groups if group.metric.traced is traced):
            panels.setdefault((group.scenario, group.link, group.metric.name), []).append(group)
        return [tuple(groups) for groups in panels.values()]

    @property
    def several_links(self) -> bool:
        """Return whether the run has several link conditions, so that titles must name them."""
        return len(self.run.manifest.experiment.links) > 1 or len({group.link for group in self.groups}) > 1
