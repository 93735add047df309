"""Follow an experiment's metrics over all its runs, and find the runs at which their level changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from mplab.analysis.metric import Metric, label_sort_key
from mplab.analysis.results.frames import SEPARATOR, Results
from mplab.analysis.statistics.changepoint import FEWEST_RUNS, ChangePoint, change_points
from mplab.analysis.statistics.effects import Interval, seed_of
from mplab.analysis.text import Scale, plural, scale_of, tenths


@dataclass(frozen=True)
class Point:
    """The median of the ``n`` values of a run for a metric, with its 95 % interval."""

    run_id: str
    started: datetime | None
    n: int
    median: float
    interval: Interval | None


@dataclass(frozen=True)
class History:
    """The medians of a transport for a metric in the runs that measured it, oldest first, with the changes of level."""

    scenario: str
    link: str
    metric: Metric
    labels: str
    transport: str
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...]

    @property
    def about(self) -> str:
        """Return scenario, transport, link, metric and labels in one line."""
        parts = (self.scenario, self.transport, self.link, self.metric.title, self.labels)
        return " · ".join(part for part in parts if part)

    @property
    def scale(self) -> Scale:
        """Return the scale in which the values of this history are shown."""
        return scale_of(self.metric.unit, (point.median for point in self.points))

    @property
    def too_few(self) -> bool:
        """Return whether there are too few runs for a verdict: no values of this number of runs would show a change."""
        return len(self.points) < FEWEST_RUNS

    @property
    def verdict(self) -> str:
        """Return how many changes of level were seen, or that there are too few runs to see one."""
        if self.changes:
            return f"{plural(len(self.changes), 'change')} of level"
        if self.too_few:
            return f"too few runs ({len(self.points)}; at least {FEWEST_RUNS})"
        return f"no change of level seen in {len(self.points)} runs"

    def word(self, change: ChangePoint) -> str:
        """Return ``worse`` or ``better``, or ``changed`` when neither lower nor higher values are better."""
        return {True: "worse", False: "better", None: "changed"}[self.worse(change)]

    def evidence(self, change: ChangePoint) -> str:
        """Return the test behind a change: numbers of runs, statistic and p-value."""
        runs = f"{change.n_before} runs before, {change.n_after} after"
        return f"{runs}; standardised difference {change.statistic:.2f}, p = {change.p:.4f}"

    def size(self, change: ChangePoint) -> str:
        """Return the levels before and after a change, and the difference in percent of the level before."""
        relative = self.relative(change)
        by = f" ({tenths(relative, sign=True)})" if relative is not None else ""
        return f"{self.scale.number(change.before)} → {self.scale.text(change.after)}{by}"

    def worse(self, change: ChangePoint) -> bool | None:
        """Return whether a change of level was for the worse; None when neither lower nor higher values are better."""
        if self.metric.better == "neither":
            return None
        return (change.after > change.before) is (self.metric.better == "lower")

    def relative(self, change: ChangePoint) -> float | None:
        """Return the size of a change of level as a fraction of the level before it; None when this level was 0."""
        return (change.after - change.before) / abs(change.before) if change.before else None


@dataclass(frozen=True)
class Shift:
    """The description of a change of level in a `History`, as text."""

    about: str
    """Scenario, transport, link, metric and labels."""
    when: str
    """Start of the first run with the new level, UTC; "" when unknown."""
    run_id: str
    text: str
    word: str
    """``worse``, ``better`` or ``changed``."""


def histories(results: Results, experiment: str, *, headline_only: bool = True) -> list[History]:
    """Return the histories of an experiment's metrics that at least two runs measured.

    Headline metrics are first; then histories are sorted by scenario and link. Runs of chosen cells are left out.
    """
    rows: dict[tuple[str, str, str, str, str], list[Point]] = {}
    metrics: dict[tuple[str, str], Metric] = {}
    whole = {
        run.manifest.run_id
        for run in results.records
        if run.manifest.experiment.name == experiment and not run.manifest.plan.chosen
    }
    dates = dict(results.runs.select("run_id", "started").iter_rows())
    for row in results.statistics.iter_rows(named=True):
        if row["run_id"] not in whole or (headline_only and not row["headline"]):
            continue
        key = (row["scenario"], row["link"], row["metric"], row["labels"], row["transport"])
        metrics[key[0], key[2]] = Metric(
            row["metric"], row["title"], row["unit"], row["better"], headline=row["headline"]
        )
        interval = Interval(row["low"], row["high"]) if row["low"] is not None else None
        point = Point(row["run_id"], dates[row["run_id"]], row["n"], row["median"], interval)
        rows.setdefault(key, []).append(point)
    result = [
        History(*key[:2], metrics[key[0], key[2]], *key[3:], tuple(points), tuple(_changes(key, points)))
        for key, points in rows.items()
        if len(points) > 1
    ]
    return sorted(result, key=_place)


def experiments(results: Results) -> list[str]:
    """Return the names of the experiments of all runs; the experiment of the newest run is last."""
    names = [run.manifest.experiment.name for run in results.records]
    return list(reversed(dict.fromkeys(reversed(names))))


def shifts(histories: Sequence[History]) -> Iterator[Shift]:
    """Yield the description of every change of level in the histories, the newest first."""
    changes_found = [
        Shift(
            about=history.about,
            when=f"{point.started:%Y-%m-%d %H:%M}" if point.started else "",
            run_id=point.run_id,
            text=f"{history.size(change)}; {history.evidence(change)}",
            word=history.word(change),
        )
        for history in histories
        for change in history.changes
        for point in (history.points[change.index],)
    ]
    yield from sorted(changes_found, key=lambda shift: (shift.when, shift.run_id), reverse=True)


def _changes(key: Sequence[str], points: Sequence[Point]) -> list[ChangePoint]:
    return change_points([point.median for point in points], seed_of(0, "trend", *key))


def _place(history: History) -> tuple[object, ...]:
    labels = label_sort_key(tuple(("", value) for value in history.labels.split(SEPARATOR)))
    return (not history.metric.headline, history.scenario, history.link, history.metric.name, labels, history.transport)
