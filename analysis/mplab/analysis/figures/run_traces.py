"""Read the traces of a run for figures: the tables of its ok cells, pooled or one by one.

Columns, conditions and joins that several figures use are at the end.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from mplab.analysis.errors import FigureError
from mplab.analysis.metric import label_sort_key
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.record.tables import FOLDER, LOOPBACK, Tables
from mplab.analysis.scores.changes import Change, read_changes
from mplab.analysis.scores.scoring import read_cell_scores
from mplab.base.suggest import did_you_mean
from mplab.format.cell import CellRecord
from mplab.format.experiment import TransportRecord
from mplab.format.link import LinkCondition
from mplab.format.palette import MARKERS_OF_FIGURES, PALETTE

_MOST_NAMED = 12
"""Maximum number of cells that a message lists."""

LABELS = ("cell", "scenario", "link", "transport")
"""First columns of each frame that pools the rows of several cells."""

BIG = frozenset({"rtt", "points", "bursts", "events", "retransmissions", "reinjections", "acks", "throughput"})
"""Large tables, which are read each time instead of kept in memory: a run has many cells."""

CELLULAR, WIFI = "cellular", "wifi"


@dataclass(frozen=True)
class CellTrace:
    """The tables of a cell, or of a folder that mptrace wrote.

    ``session``: True if the transport has MPFlex sessions. The connections on the phone's interfaces are then the paths
    of the session; those of applications are on the loopback interface.
    """

    name: str
    scenario: str
    link: str
    transport: str
    tables: Tables
    session: bool = False
    changes: tuple[Change, ...] = ()
    """Scheduled changes of the paths during the cell."""

    @cached_property
    def applications(self) -> "CellTrace":
        """Return the trace of the connections that applications opened.

        With MPFlex sessions, it has the tables of the loopback interface; otherwise it is this trace.
        """
        folder = self.tables.folder
        return replace(self, tables=Tables(folder / LOOPBACK)) if self.session and folder else self

    def read(self, table: str) -> pl.DataFrame:
        """Return a table by its name; tables in `BIG` are read each time and not kept in memory."""
        return Tables(self.tables.folder)[table] if table in BIG else self.tables[table]


SCORES: dict[str, type[pl.DataType]] = dict.fromkeys((*LABELS, "metric", "label"), pl.String) | {"value": pl.Float64}
"""Name → type of the columns of `Traces.scores`; ``label`` joins the labels of a value, as in ``1 MB · down``."""


@dataclass(frozen=True)
class Scored:
    """An ok cell, with the data that figures of scores use: the folder of the scores, and the record of the cell."""

    name: str
    scenario: str
    link: str
    transport: str
    directory: Path
    record: CellRecord | None


@dataclass(frozen=True)
class Traces:
    """Input of the figures of a run: the tables of its ok cells, and their scores."""

    traces: tuple[CellTrace, ...]
    transports: tuple[TransportRecord, ...]
    links: tuple[LinkCondition, ...] = ()
    scored: tuple[Scored, ...] = ()
    """The ok cells, in the order of the experiment."""

    @cached_property
    def scores(self) -> pl.DataFrame:
        """Return a frame of the values of all cells, with the columns `SCORES`; labels are sorted within a metric.

        Raises:
            TablesError: a ``scores.json`` is damaged, or from a newer mplab.
        """
        rows = []
        for cell in self.scored:
            values = read_cell_scores(cell.directory)
            for value in sorted(values, key=lambda v: (v.metric, label_sort_key(tuple(sorted(v.labels.items()))))):
                text = " · ".join(value.labels[name] for name in sorted(value.labels))
                keys = (cell.name, cell.scenario, cell.link, cell.transport)
                rows.append((*keys, value.metric, text, float(value.value)))
        return pl.DataFrame(rows, schema=SCORES, orient="row")

    def pooled(self, table: str, *columns: str | pl.Expr, where: pl.Expr | None = None) -> pl.DataFrame:
        """Return the rows of ``table`` of all cells in one frame: first the columns `LABELS`, then ``columns``.

        `LABELS` name the cell of a row. ``where`` selects rows; it is applied to each cell before the next cell is
        read.
        """
        return self.each(lambda trace: _cut(trace.read(table), columns, where))

    def each(self, frame: Callable[[CellTrace], pl.DataFrame]) -> pl.DataFrame:
        """Call ``frame`` for the trace of each cell; return the results in one frame, the columns `LABELS` first."""
        frames = [
            rows.select(
                pl.lit(trace.name).alias("cell"),
                pl.lit(trace.scenario).alias("scenario"),
                pl.lit(trace.link).alias("link"),
                pl.lit(trace.transport).alias("transport"),
                pl.all(),
            )
            for trace in self.traces
            if not (rows := frame(trace)).is_empty()
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(LABELS, pl.String))

    @cached_property
    def applications(self) -> "Traces":
        """Return the traces of the applications' connections, not those of sessions (`CellTrace.applications`)."""
        return replace(self, traces=tuple(trace.applications for trace in self.traces))

    @cached_property
    def largest_mptcp(self) -> tuple[CellTrace, int] | None:
        """Return (trace, connection_id) of the MPTCP connection with two subflows or more that carried most bytes.

        Return None when there is no such connection.
        """
        best: tuple[int, CellTrace, int] | None = None
        for trace in self.traces:
            frame = trace.tables["connections"].filter((pl.col("kind") == "mptcp") & (pl.col("subflows") > 1))
            size = pl.col("bytes_up") + pl.col("bytes_down")
            for number, total in frame.select("connection_id", size).iter_rows():
                if best is None or total > best[0]:
                    best = total, trace, number
        return best[1:] if best else None

    def one_per_transport(self) -> list[CellTrace]:
        """Return the first cell of each combination of scenario, link and transport, as an example."""
        first_of: dict[tuple[str, str, str], CellTrace] = {}
        for trace in self.traces:
            first_of.setdefault((trace.scenario, trace.link, trace.transport), trace)
        return list(first_of.values())


def traces_of(run: Run, cells: Sequence[str] = ()) -> Traces:
    """Return the traces of a run's ok cells, or of the named ``cells`` only.

    Raises:
        FigureError: one of ``cells`` is not the name of an ok cell.
    """
    usable = [cell for cell in run.cells if cell.ok and cell.spec is not None and cell.directory is not None]
    known = {cell.id: cell for cell in usable}
    for name in cells:
        if name not in known:
            shown = [*list(known)[:_MOST_NAMED], "…"] if len(known) > _MOST_NAMED else list(known)
            raise FigureError(
                f"{run.directory}: no ok cell is called {name!r}.{did_you_mean(name, known)} "
                f"Ok cells ({len(known)}): {', '.join(shown) or 'none'}"
            )
    sessions = {transport.label for transport in run.transports if transport.sessions}
    wanted = [cell for cell in usable if not cells or cell.id in cells]
    chosen = [trace for cell in wanted if (trace := trace_of(cell, sessions)) is not None]
    scored = [
        Scored(cell.id, spec.scenario, spec.link, spec.transport, cell.directory, cell.record)
        for cell in wanted
        if (spec := cell.spec) is not None and cell.directory is not None
    ]
    order = _order(run)
    return Traces(
        tuple(sorted(chosen, key=order)),
        run.transports,
        run.manifest.experiment.links,
        tuple(sorted(scored, key=order)),
    )


def traces_in(folder: Path) -> Traces:
    """Return the traces in a folder of tables that ``mptrace FILE… -o FOLDER`` wrote."""
    name = folder.resolve().name
    looks = TransportRecord(label=name, name=name, title=name, colour=PALETTE[2], marker=MARKERS_OF_FIGURES[0])
    return Traces((CellTrace(name, "", "", name, Tables(folder)),), (looks,))


def _order(run: Run) -> Callable[[CellTrace | Scored], tuple[int, ...]]:
    """Return a key function that sorts traces by scenario, link and transport, in the order of the experiment file."""
    experiment = run.manifest.experiment
    scenarios = [scenario.label for scenario in experiment.scenarios]
    links = [link.name for link in experiment.links]
    transports = [transport.label for transport in experiment.transports]

    def key(trace: CellTrace | Scored) -> tuple[int, ...]:
        named = ((scenarios, trace.scenario), (links, trace.link), (transports, trace.transport))
        return tuple(known.index(name) if name in known else len(known) for known, name in named)

    return key


def trace_of(cell: Cell, sessions: Collection[str]) -> CellTrace | None:
    """Return the trace of a cell, ok or not; None if it has no tables.

    ``sessions`` has the labels of the transports with MPFlex sessions.
    """
    if cell.spec is None or cell.directory is None:
        return None
    tables = Tables(cell.directory / FOLDER)
    spec = cell.spec
    if not tables.exist:
        return None
    changes = read_changes(cell.observations())
    return CellTrace(
        cell.id, spec.scenario, spec.link, spec.transport, tables, session=spec.transport in sessions, changes=changes
    )


def _cut(frame: pl.DataFrame, columns: Sequence[str | pl.Expr], where: pl.Expr | None) -> pl.DataFrame:
    return (frame if where is None else frame.filter(where)).select(*columns)


BYTES = (pl.col("bytes_up") + pl.col("bytes_down")).alias("bytes")
LONG_BYTES = 1_000_000
"""Minimum size of a long transfer, bytes, in baerts2015 (figures 4.8 and 5.5)."""

OPENED = pl.col("syn_seen")
"""Selects connections whose start is in the capture, so that their duration and size are complete."""

SEVERAL = pl.col("subflows") > 1
MPTCP = pl.col("kind") == "mptcp"
"""Selects Multipath TCP connections."""

APPLICATIONS = "With MPFlex, between application and agent."
"""Text for captions: with MPFlex, only captures of the phone's loopback separate the applications' connections."""

UNIQUE = pl.col("unique_up") + pl.col("unique_down")
"""Unique payload of a subflow in both directions, bytes."""

WHOLE_LEVEL = pl.when(MPTCP & ~pl.col("fallback")).then(pl.lit("mptcp")).otherwise(pl.lit("tcp"))
"""The ``level`` of the rows that count all data of a connection: mptcp, or tcp for plain TCP and after a fallback."""


def as_a_whole(frame: pl.DataFrame, trace: CellTrace) -> pl.DataFrame:
    """Return the rows of ``frame`` that count all data of a connection.

    Their ``level`` is mptcp for an MPTCP connection, and tcp for plain TCP and after a fallback.
    """
    levels = trace.tables["connections"].select("connection_id", whole=WHOLE_LEVEL)
    return frame.join(levels, on="connection_id").filter(pl.col("level") == pl.col("whole"))


def with_network(frame: pl.DataFrame, trace: CellTrace) -> pl.DataFrame:
    """Return ``frame``, whose rows have ``connection_id`` and ``subflow_id``, with the subflow's ``network`` added."""
    networks = trace.tables["subflows"].select("connection_id", "subflow_id", "network")
    return frame.join(networks, on=["connection_id", "subflow_id"])
