"""Read mptrace's tables of a cell or of a folder as polars frames, each on first use; upgrade those of schema 1.

Schema 1 had only ``connections`` and ``subflows``, with the counts of each direction as columns of ``subflows``.
Columns that schema 1 lacked are null. To fill them, make the tables again from the captures with ``mplab analyze``.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from mplab.analysis.errors import TablesError
from mplab.analysis.record.run import Cell
from mplab.analysis.record.schema import SCHEMAS, VERSION, VERSION_KEY

FIRST = 1
"""The oldest schema that can be read."""

Old = Callable[[str], pl.DataFrame]
"""Reads a table of the old schema by its name."""

NETWORKS = {"wlan": "wifi", "rmnet": "cellular", "lo": "loopback"}
"""Prefix of an interface's name → network, as mptrace guesses it."""


def upgrade(name: str, old: Old) -> pl.DataFrame:
    """Return table ``name`` with the columns of the present schema, converted from the tables of schema 1 (``old``).

    A table that schema 1 lacked is empty.
    """
    convert = {"connections": _connections, "subflows": _subflows, "directions": _directions}.get(name)
    return conform(name, convert(old) if convert else pl.DataFrame())


def conform(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with exactly the columns of table ``name``, in order and typed; missing columns are null."""
    schema = SCHEMAS[name]
    if not frame.columns:
        return pl.DataFrame(schema=schema)
    return frame.select(
        (pl.col(column) if column in frame.columns else pl.lit(None)).cast(dtype).alias(column)
        for column, dtype in schema.items()
    )


def _connections(old: Old) -> pl.DataFrame:
    frame = old("connections")
    networks = _networks(pl.element())
    return frame.with_columns(
        join_delay_ms=pl.lit(None, pl.Float64),
        networks=pl.col("interfaces").str.split(",").list.eval(networks).list.join(","),
    )


def _subflows(old: Old) -> pl.DataFrame:
    carried = (pl.col("payload_up") + pl.col("payload_down")) > 0
    return old("subflows").with_columns(used=carried, network=_networks(pl.col("interface")))


def _networks(interface: pl.Expr) -> pl.Expr:
    expression = pl.lit("")
    for prefix, network in NETWORKS.items():
        expression = pl.when(interface.str.starts_with(prefix)).then(pl.lit(network)).otherwise(expression)
    return expression


def _directions(old: Old) -> pl.DataFrame:
    subflows = old("subflows")
    return pl.concat([_direction(subflows, direction) for direction in ("up", "down")]).sort(
        "connection_id", "subflow_id", maintain_order=True
    )


def _direction(subflows: pl.DataFrame, way: str) -> pl.DataFrame:
    counts: Mapping[str, str] = {
        "segments": "segments",
        "bytes": "payload",
        "unique_bytes": "unique",
        "retransmitted_segments": "retransmitted_segments",
        "retransmitted_bytes": "retransmitted_bytes",
    }
    return subflows.select(
        "connection_id",
        "subflow_id",
        pl.lit("tcp").alias("level"),
        pl.lit(way).alias("direction"),
        *(pl.col(f"{old}_{way}").alias(new) for new, old in counts.items()),
    )


FOLDER, LOOPBACK, ENDS, PROXY = "tables", "lo", "ends", "proxy"
"""A cell's folder of tables; its subfolders for the loopback capture, for both ends compared, and for the far end.

The far end is the proxy; on the direct route it is the origin."""


Row: TypeAlias = Mapping[str, Any]
"""Column → value of a row; `mplab.analysis.record.schema` and `mplab.analysis.results.columns` define the types."""


class Tables(Mapping[str, pl.DataFrame]):
    """Name → frame of all tables of `mplab.analysis.record.schema.SCHEMAS` in a folder, sorted by connection.

    A table without a file is empty but has its columns. Rows of one connection keep the order of the file, in which
    they are ordered by the time of their events. Tables of schema 1 are upgraded (`mplab.analysis.record.tables`).

    Args:
        folder: folder of the Parquet files; None: all tables are empty.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._read: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        """Return the table called ``name``.

        Raises:
            KeyError: no table has this name.
            TablesError: the file is damaged, or from a newer mptrace.
        """
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all tables."""
        return iter(SCHEMAS)

    def __len__(self) -> int:
        """Return the number of tables, empty ones included."""
        return len(SCHEMAS)

    @property
    def exist(self) -> bool:
        """Return whether the folder has tables, that is, the file of ``connections``."""
        return self._path("connections") is not None

    def _path(self, name: str) -> Path | None:
        path = self.folder / f"{name}.parquet" if self.folder else None
        return path if path is not None and path.is_file() else None

    def _load(self, name: str) -> pl.DataFrame:
        empty = pl.DataFrame(schema=SCHEMAS[name])
        if self._version() < VERSION:
            return upgrade(name, self._parquet).sort("connection_id", maintain_order=True)
        if self._path(name) is None:
            return empty
        return conform(name, self._parquet(name)).sort("connection_id", maintain_order=True)

    def _version(self) -> int:
        path = self._path("connections")
        if path is None:
            return VERSION
        try:
            version = int(pl.read_parquet_metadata(path).get(VERSION_KEY, FIRST))
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise _damaged(path, error) from error
        if version > VERSION:
            raise TablesError(f"{path}: schema {version}; this mplab reads up to {VERSION}: make the tables again")
        return version

    def _parquet(self, name: str) -> pl.DataFrame:
        path = self._path(name)
        if path is None:
            raise TablesError(f"{self.folder}: {name}.parquet is missing: make the tables again")
        try:
            return pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _damaged(path, error) from error


def read_tables(cell: Cell) -> Tables:
    """Return the tables of a cell; all are empty when the cell has none."""
    return Tables(cell.directory / FOLDER if cell.directory else None)


def _damaged(path: Path, error: Exception) -> TablesError:
    return TablesError(f"{path}: cannot be read ({error}); `mplab analyze` makes the tables again from the captures")
