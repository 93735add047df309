"""Define the result tables, which have rows from many runs: columns, types, units and meanings.

The frames and the index are made with these definitions. docs/reference/result-tables.md is made from them.
"""

from dataclasses import dataclass

import polars as pl

from mplab.analysis.record.schema import TABLES

Type = type[pl.DataType] | pl.DataType
TIME = pl.Datetime("us", "UTC")
TRACE_TIME = pl.Datetime("ns", "UTC")
"""Type of the times in mptrace's tables: captures have nanoseconds."""


@dataclass(frozen=True)
class ResultColumn:
    """Name, type and meaning of a column of a `ResultTable`."""

    name: str
    type: Type
    doc: str


@dataclass(frozen=True)
class ResultTable:
    """Definition of a table with rows from many runs: its name, the meaning of a row (``doc``), and its columns."""

    name: str
    doc: str
    fields: tuple[ResultColumn, ...]

    @property
    def schema(self) -> dict[str, Type]:
        """Return name → polars type of the columns."""
        return {field.name: field.type for field in self.fields}


def _text(name: str, doc: str) -> ResultColumn:
    return ResultColumn(name, pl.String, doc)


def _whole(name: str, doc: str) -> ResultColumn:
    return ResultColumn(name, pl.Int64, doc)


def _real(name: str, doc: str) -> ResultColumn:
    return ResultColumn(name, pl.Float64, doc)


def _truth(name: str, doc: str) -> ResultColumn:
    return ResultColumn(name, pl.Boolean, doc)


_RUN = _text("run_id", "name of the run")
_CELL = _text("cell", "id of the cell")
_OF_CELL = (
    _RUN,
    _CELL,
    _text("scenario", "label of the scenario"),
    _text("transport", "label of the transport"),
    _text("link", "name of the link condition"),
    _whole("block", "block of the plan"),
    _whole("repetition", "repetition, from 1"),
)
_OF_METRIC = (
    _text("metric", "name of the metric"),
    _text("unit", "of value; empty for a number without a unit"),
    _text("labels", "values of its labels, joined by ` · `"),
    _real("label_value", "the first label that is a quantity, as a number (10 kB: 10000), to sort by; else null"),
)

RUNS = ResultTable(
    "runs",
    "One row per run that can be read.",
    (
        _RUN,
        _text("path", "run directory"),
        _text("experiment", "name of the experiment"),
        _text("title", "its title"),
        ResultColumn("started", TIME, "when the run began (UTC)"),
        _real("duration_s", "from its first event to its last, s"),
        _whole("seed", "of the experiment"),
        _whole("repetitions", "that were planned"),
        _text("lab", "kind of lab"),
        _text("mplab", "version that ran it"),
        _text("kernel", "of the host"),
        _text("commit", "of the source; null when unknown"),
        _truth("dirty", "whether the source had local changes"),
        _truth("finished", "whether its last event is its end"),
        _truth("complete", "whether every planned cell has an outcome"),
        _whole("ok", "cells"),
        _whole("invalid", "cells"),
        _whole("failed", "cells"),
        _whole("partial", "cells cut off"),
        _whole("missing", "cells not run"),
        _truth("analysed", "whether it has a report"),
    ),
)
CELLS = ResultTable(
    "cells",
    "One row per planned cell.",
    (
        *_OF_CELL,
        _whole("index", "place in the plan"),
        _whole("seed", "of all random numbers in the cell"),
        _text("outcome", "`ok`, `invalid`, `failed`, `partial`, `missing`"),
        _text("reasons", "sentences, joined by `; `"),
        _text("warnings", "disturbances, joined by `; `"),
        _whole("attempt", "the one that counts, from 1"),
        ResultColumn("started", TIME, "when it began (UTC)"),
        _real("duration_s", "all of its steps, s"),
        _truth("overloaded", "whether the host was; null when it was not observed"),
    ),
)
VALUES = ResultTable(
    "values",
    "One row per value of an ok cell. A cell with repetitions has a row for each: they are not independent values.",
    (
        *_OF_CELL,
        *_OF_METRIC,
        _real("value", "measured value"),
        _whole("repeat", "repetition inside the cell, from 1; null if the cell has none"),
    ),
)
STATISTICS = ResultTable(
    "statistics",
    "One row per transport's series in a run's report.",
    (
        _RUN,
        _text("scenario", "label of the scenario"),
        _text("link", "name of the link condition"),
        *_OF_METRIC,
        _text("title", "of the metric"),
        _text("better", "`lower`, `higher`, `neither`"),
        _truth("headline", "whether it is a headline metric"),
        _truth("traced", "whether it is a metric of the traces"),
        _text("transport", "label of the transport"),
        _whole("cells", "ok cells"),
        _whole("n", "cells with values"),
        _real("median", "of the cells' values (a cell with repetitions: their median)"),
        _real("q1", "first quartile"),
        _real("q3", "third quartile"),
        _real("mean", "of the cells' values"),
        _real("sd", "standard deviation, n - 1"),
        _real("min", "least"),
        _real("max", "most"),
        _real("low", "95 % interval of the median"),
        _real("high", "its other end"),
        _text("baseline", "best single path; null for itself"),
        _real("gain", "G against it; null for single paths"),
        _real("gain_low", "95 % interval of G"),
        _real("gain_high", "its other end"),
        _truth("best", "whether its median is the best"),
    ),
)
CONTRASTS = ResultTable(
    "contrasts",
    "One row per contrast of two transports in a run's report; reports of an older mplab have none.",
    (
        _RUN,
        _text("scenario", "label of the scenario"),
        _text("link", "name of the link condition"),
        *_OF_METRIC,
        _text("transport", "label of the transport"),
        _text("reference", "label of the transport that it is compared with"),
        _whole("pairs", "blocks that both have"),
        _real("shift", "Hodges-Lehmann estimate, in unit"),
        _real("low", "95 % interval of the shift"),
        _real("high", "its other end"),
        _real("p", "signed-rank test, not corrected"),
        _real("p_family", "corrected for all contrasts of the family (docs/statistics.md)"),
        _real("p_bh", "corrected by Benjamini and Hochberg's"),
        _real("dominance", "of the blocks, -1 … 1"),
        _real("cliffs_delta", "of all values, -1 … 1"),
        _whole("needed", "repetitions needed to detect such an effect"),
    ),
)
LINKS = ResultTable(
    "links",
    "One row per quantity of a link that was probed.",
    (
        _RUN,
        _CELL,
        _text("link", "name of the link condition"),
        _text("interface", "of the phone"),
        _text("quantity", "rate or round-trip time, with its direction"),
        _real("asked", "kbit/s or ms"),
        _real("measured", "kbit/s or ms"),
        _real("deviation", "(measured - asked) / asked"),
    ),
)
STEPS = ResultTable(
    "steps",
    "One row per step of a cell.",
    (_RUN, _CELL, _text("step", "its name"), _real("seconds", "how long it took, s")),
)

RESULT_TABLES: dict[str, ResultTable] = {
    table.name: table for table in (RUNS, CELLS, VALUES, STATISTICS, CONTRASTS, LINKS, STEPS)
}
"""Name of a result table → its definition."""


def trace_columns(name: str) -> dict[str, tuple[str, Type]]:
    """Return the columns that an mptrace table has in results: name → (name in mptrace's file, type).

    Times, which the file has as nanoseconds since 1970, are timestamps: ``start_ns`` is ``start_time``, and ``time_ns``
    is ``time``.

    Raises:
        KeyError: mptrace has no table called ``name``.
    """
    columns: dict[str, tuple[str, Type]] = {}
    for column in TABLES[name].columns:
        if column.unit == "ns":
            stem = column.name.removesuffix("_ns")
            columns[stem if stem == "time" else f"{stem}_time"] = (column.name, TRACE_TIME)
        else:
            columns[column.name] = (column.name, column.type)
    return columns


def trace_schema(name: str) -> dict[str, Type]:
    """Return name → type of the columns of an mptrace table in results; the first two are ``run_id`` and ``cell``.

    Raises:
        KeyError: as `trace_columns`.
    """
    columns = {column: kind for column, (_, kind) in trace_columns(name).items()}
    return {_RUN.name: _RUN.type, _CELL.name: _CELL.type, **columns}


def markdown() -> str:
    """Return the definitions of all tables as Markdown, in the form of docs/reference/result-tables.md."""
    parts = []
    for table in RESULT_TABLES.values():
        rows = "\n".join(f"| `{field.name}` | {_TYPES[str(field.type)]} | {field.doc} |" for field in table.fields)
        parts.append(f"## {table.name}\n\n{table.doc}\n\n| column | type | meaning |\n| --- | --- | --- |\n{rows}\n")
    return "\n".join(parts)


_TYPES = {"String": "text", "Int64": "whole number", "Float64": "number", "Boolean": "truth", str(TIME): "time"}
