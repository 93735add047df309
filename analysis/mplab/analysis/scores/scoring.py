"""Make ``scores.json`` of a cell from its observations and tables."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pydantic import ValidationError

from mplab.analysis.errors import TablesError
from mplab.analysis.files import parse_json, rounded_float, write_json
from mplab.analysis.metric import Observation, Value, describe_limits
from mplab.analysis.record.decode import AnalysisProblem
from mplab.analysis.record.run import Cell, first_problem
from mplab.analysis.record.tables import read_tables
from mplab.analysis.scores.plugins import ScoringPlugin
from mplab.format.cell import FORMAT, ScoreRow, Scores
from mplab.format.record import json_of

_FILE = "scores.json"
_MOST = 1e15
"""Largest allowed absolute value of a metric, in any unit: larger values overflow in figures and statistics."""


@dataclass(frozen=True)
class CellScores:
    """The values of a cell for its metrics, or the problem that prevented their computation."""

    cell: str
    values: tuple[Value, ...] = ()
    problem: AnalysisProblem | None = None


def score_cell(cell: Cell, plugin: ScoringPlugin) -> CellScores:
    """Compute the values of a cell, write them to its ``scores.json``, and return them.

    An error of the plug-in becomes an `AnalysisProblem`; the cell's ``scores.json`` is then removed.
    """
    values: list[Value] = []
    problem = ""
    try:
        values = checked_values(plugin, cell.observations(), read_tables(cell), _folder(cell))
    except WrongValueError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001, RUF100 - one scenario's mistake must not hide the other cells
        problem = f"{type(error).__name__}: {error}".replace(f"{_folder(cell)}{os.sep}", "")
    if problem:
        _scores_path(cell).unlink(missing_ok=True)
        return CellScores(
            cell.id, problem=AnalysisProblem(cell.id, f"scenario {plugin.name} cannot be scored: {problem}")
        )
    ordered = sorted(values, key=lambda value: (value.metric, sorted(value.labels.items()), value.repeat))
    units = {metric.name: metric.unit for metric in plugin.metrics}
    rows = tuple(_row(value, units) for value in ordered)
    write_json(_scores_path(cell), json_of(Scores(cell=cell.id, values=rows)))
    return CellScores(cell.id, tuple(_value(row) for row in rows))


class WrongValueError(ValueError):
    """A value that a scenario's ``METRICS`` does not allow."""


def checked_values(
    plugin: ScoringPlugin, observations: Sequence[Observation], tables: Mapping[str, pl.DataFrame], folder: Path
) -> list[Value]:
    """Compute the values of a cell with its scenario's ``score``, check them against the metrics, and return them.

    Args:
        plugin: the scenario's plug-in.
        observations: lines of ``scenario.jsonl``.
        tables: name → table of the cell's traces.
        folder: folder of the cell.

    Raises:
        WrongValueError: a value has no metric or the wrong labels, is not finite, or is outside of the metric's limits.
        Exception: any exception of `score`.
    """
    values = plugin.score(observations, tables, folder)
    for value in values:
        if problem := _wrong(value, plugin):
            raise WrongValueError(problem)
    return values


def read_scores(path: Path) -> list[Value]:
    """Return the values in a ``scores.json``. Raises TablesError as `read_cell_values`."""
    return [_value(row) for row in _rows(path)]


def read_cell_scores(directory: Path) -> list[Value]:
    """Return the values of the cell whose folder is ``directory``; an empty list when it was not scored.

    Raises:
        TablesError: as `read_cell_values`.
    """
    path = directory / _FILE
    return read_scores(path) if path.is_file() else []


def read_cell_values(directory: Path) -> tuple[ScoreRow, ...]:
    """Return the values, with units, of the cell whose folder is ``directory``; an empty tuple when it was not scored.

    Raises:
        TablesError: the file is damaged, or from a newer mplab.
    """
    path = directory / _FILE
    return _rows(path) if path.is_file() else ()


def has_scores(cell: Cell) -> bool:
    """Return whether a cell was scored, that is, has a ``scores.json``."""
    return cell.directory is not None and _scores_path(cell).is_file()


def _rows(path: Path) -> tuple[ScoreRow, ...]:
    try:
        scores = Scores.model_validate(parse_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise TablesError(f"{path}: cannot be read ({reason}); `mplab analyze` makes it again") from error
    if scores.format > FORMAT:
        raise TablesError(f"{path}: format {scores.format}; this mplab reads up to {FORMAT}: make it again")
    return scores.values


def _folder(cell: Cell) -> Path:
    if cell.directory is None:
        raise ValueError(f"cell {cell.id} has no directory")
    return cell.directory


def _scores_path(cell: Cell) -> Path:
    return _folder(cell) / _FILE


def _row(value: Value, units: dict[str, str]) -> ScoreRow:
    labels = {name: str(value.labels[name]) for name in sorted(value.labels)}
    number = rounded_float(value.value)
    return ScoreRow(metric=value.metric, value=number, unit=units[value.metric], labels=labels, repeat=value.repeat)


def _value(row: ScoreRow) -> Value:
    return Value(row.metric, row.value, row.labels, row.repeat)


def _wrong(value: Value, plugin: ScoringPlugin) -> str:
    metric = next((metric for metric in plugin.metrics if metric.name == value.metric), None)
    if metric is None:
        return f"METRICS has no metric {value.metric}"
    if set(value.labels) != set(metric.labels):
        given_labels, declared = sorted(value.labels), sorted(metric.labels)
        return f"a value of {value.metric} has the labels {given_labels}; METRICS declares {declared}"
    if not math.isfinite(value.value) or abs(value.value) > _MOST:
        return f"a value of {value.metric} is {value.value}"
    least, most = metric.limits
    if (least is not None and value.value < least) or (most is not None and value.value > most):
        return f"a value of {value.metric} is {value.value:g} {metric.unit}. Allowed: {describe_limits(metric)}"
    return ""
