"""Read the results of one run, or of all runs in a folder, into polars frames."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from mplab.analysis.errors import NotAnalysedError, NotARunError, TablesError
from mplab.analysis.metric import label_value
from mplab.analysis.record.links import measurements
from mplab.analysis.record.run import Cell, Run, read_run
from mplab.analysis.record.tables import read_tables
from mplab.analysis.results.columns import RESULT_TABLES, trace_columns, trace_schema
from mplab.analysis.results.reported import SummaryComparison, SummaryGroup, read_summary
from mplab.analysis.results.views import html, line
from mplab.analysis.scores.scoring import read_cell_values
from mplab.base.deferred import deferred
from mplab.base.suggest import unknown
from mplab.format.times import time_of

if TYPE_CHECKING:
    from mplab.analysis.results.plots import ResultsFigure

Row = dict[str, object]
SEPARATOR = " · "
"""Separator between the values of labels."""


@dataclass(frozen=True, repr=False)
class Results:
    """Results of one or more runs, oldest first.

    Each property (`runs`, `cells`, `values`, …) is a frame with the columns of the table of this name in
    `mplab.analysis.results.columns.RESULT_TABLES`. A frame is read on first use, from the records, scores and reports
    of the runs. `traces` reads mptrace's tables, `to_pandas` returns frames of pandas, and `plot` draws a metric.
    """

    records: tuple[Run, ...]
    unread: list[str] = field(default_factory=list)
    """Messages on folders without a readable run, and (with several runs) on damaged files; their rows are left out."""

    def __repr__(self) -> str:
        """Return numbers of runs and cells in one line, such as ``<Results: 2 runs of demo; … 96 of 96 cells ok>``."""
        return f"<Results: {line(self)}>"

    def _repr_html_(self) -> str:
        return html(self)

    def only(self, *, experiment: str = "", run: str = "") -> "Results":
        """Return the results of the runs of an experiment, or of the run whose id begins with ``run``.

        Raises:
            ValueError: there is no such run.
        """
        names = {record.manifest.experiment.name for record in self.records}
        if experiment and experiment not in names:
            raise ValueError(unknown("experiment", experiment, names))
        records = tuple(
            record
            for record in self.records
            if experiment in {"", record.manifest.experiment.name} and record.manifest.run_id.startswith(run)
        )
        if not records:
            raise ValueError(unknown("run", run, (record.manifest.run_id for record in self.records)))
        return Results(records, list(self.unread))

    @cached_property
    def runs(self) -> pl.DataFrame:
        """Return a frame with a row per run."""
        return self._frame("runs", lambda run: (run_row(run),))

    @cached_property
    def cells(self) -> pl.DataFrame:
        """Return a frame with a row per planned cell."""
        return self._frame("cells", cell_rows)

    @cached_property
    def values(self) -> pl.DataFrame:
        """Return a frame with a row per value of an ok cell; runs that were not analysed have no rows."""
        return self._frame("values", value_rows)

    @property
    def cell_values(self) -> pl.DataFrame:
        """Return the frame `values` with one row per cell, metric and labels: the median of the cell's repetitions."""
        keys = [name for name in self.values.columns if name not in {"value", "repeat"}]
        return self.values.group_by(keys, maintain_order=True).agg(pl.col("value").median())

    @cached_property
    def statistics(self) -> pl.DataFrame:
        """Return a frame with a row per transport, metric, labels, scenario and link that the report of a run has."""
        return self._frame("statistics", statistics_rows)

    @cached_property
    def contrasts(self) -> pl.DataFrame:
        """Return a frame with one row per comparison of two transports in a report."""
        return self._frame("contrasts", contrast_rows)

    @cached_property
    def links(self) -> pl.DataFrame:
        """Return a frame with one row per measured quantity (rate or round-trip time) of a link in a cell."""
        return self._frame("links", link_rows)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """Return a frame with a row per step of a cell."""
        return self._frame("steps", step_rows)

    def table(self, name: str) -> pl.DataFrame:
        """Return the frame of the result table called ``name``. Raises KeyError when there is no such table."""
        if name not in RESULT_TABLES:
            raise KeyError(name)
        frame: pl.DataFrame = getattr(self, name)
        return frame

    def _frame(self, name: str, rows_of: Callable[[Run], Iterable[Row]]) -> pl.DataFrame:
        """Return the rows of all runs as a frame; a run with a damaged file is left out and noted in ``unread``.

        Raises:
            TablesError: a file is damaged, and there is only one run.
        """
        rows: list[Row] = []
        for run in self.records:
            try:
                rows += list(rows_of(run))
            except TablesError as error:
                if len(self.records) == 1:
                    raise
                self.unread.append(str(error))
        return pl.DataFrame(rows, schema=RESULT_TABLES[name].schema, orient="row")

    def traces(self, name: str) -> pl.DataFrame:
        """Return an mptrace table (docs/trace-tables.md) of all ok cells, after columns ``run_id`` and ``cell``.

        Tables of an older mptrace are upgraded.

        Raises:
            KeyError: no table has this name.
            TablesError: a file is damaged, or from a newer mptrace.
        """
        return trace_frame(self.records, name)

    def to_pandas(self, name: str) -> Any:  # noqa: ANN401 - pandas is not a dependency
        """Return a result table, or an mptrace table as `traces` does, as a pandas DataFrame.

        Raises:
            KeyError: no table has this name.
            ModuleNotFoundError: pandas or pyarrow is not installed.
        """
        frame = self.table(name) if name in RESULT_TABLES else self.traces(name)
        try:
            return frame.to_pandas()
        except ModuleNotFoundError as error:
            message = f"{error.name} is not installed. Run: pip install pandas pyarrow"
            raise ModuleNotFoundError(message, name=error.name) from error

    def plot(self, metric: str, *, scenario: str = "", link: str = "", labels: str = "") -> "ResultsFigure":
        """Draw each value of a metric as a point, and the median with its 95 % interval, per run and transport.

        Each scenario, link condition and combination of labels has a facet; values are never pooled over them, nor
        over runs. The intervals are those of the reports. ``scenario``, ``link`` and ``labels`` select facets.

        Raises:
            FigureError: no value has this metric, scenario, link or labels, or the plot would have too many facets.
        """
        with deferred("matplotlib is slow to import"):
            from mplab.analysis.results.plots import plot
        return plot(self, metric, scenario=scenario, link=link, labels=labels)


def load(path: Path | str) -> Results:
    """Read a run directory, or all runs in a folder.

    Folders that cannot be read, and second folders of the same run, are left out and named in `Results.unread`.

    Raises:
        NotARunError: ``path`` is not a run and holds no runs, or it is a run that cannot be read.
    """
    path = Path(path)
    if (path / "manifest.json").is_file():
        return Results((read_run(path),))
    folders = sorted(filter(_may_be_run, path.iterdir())) if path.is_dir() else []
    if not folders:
        raise NotARunError(path, "no manifest.json in it, nor in the folders in it")
    runs: dict[str, Run] = {}
    unread = []
    for directory in folders:
        try:
            run = read_run(directory)
        except (NotARunError, OSError) as error:
            unread.append(str(error))
            continue
        if run.manifest.run_id in runs:
            unread.append(f"{directory}: {runs[run.manifest.run_id].directory} is the same run {run.manifest.run_id}")
        else:
            runs[run.manifest.run_id] = run
    return Results(tuple(sorted(runs.values(), key=started)), unread)


def _may_be_run(path: Path) -> bool:
    """Return whether a folder has a manifest or cells: a run without a manifest is reported as unread."""
    return (path / "manifest.json").is_file() or (path / "cells").is_dir()


def started(run: Run) -> tuple[str, str]:
    """Return the sort key of a run: its start, then its name."""
    return (run.manifest.started, run.manifest.run_id)


def run_row(run: Run) -> Row:
    """Return the row of a run in the table ``runs``."""
    manifest, counts = run.manifest, run.counts
    return {
        "run_id": manifest.run_id,
        "path": str(run.directory),
        "experiment": manifest.experiment.name,
        "title": manifest.experiment.title or manifest.experiment.name,
        "started": time_of(manifest.started),
        "duration_s": run.duration_s,
        "seed": manifest.experiment.seed,
        "repetitions": manifest.experiment.repetitions,
        "lab": manifest.lab.kind or None,
        "mplab": _text(manifest.versions.get("mplab")),
        "kernel": manifest.host.kernel or None,
        "commit": manifest.git.commit,
        "dirty": manifest.git.dirty,
        "finished": run.finished,
        "complete": run.complete,
        **{outcome: counts[outcome] for outcome in ("ok", "invalid", "failed", "partial", "missing")},
        "analysed": (run.directory / "report" / "summary.json").is_file(),
    }


def cell_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``cells``."""
    for cell in run.cells:
        record = cell.record
        yield {
            **_of_cell(run, cell),
            "index": cell.spec.index if cell.spec else None,
            "seed": cell.spec.seed if cell.spec else None,
            "outcome": cell.outcome,
            "reasons": "; ".join(cell.reasons),
            "warnings": "; ".join(record.warnings) if record else "",
            "attempt": record.attempt if record else None,
            "started": time_of(record.started) if record else None,
            "duration_s": sum(record.timings_s.values()) if record else None,
            "overloaded": record.host.overloaded if record else None,
        }


def value_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``values``."""
    for cell in run.cells:
        if cell.ok and cell.directory is not None:
            for row in read_cell_values(cell.directory):
                yield {
                    **_of_cell(run, cell),
                    "metric": row.metric,
                    "unit": row.unit,
                    **_of_labels(row.labels),
                    "value": row.value,
                    "repeat": row.repeat or None,
                }


def statistics_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``statistics``."""
    for group in _groups(run):
        for series in group.transports:
            if not series.n:
                continue
            compared = series.comparison or SummaryComparison()
            low, high = series.interval or (None, None)
            gain_low, gain_high = compared.gain_interval or (None, None)
            yield {
                **_of_group(run, group),
                "title": group.title,
                "better": group.better,
                "headline": group.headline,
                "traced": group.traced,
                **series.model_dump(include=_DESCRIBED),
                "low": low,
                "high": high,
                "baseline": compared.baseline,
                "gain": compared.gain,
                "gain_low": gain_low,
                "gain_high": gain_high,
                "best": group.best == series.transport,
            }


_DESCRIBED = {"transport", "cells", "n", "median", "q1", "q3", "mean", "sd", "min", "max"}
_CONTRASTED = {
    "transport",
    "reference",
    "pairs",
    "shift",
    "p",
    "p_family",
    "p_bh",
    "dominance",
    "cliffs_delta",
    "needed",
}


def contrast_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``contrasts``."""
    for group in _groups(run):
        for contrast in group.contrasts:
            low, high = contrast.interval or (None, None)
            yield {**_of_group(run, group), **contrast.model_dump(include=_CONTRASTED), "low": low, "high": high}


def link_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``links``."""
    for measurement in measurements(run):
        yield {
            "run_id": run.manifest.run_id,
            "cell": measurement.cell,
            "link": measurement.link,
            "interface": measurement.interface,
            "quantity": measurement.quantity,
            "asked": measurement.asked,
            "measured": measurement.measured,
            "deviation": measurement.deviation,
        }


def step_rows(run: Run) -> Iterator[Row]:
    """Yield the rows of a run in the table ``steps``."""
    for cell in run.cells:
        if cell.record is not None:
            for step, seconds in cell.record.timings_s.items():
                yield {"run_id": run.manifest.run_id, "cell": cell.id, "step": step, "seconds": seconds}


def trace_frame(runs: Iterable[Run], name: str) -> pl.DataFrame:
    """Return an mptrace table of all ok cells of the runs, with ``run_id`` and ``cell`` as first columns."""
    columns = [pl.col(own).cast(kind).alias(column) for column, (own, kind) in trace_columns(name).items()]
    frames = [pl.DataFrame(schema=trace_schema(name))]
    for run in runs:
        for cell in run.cells:
            tables = read_tables(cell)
            if cell.ok and tables.exist:
                own = [pl.lit(run.manifest.run_id).alias("run_id"), pl.lit(cell.id).alias("cell")]
                frames.append(tables[name].select(*own, *columns))
    return pl.concat(frames)


def _groups(run: Run) -> tuple[SummaryGroup, ...]:
    """Return the groups (a metric with its labels, scenario and link) of the run's report; () without a report."""
    try:
        return read_summary(run.directory).metrics
    except NotAnalysedError:
        return ()


def _of_cell(run: Run, cell: Cell) -> Row:
    spec = cell.spec
    return {
        "run_id": run.manifest.run_id,
        "cell": cell.id,
        "scenario": spec.scenario if spec else None,
        "transport": spec.transport if spec else None,
        "link": spec.link if spec else None,
        "block": (spec.block or spec.repetition) if spec else None,
        "repetition": spec.repetition if spec else None,
    }


def _of_group(run: Run, group: SummaryGroup) -> Row:
    known = {"scenario": group.scenario, "link": group.link, "metric": group.metric, "unit": group.unit}
    return {"run_id": run.manifest.run_id, **known, **_of_labels(group.labels)}


def _of_labels(labels: Mapping[str, str]) -> Row:
    values = (value for text in labels.values() if (value := label_value(text)) is not None)
    return {"labels": SEPARATOR.join(labels.values()), "label_value": next(values, None)}


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
