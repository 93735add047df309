"""Scores of many cells → one summary per metric × labels × link × transport, compared with the best single path."""

import re
import statistics as plain
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.effects import (
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
from analysis.manifest import Transport
from analysis.metric import Metric
from analysis.run import Run
from analysis.scores import CellScores

Labels = tuple[tuple[str, str], ...]

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]i?)?[A-Za-z/%]*")
_PREFIX = {
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


@dataclass(frozen=True)
class CellValue:
    """The one value that a cell contributes to a metric with its labels."""

    cell: str
    repetition: int
    value: float


@dataclass(frozen=True)
class Comparison:
    """One transport against the best single path; ``gain`` is of transports with more than one path alone."""

    baseline: str
    difference: float
    gain: float | None
    gain_interval: Interval | None
    cliffs_delta: float
    magnitude: str
    p: float | None


@dataclass(frozen=True)
class Series:
    """What one transport reached. ``cells`` counts its ok cells: more than ``description.n`` if some lack a value."""

    transport: Transport
    cells: int
    values: tuple[CellValue, ...]
    description: Description | None
    comparison: Comparison | None = None

    @property
    def numbers(self) -> list[float]:
        """The values alone."""
        return [value.value for value in self.values]


@dataclass(frozen=True)
class Group:
    """Every transport's series of one metric with its labels, in one scenario under one link condition."""

    scenario: str
    link: str
    metric: Metric
    labels: Labels
    series: tuple[Series, ...]
    best: str | None
    """Label of the transport with the best median; None when the metric has no better side or no values."""
    baseline: str | None
    """Label of the best single path."""

    @property
    def label_text(self) -> str:
        """``1 MB``; with several labels ``1 MB · down``; empty without."""
        return " · ".join(value for _, value in self.labels)

    @property
    def smallest_n(self) -> int:
        """The fewest values that a transport of it has."""
        return min((len(series.values) for series in self.series), default=0)

    def of(self, label: str | None) -> Series | None:
        """The series of one transport, if it has values."""
        return next((s for s in self.series if s.transport.label == label and s.values), None)


def summarise(run: Run, metrics: Mapping[str, Sequence[Metric]], scores: Iterable[CellScores]) -> list[Group]:
    """Summaries of the ok cells, in the order scenario, link, metric (headlines first), labels.

    Args:
        run: the run.
        metrics: of each scenario label, the metrics of its plug-in.
        scores: those of the ok cells; cells of other outcomes are left out whatever is given.
    """
    specs = {cell.id: cell.spec for cell in run.cells if cell.ok and cell.spec is not None}
    ok_cells = Counter((s.scenario, s.link, s.transport) for s in specs.values())
    found: dict[tuple[str, str, str, Labels], dict[str, list[CellValue]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for cell_scores in scores:
        spec = specs.get(cell_scores.cell)
        if spec is None:
            continue
        for (metric, labels), value in _one_value_each(cell_scores).items():
            cell_value = CellValue(cell_scores.cell, spec.repetition, value)
            found[spec.scenario, spec.link, metric, labels][spec.transport].append(cell_value)
    declared = {(label, m.name): m for label, ms in metrics.items() for m in ms}
    order = _order(run, metrics)
    groups = []
    for key in sorted(found, key=order):
        scenario, link, name, labels = key
        metric = declared.get((scenario, name))
        if metric is None:
            continue
        series = [
            _series(run, key, transport, ok_cells[scenario, link, transport.label], found[key])
            for transport in run.transports
            if ok_cells[scenario, link, transport.label] or transport.label in found[key]
        ]
        groups.append(_compared(run, scenario, link, metric, labels, series))
    return groups


def label_sort_key(labels: Labels) -> tuple[tuple[str, float, str], ...]:
    """Quantities by their size (10 kB before 1 MB), words by the alphabet."""
    return tuple((name, _quantity(value), value) for name, value in labels)


def _quantity(text: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _PREFIX[match[2] or ""] if match else float("inf")


def _one_value_each(scores: CellScores) -> dict[tuple[str, Labels], float]:
    several: dict[tuple[str, Labels], list[float]] = defaultdict(list)
    for value in scores.values:
        several[value.metric, tuple(sorted(value.labels.items()))].append(value.value)
    return {key: plain.median(values) for key, values in several.items()}


def _order(
    run: Run, metrics: Mapping[str, Sequence[Metric]]
) -> Callable[[tuple[str, str, str, Labels]], Any]:
    scenarios = [scenario.label for scenario in run.manifest.experiment.scenarios]
    links = [link.name for link in run.manifest.experiment.links]

    def place(names: list[str], name: str) -> tuple[int, str]:
        return (names.index(name), "") if name in names else (len(names), name)

    def key(group: tuple[str, str, str, Labels]) -> Any:  # noqa: ANN401 - only compared
        scenario, link, metric, labels = group
        declared = sorted(metrics.get(scenario, ()), key=lambda m: not m.headline)
        names = [m.name for m in declared]
        return (place(scenarios, scenario), place(links, link), place(names, metric), label_sort_key(labels))

    return key


def _series(
    run: Run,
    key: tuple[str, str, str, Labels],
    transport: Transport,
    cells: int,
    found: Mapping[str, list[CellValue]],
) -> Series:
    values = tuple(sorted(found.get(transport.label, []), key=lambda v: (v.repetition, v.cell)))
    if not values:
        return Series(transport, cells, (), None)
    seed = seed_of(run.manifest.experiment.seed, *key, transport.label)
    return Series(transport, cells, values, describe([value.value for value in values], seed))


def _compared(
    run: Run, scenario: str, link: str, metric: Metric, labels: Labels, series: list[Series]
) -> Group:
    measured = [s for s in series if s.description is not None]
    singles = [s for s in measured if s.transport.single_path]
    best, base = _best(measured, metric), _best(singles, metric)
    if base is not None:
        seed = run.manifest.experiment.seed
        key = (scenario, link, metric.name, labels)
        series = [
            Series(
                s.transport,
                s.cells,
                s.values,
                s.description,
                _comparison(s, base, singles, metric, seed, key),
            )
            for s in series
        ]
    return Group(
        scenario,
        link,
        metric,
        labels,
        tuple(series),
        best.transport.label if best else None,
        base.transport.label if base else None,
    )


def _best(series: Sequence[Series], metric: Metric) -> Series | None:
    if metric.better == "neither" or not series:
        return None
    sign = 1.0 if metric.better == "lower" else -1.0
    return min(series, key=lambda s: sign * s.description.median if s.description else 0.0)


def _comparison(
    series: Series,
    base: Series,
    singles: Sequence[Series],
    metric: Metric,
    seed: int,
    key: tuple[object, ...],
) -> Comparison | None:
    mine, theirs = series.description, base.description
    if mine is None or theirs is None or series.transport.label == base.transport.label:
        return None
    delta = cliffs_delta(series.numbers, base.numbers)
    value, interval = None, None
    if not series.transport.single_path:
        medians = [s.description.median for s in singles if s.description is not None]
        value = gain(medians, mine.median, metric.better)
        if value is not None:
            interval = gain_interval(
                [s.numbers for s in singles],
                series.numbers,
                metric.better,
                seed_of(seed, *key, series.transport.label, "G"),
            )
    return Comparison(
        baseline=base.transport.label,
        difference=mine.median - theirs.median,
        gain=value,
        gain_interval=interval,
        cliffs_delta=delta,
        magnitude=magnitude(delta),
        p=mann_whitney_p(series.numbers, base.numbers),
    )
