"""Load the columns of mptrace's tables from ``analysis/mptrace/schema.json``, which is generated from its Go types."""

import json
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import polars as pl

from mplab.base.places import ROOT

SCHEMA_FILE = ROOT / "analysis" / "mptrace" / "schema.json"
VERSION_KEY = "mptrace.schema"
"""Key of the schema version in the metadata of each Parquet file."""

TYPES: dict[str, type[pl.DataType]] = {
    "int32": pl.Int32,
    "int64": pl.Int64,
    "float64": pl.Float64,
    "string": pl.String,
    "bool": pl.Boolean,
    "timestamp": pl.Int64,
}
"""Type in the schema → type of a frame's column; a timestamp is read as nanoseconds since 1970 UTC."""

Schema = dict[str, type[pl.DataType]]


class _ColumnContent(TypedDict):
    name: str
    type: str
    unit: NotRequired[str]
    nullable: NotRequired[bool]
    doc: NotRequired[str]


class _TableContent(TypedDict):
    doc: NotRequired[str]
    columns: list[_ColumnContent]


class _Content(TypedDict):
    schema: int
    tables: dict[str, _TableContent]


@dataclass(frozen=True)
class Column:
    """Description of a column of a `Table`; ``unit`` is "" for names, counts and booleans."""

    name: str
    type: type[pl.DataType]
    unit: str
    nullable: bool
    doc: str


@dataclass(frozen=True)
class Table:
    """Description of one of mptrace's tables."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> Schema:
        """Return column → type, in the order of the file."""
        return {column.name: column.type for column in self.columns}


def parse_schema(text: str) -> tuple[int, dict[str, Table]]:
    """Return (version, name → table) of a ``schema.json``. Raises ValueError when the text is no such schema."""
    try:
        content: _Content = json.loads(text)
        tables = {name: _table(name, table) for name, table in content["tables"].items()}
        return int(content["schema"]), tables
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a schema of mptrace's tables: {error!r}") from error


def _table(name: str, content: _TableContent) -> Table:
    columns = (
        Column(c["name"], TYPES[c["type"]], c.get("unit", ""), bool(c.get("nullable")), c.get("doc", ""))
        for c in content["columns"]
    )
    return Table(name, content.get("doc", ""), tuple(columns))


VERSION, TABLES = parse_schema(SCHEMA_FILE.read_text(encoding="utf-8"))
SCHEMAS: dict[str, Schema] = {name: table.schema for name, table in TABLES.items()}
"""Name of a table → name of a column → its polars type."""
