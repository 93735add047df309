"""Compare a run with a baseline of other runs: which metrics became better or worse, and which cannot be judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import scipy

from mplab.analysis.errors import NotAnalysedError
from mplab.analysis.metric import Metric, in_unit, label_sort_key
from mplab.analysis.record.run import Run
from mplab.analysis.results.frames import SEPARATOR, Results
from mplab.analysis.statistics.contrast import benjamini_hochberg, holm
from mplab.analysis.statistics.effects import CONFIDENCE, Interval, Sample, cliffs_delta
from mplab.analysis.statistics.power import LEVEL, needed_each
from mplab.analysis.statistics.unpaired import rank_sum_test, shift, shift_interval
from mplab.format.experiment import ExperimentRecord
from mplab.format.units import format_size

Verdict: TypeAlias = Literal["better", "worse", "different", "no difference seen", "too few", "gone", "new"]
Correction: TypeAlias = Literal["holm", "bh", "none"]

RUNS_FOR_RANGE = 3
"""Minimum number of baseline runs for `usual_range`, in which a run's median counts as unchanged."""


class SeriesKey(NamedTuple):
    """Identifies a combination of scenario, link and transport in an experiment by their labels."""

    scenario: str
    link: str
    transport: str


class Key(NamedTuple):
    """Identifies the values of one transport for one metric with its labels.

    The key is the same for the values in the baseline and for those in the run.
    """

    scenario: str
    link: str
    metric: str
    labels: str
    transport: str

    @property
    def series(self) -> SeriesKey:
        """Return the combination of scenario, link and transport."""
        return SeriesKey(self.scenario, self.link, self.transport)


@dataclass(frozen=True)
class Side:
    """The values with one `Key` in the baseline or in the run, one per cell.

    ``medians`` has the median of each run, oldest first.
    """

    values: tuple[float, ...]
    medians: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """Return the median of all values; None without values."""
        return float(np.median(self.values)) if self.values else None


@dataclass(frozen=True)
class MetricChange:
    """The change of the values with one `Key` from the baseline (``before``) to the run (``after``), with the verdict.

    ``shift`` and its ``interval`` are in the metric's unit, ``p`` is the p-value of the test called ``test``.
    """

    key: Key
    metric: Metric
    before: Side
    after: Side
    verdict: Verdict
    shift: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_corrected: float | None = None
    test: str = ""
    least_p: float | None = None
    cliffs_delta: float | None = None
    needed: int | None = None
    """Number of values, in the baseline and in the run each, that detects a change of this size with a power of 80 %.

    None: there is no change.
    """
    usual: Interval | None = None
    """95 % prediction interval of the median of a further baseline run; None for fewer than `RUNS_FOR_RANGE` runs."""

    @property
    def relative(self) -> float | None:
        """Return the shift as a fraction of the baseline's median; None if that median is 0."""
        return self._fraction(self.shift)

    @property
    def relative_interval(self) -> Interval | None:
        """Return the interval of the shift as fractions of the baseline's median; None if that median is 0."""
        if self.interval is None:
            return None
        low, high = self._fraction(self.interval.low), self._fraction(self.interval.high)
        return Interval(low, high) if low is not None and high is not None else None

    def _fraction(self, value: float | None) -> float | None:
        median = self.before.median
        return value / abs(median) if value is not None and median else None


@dataclass(frozen=True)
class Circumstance:
    """A setting or a fact of the host that differs between baseline and run, with its values as text.

    ``planned``: it is a setting of the experiment file. Otherwise it is a fact of the host or of the programs.
    """

    name: str
    before: str
    after: str
    planned: bool


@dataclass(frozen=True)
class ComparedRuns:
    """The result of a comparison: the change of every metric from a baseline to a run."""

    baseline: tuple[Run, ...]
    run: Run
    changes: tuple[MetricChange, ...]
    correction: Correction
    warnings: tuple[str, ...] = field(default=())
    """Sentences on different settings, which can explain a change, and on damaged files of the baseline."""
    missing: tuple[SeriesKey, ...] = field(default=())
    """Combinations of scenario, link and transport that the baseline measured but the run did not plan."""
    no_common_values: bool = False
    """True: no metric has values in both the baseline and the run, so nothing was compared."""
    circumstances: tuple[Circumstance, ...] = field(default=())
    """Settings and facts of the host that differ; those of the experiment file first."""

    @property
    def emptied(self) -> tuple[SeriesKey, ...]:
        """Return the combinations that the run planned, but for which it has none of the baseline's values."""
        series = dict.fromkeys(change.key.series for change in self.changes if change.before.values)
        kept = {change.key.series for change in self.changes if change.after.values}
        return tuple(key for key in series if key not in kept)

    def zone(self, change: MetricChange) -> float | None:
        """Return the largest change that does not matter, as a fraction of the baseline's median.

        It is the smallest effect of the run's experiment. None: the baseline has no median, or it is 0.
        """
        median = change.before.median
        if not median:
            return None
        smallest = self.run.manifest.experiment.smallest_effect
        time = in_unit(smallest.time_s, "s", change.metric.unit) or 0.0
        return max(smallest.relative_percent / 100, time / abs(median))

    def of(self, verdict: Verdict, *, headline: bool = True) -> list[MetricChange]:
        """Return the changes with this verdict; ``headline``: only those of headline metrics."""
        return [c for c in self.changes if c.verdict == verdict and (c.metric.headline or not headline)]


def compare(baseline: Sequence[Run], run: Run, correction: Correction = "bh") -> ComparedRuns:
    """Compare a run with the runs of a baseline, metric by metric; ``correction`` is the method that corrects p-values.

    Raises:
        NotAnalysedError: the run, or every run of the baseline, has no report with values.
        TablesError: a report or scores of the run, or of a baseline of one run, are damaged.
    """
    after, before = Results((run,)), Results(tuple(baseline))
    for side, name in ((after, run.manifest.run_id), (before, "the baseline")):
        if side.statistics.is_empty():
            raise NotAnalysedError(f"{name}: no report with values to compare; `mplab analyze` makes it")
    metrics = {**_metrics(before.statistics), **_metrics(after.statistics)}
    old, new = _sides(before), _sides(after)
    planned = {SeriesKey(cell.spec.scenario, cell.spec.link, cell.spec.transport) for cell in run.cells if cell.spec}
    planned |= {key.series for key in new}
    changes = []
    for key in dict.fromkeys((*new, *old)):
        metric = metrics.get((key.scenario, key.metric))
        if metric is not None and key.series in planned:
            changes.append(_change(key, metric, old.get(key, _NOTHING), new.get(key, _NOTHING)))
    changes.sort(key=_place)
    return ComparedRuns(
        baseline=tuple(baseline),
        run=run,
        changes=tuple(_decided(changes, correction)),
        correction=correction,
        warnings=(*_differences(baseline, run), *before.unread),
        missing=tuple(series for series in dict.fromkeys(key.series for key in old) if series not in planned),
        no_common_values=not new.keys() & old.keys(),
        circumstances=tuple(_circumstances(baseline, run)),
    )


def _place(change: MetricChange) -> tuple[object, ...]:
    """Return a key to sort changes: headline metrics first, labels by value (10 kB, 100 kB, 1 MB)."""
    key = change.key
    labels = label_sort_key(tuple(("", label) for label in key.labels.split(SEPARATOR)))
    return (not change.metric.headline, key.scenario, key.link, key.metric, labels, key.transport)


def usual_range(medians: Sequence[float]) -> Interval | None:
    """Return the 95 % prediction interval (Student's t) for the median of one more run.

    ``medians`` has the median of each earlier run; the result is None for fewer than three runs.
    """
    n = len(medians)
    if n < RUNS_FOR_RANGE:
        return None
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * float(np.std(medians, ddof=1)) * np.sqrt(1 + 1 / n)
    mean = float(np.mean(medians))
    return Interval(mean - reach, mean + reach)


_NOTHING = Side((), ())


def _sides(results: Results) -> dict[Key, Side]:
    """Return key → the values with this key, and the median of each run; both in the order of the runs."""
    values_of: dict[Key, dict[str, list[float]]] = {}
    columns = [*Key._fields, "run_id", "value"]
    for *key, run_id, value in results.cell_values.select(columns).iter_rows():
        values_of.setdefault(Key(*key), {}).setdefault(run_id, []).append(value)
    return {
        key: Side(
            tuple(value for values in runs.values() for value in values),
            tuple(float(np.median(values)) for values in runs.values()),
        )
        for key, runs in values_of.items()
    }


def _metrics(statistics: pl.DataFrame) -> dict[tuple[str, str], Metric]:
    columns = ("scenario", "metric", "title", "unit", "better", "headline", "traced")
    return {
        (scenario, name): Metric(name, title, unit, better, headline=headline, traced=traced)
        for scenario, name, title, unit, better, headline, traced in statistics.select(columns).iter_rows()
    }


def _change(key: Key, metric: Metric, before: Side, after: Side) -> MetricChange:
    if not before.values or not after.values:
        return MetricChange(key, metric, before, after, "gone" if before.values else "new")
    old, new = np.asarray(before.values), np.asarray(after.values)
    test = rank_sum_test(new, old)
    return MetricChange(
        key=key,
        metric=metric,
        before=before,
        after=after,
        verdict="too few",
        shift=shift(new, old),
        interval=shift_interval(new, old),
        p=test.p if test else None,
        test=test.name if test else "",
        least_p=test.least_p if test else None,
        cliffs_delta=cliffs_delta(after.values, before.values),
        needed=needed_each(new, old),
        usual=usual_range(before.medians),
    )


def _decided(changes: Sequence[MetricChange], correction: Correction) -> Iterator[MetricChange]:
    """Yield the changes with verdicts and corrected p-values.

    Headline metrics, metrics of the traces and the others are separate families.
    """
    corrected: dict[int, float] = {}
    for family in ((True, False), (False, False), (False, True)):
        indices = [
            n for n, c in enumerate(changes) if c.p is not None and (c.metric.headline, c.metric.traced) == family
        ]
        values = [p for n in indices if (p := changes[n].p) is not None]
        corrected.update(zip(indices, _CORRECTIONS[correction](values), strict=True))
    for index, change in enumerate(changes):
        if change.verdict != "too few":
            yield change
            continue
        p = corrected.get(index)
        yield replace(change, p_corrected=p, verdict=_verdict(change, p))


_CORRECTIONS: Mapping[Correction, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": list,
}


def _verdict(change: MetricChange, p: float | None) -> Verdict:
    if p is None or change.least_p is None or (change.least_p > LEVEL and _vary(change)):
        return "too few"
    median = change.after.median
    if p > LEVEL or not change.shift or (change.usual and median is not None and median in change.usual):
        return "no difference seen"
    if change.metric.better == "neither":
        return "different"
    return "better" if (change.shift < 0) is (change.metric.better == "lower") else "worse"


def _vary(change: MetricChange) -> bool:
    """Return whether the values of baseline and run together are not all equal.

    If all are equal, few values suffice for a verdict.
    """
    together: Sample = np.asarray([*change.before.values, *change.after.values])
    return bool(np.ptp(together))


def _differences(baseline: Sequence[Run], run: Run) -> Iterator[str]:
    """Yield a sentence if run and baseline are of different experiments, and one for each setting that differs."""
    new = _asked(run.manifest.experiment)
    name = run.manifest.experiment.name
    names = sorted({other.manifest.experiment.name for other in baseline} - {name})
    if names:
        yield f"different experiments: the run is of {name}, the baseline of {', '.join(names)}"
    differing: dict[str, list[str]] = {}
    for other in baseline:
        old = _asked(other.manifest.experiment)
        for name in new.keys() & old.keys():
            if new[name] != old[name]:
                differing.setdefault(name, []).append(other.manifest.run_id)
    for name, runs in sorted(differing.items()):
        yield f"{name} differs from {', '.join(runs)}"


def _asked(experiment: ExperimentRecord) -> dict[str, object]:
    settings: dict[str, object] = {
        "congestion control": experiment.congestion_control,
        "receive buffer": experiment.receive_buffer_bytes,
    }
    for scenario in experiment.scenarios:
        settings[f"scenario {scenario.label}"] = (scenario.name, _plain(scenario.parameters))
    for transport in experiment.transports:
        settings[f"transport {transport.label}"] = (transport.name, _plain(transport.options))
    for link in experiment.links:
        settings[f"link {link.name}"] = link.determinants()
    return settings


def _plain(content: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in content.items() if value is not None}


def _circumstances(baseline: Sequence[Run], run: Run) -> Iterator[Circumstance]:
    """Yield the settings and facts of the host that differ between the run and at least one run of the baseline."""
    for planned, facts in ((True, _settings), (False, _facts)):
        new, old = facts(run), [facts(other) for other in baseline]
        for name in sorted({*new, *(name for other in old for name in other)}):
            before = {other.get(name, _ABSENT): None for other in old}
            after = new.get(name, _ABSENT)
            if list(before) != [after]:
                yield Circumstance(name, "; ".join(before), after, planned)


_ABSENT = "none"


def _settings(run: Run) -> dict[str, str]:
    experiment = run.manifest.experiment
    settings = {"experiment": experiment.name, "congestion control": experiment.congestion_control}
    if experiment.receive_buffer_bytes is not None:
        settings["receive buffer"] = format_size(experiment.receive_buffer_bytes)
    for scenario in experiment.scenarios:
        settings |= _prefixed(f"scenario {scenario.label}", {"name": scenario.name, **_plain(scenario.parameters)})
    for transport in experiment.transports:
        settings |= _prefixed(f"transport {transport.label}", {"name": transport.name, **_plain(transport.options)})
    for link in experiment.links:
        settings |= _prefixed(f"link {link.name}", link.determinants())
    return settings


def _facts(run: Run) -> dict[str, str]:
    manifest = run.manifest
    host, commit = manifest.host, manifest.git.commit
    facts: dict[str, object] = {
        "lab": manifest.lab.kind,
        "phone": manifest.lab.phone,
        "kernel": host.kernel,
        "distribution": host.distribution,
        "processors": host.cpus,
        "memory": f"{host.memory_bytes / 2**30:.1f} GiB" if host.memory_bytes else "",
        "commit": f"{commit[:12]}{' (with changes)' if manifest.git.dirty else ''}" if commit else "",
        "overloaded cells": sum(bool(cell.record and cell.record.host.overloaded) for cell in run.cells if cell.ok),
    }
    versions = {name: value for name, value in manifest.versions.items() if not isinstance(value, Mapping)}
    return _prefixed("", facts) | _prefixed("version of", versions)


def _prefixed(prefix: str, content: Mapping[str, object]) -> dict[str, str]:
    """Return the leaves of nested mappings as text, each named by the prefix and its keys; leave empty ones out."""
    leaves: dict[str, str] = {}
    for key, value in content.items():
        name = f"{prefix} {key}".strip()
        if isinstance(value, Mapping):
            leaves |= _prefixed(name, value)
        elif value not in (None, "", [], ()):
            leaves[name] = str(value)
    return leaves
