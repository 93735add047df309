"""Convert phone logs to tables, one for each kind of record, from a collector's store or from a logger's own files.

``python -m mplab.analysis.record.phonelog DIRECTORY -o OUT`` writes the tables as Parquet.
"""

import argparse
import gzip
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypedDict

import polars as pl

from mplab.base.places import ROOT

SCHEMA = ROOT / "docs" / "schema" / "phone-log.schema.json"

_BATCH = "batch"
_SCALARS: dict[str, type[pl.DataType]] = {
    "string": pl.String,
    "boolean": pl.Boolean,
    "number": pl.Float64,
    "integer": pl.Int64,
}


@dataclass(frozen=True)
class Collected:
    """Tables by kind of record. ``skipped`` counts lines without a record, such as the last line of a killed logger."""

    tables: dict[str, pl.DataFrame]
    skipped: int


@cache
def columns(kind: str) -> pl.Schema:
    """Return name → type of the columns for a kind of record: ``device``, then the fields of its schema.

    Raises:
        KeyError: the kind is unknown.
    """
    properties = _definitions()[kind]["properties"]
    return pl.Schema({"device": pl.String, **{name: _dtype(described) for name, described in properties.items()}})


def read(directory: Path) -> Collected:
    """Read a collector's store, or a logger's own files; sort each table by device, run and record number ``n``.

    Each record is kept once, even if a batch was stored twice or two batches have it.

    Raises:
        FileNotFoundError: ``directory`` is no directory.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is no directory")
    rows: dict[str, dict[tuple[str, str, int], Mapping[str, object]]] = defaultdict(dict)
    devices: dict[str, str] = {}  # run → device, for the files of a logger
    skipped = 0
    for path in sorted(directory.rglob("*.jsonl*")):
        if path.suffix not in {".jsonl", ".gz"}:
            continue  # the damaged end of a file, which the collector moved aside
        device = ""
        for line in _lines(path):
            record = _record(line)
            if record is None:
                skipped += 1
            elif record.kind == _BATCH:
                device = path.parent.name  # the collector names the folder after the device of the token
            else:
                if record.kind == "start":
                    devices[record.run] = str(record.fields["device"])
                rows[record.kind].setdefault((device, record.run, record.number), record.fields)
    tables = {
        kind: pl.from_dicts(
            [{**record, "device": device or devices.get(run, "")} for (device, run, _), record in records.items()],
            schema=columns(kind),
        ).sort("device", "run", "n")
        for kind, records in sorted(rows.items())
    }
    return Collected(tables, skipped)


def write(collected: Collected, directory: Path) -> list[Path]:
    """Write each table as ``KIND.parquet``, and return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, table in collected.tables.items():
        path = directory / f"{kind}.parquet"
        table.write_parquet(path)
        paths.append(path)
    return paths


class _Field(TypedDict, total=False):
    """The part of a JSON Schema that describes one field."""

    type: str
    items: "_Field"
    properties: dict[str, "_Field"]
    enum: list[object]


@cache
def _definitions() -> Mapping[str, _Field]:
    definitions: dict[str, _Field] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return definitions


def _dtype(described: _Field) -> pl.DataType | type[pl.DataType]:
    """Return the column type of a field of the schema."""
    kind = described.get("type")
    if kind == "array":
        return pl.List(_dtype(described["items"]))
    if kind == "object" and "properties" in described:
        return pl.Struct({name: _dtype(inner) for name, inner in described["properties"].items()})
    if kind is None and all(isinstance(value, int) for value in described.get("enum", ["text"])):
        return pl.Int64
    return _SCALARS.get(str(kind), pl.String)  # an object with arbitrary names stays JSON


@dataclass(frozen=True)
class _Record:
    kind: str
    run: str = ""
    number: int = 0
    fields: Mapping[str, object] = field(default_factory=dict)


def _record(line: bytes) -> _Record | None:
    """Parse a line; return None if it is not a record of a known kind."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    kind = record.get("kind")
    if kind == _BATCH:
        return _Record(_BATCH)
    if kind not in _definitions() or not isinstance(record.get("run"), str) or not isinstance(record.get("n"), int):
        return None
    for name, described in _definitions()[str(kind)]["properties"].items():
        if described.get("type") == "object" and "properties" not in described and name in record:
            record[name] = json.dumps(record[name], sort_keys=True)
    return _Record(str(kind), record["run"], record["n"], record)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file up to its end, or up to damage in a gzip file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while True:
            try:
                line = file.readline()
            except (EOFError, gzip.BadGzipFile, zlib.error):
                return
            if not line:
                return
            yield line


def main(arguments: list[str] | None = None) -> int:
    """Run ``python -m mplab.analysis.record.phonelog`` with these arguments, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mplab.analysis.record.phonelog", description="What phones recorded, as Parquet."
    )
    parser.add_argument("directory", type=Path, help="the collector's store, or a logger's")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the directory for the tables")
    options = parser.parse_args(arguments)
    try:
        collected = read(options.directory)
    except FileNotFoundError as error:
        sys.stderr.write(f"phonelog: {error}\n")
        return 2
    for path in write(collected, options.output):
        sys.stdout.write(f"{path}: {collected.tables[path.stem].height} records\n")
    if collected.skipped:
        sys.stderr.write(f"phonelog: {collected.skipped} lines are no records of this version\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
