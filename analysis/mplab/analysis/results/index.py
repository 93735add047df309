"""Index all runs of a folder: the tables of `mplab.analysis.results.columns` in one DuckDB file.

The index holds only data of the run directories. It is updated run by run, and can be made again at any time.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import polars as pl

from mplab.analysis.errors import AnalysisError, NotARunError, QueryError
from mplab.analysis.files import FORMULA
from mplab.analysis.record.run import read_run
from mplab.analysis.results.columns import RESULT_TABLES
from mplab.analysis.results.frames import Results

NAME = "results.duckdb"
TRACES = ("connections", "subflows", "directions")
"""mptrace's tables in the index. The others are many times as large; `Results.traces` reads them from the runs."""

VERSION = 4
_AT_ONCE = 20
_INTERRUPT_AGAIN_S = 0.05
_ANSWERING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI)
"""Types of SQL statements that return rows; MULTI is the type of PIVOT."""

_NO_ZONES = "pytz"
T = TypeVar("T")
_FILES = ("manifest.json", "events.jsonl", "report/summary.json")
"""Files of a run directory that change when the run is resumed or analysed again."""


@dataclass(frozen=True)
class Updated:
    """Result of an update: numbers of runs that were read, kept unchanged and removed from the index.

    ``problems``: a message for each run that was left out.
    """

    read: int
    kept: int
    removed: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class QueryResult:
    """The result of an SQL query: names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def records(self) -> list[dict[str, object]]:
        """Return the rows as a list of mappings column → value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def update(folder: Path, file: Path, *, rebuild: bool = False) -> Updated:
    """Update the index ``file`` with the runs of a folder, and return the numbers of runs read, kept and removed.

    An index that is missing, damaged or of another version is made again from all runs. With ``rebuild``, every index
    is made again.

    Raises:
        NotARunError: there is no such folder.
        QueryError: the index cannot be opened, for example because another process has it open for writing.
    """
    if not folder.is_dir():
        raise NotARunError(folder, "there is no such folder")
    if rebuild or not _usable(file):
        _remove(file)
    with _open(file) as connection:
        if not _tables(connection):
            _create(connection)
        known = dict(connection.execute("SELECT path, fingerprint FROM indexed").fetchall())
        folders = {path.parent.name: path.parent for path in sorted(folder.glob("*/manifest.json"))}
        prints = {name: _fingerprint(path) for name, path in folders.items()}
        gone = [name for name in known if name not in prints]
        changed = [name for name, value in prints.items() if known.get(name) != value]
        problems: list[str] = []
        for names in (gone, [name for name in changed if name in known]):
            _forget(connection, names)
        read = 0
        for first in range(0, len(changed), _AT_ONCE):
            some = {name: folders[name] for name in changed[first : first + _AT_ONCE]}
            read += _add(connection, some, prints, problems)
    return Updated(read, len(folders) - len(changed), len(gone), tuple(problems))


def query(file: Path, sql: str) -> QueryResult:
    """Run one SQL statement, which can only read, and only from the index ``file``; return its rows.

    Raises:
        QueryError: the statement is wrong, or there is no index.
        KeyboardInterrupt: a signal handler raised it; the statement was interrupted.
    """
    with _open(file, read_only=True) as connection, _explained(connection):
        _check_one(connection, sql, _ANSWERING)
        _confine(connection)

        def ask() -> QueryResult:
            cursor = connection.execute(sql)
            return QueryResult(tuple(column[0] for column in cursor.description or ()), tuple(cursor.fetchall()))

        return _interruptible(connection, ask)


def export(file: Path, sql: str, output: Path, form: str) -> None:
    """Write the rows of an SQL statement to the file ``output``.

    ``form`` is ``csv`` (RFC 4180), ``parquet``, or ``json`` (one array of objects). In CSV, a text that a spreadsheet
    would take for a formula gets a leading ``'``, as in `mplab.analysis.files.csv_text`. In Parquet, times are
    timestamps with the zone UTC.

    Raises:
        KeyError: ``form`` is another format.
        QueryError: as `query`, or the file cannot be written.
        KeyboardInterrupt: as `query`.
    """
    kind = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet", "json": "FORMAT json, ARRAY true"}[form]
    options = f"{kind}, USE_TMP_FILE false"  # `_confine` forbids the file that DuckDB would write and rename
    target = str(output).replace("'", "''")
    with _open(file, read_only=True) as connection, _explained(connection):
        _check_one(connection, sql, (duckdb.StatementType.SELECT,))
        _confine(connection, output)
        source = f"({sql.strip().rstrip(';')}\n)"
        if form != "json":
            adapted = _without_formulas if form == "csv" else _with_zones
            source = f"(SELECT {_adapted(connection, source, adapted)} FROM {source})"  # noqa: S608 - one SELECT
        _interruptible(connection, lambda: connection.execute(f"COPY {source} TO '{target}' ({options})"))


def _check_one(connection: duckdb.DuckDBPyConnection, sql: str, kinds: Sequence[duckdb.StatementType]) -> None:
    """Raise QueryError unless ``sql`` is exactly one statement of the given types."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type not in kinds:
        statement_types = ", ".join(statement.type.name for statement in statements) or "none"
        raise QueryError(f"{sql.strip()}: one SELECT is needed: found {statement_types}")


def _confine(connection: duckdb.DuckDBPyConnection, output: Path | None = None) -> None:
    """Restrict SQL statements to the index and the file ``output``: no other file, no network, no settings."""
    allowed = "" if output is None else "'{}'".format(str(output).replace("'", "''"))
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _adapted(connection: duckdb.DuckDBPyConnection, source: str, adapted: Callable[[str, str], str]) -> str:
    """Return the select list of a query in SQL; ``adapted`` maps the quoted name and the type of a column to SQL."""
    columns = connection.execute(f"DESCRIBE {source}").fetchall()
    quoted = [('"{}"'.format(name.replace('"', '""')), kind) for name, kind, *_ in columns]
    return ", ".join(f"{adapted(name, kind)} AS {name}" for name, kind in quoted)


def _without_formulas(name: str, kind: str) -> str:
    """Return SQL for a column, with text escaped as in `mplab.analysis.files.csv_text`."""
    escaped = f"CASE WHEN regexp_matches({name}, '^{FORMULA.pattern}') THEN '''' || {name} ELSE {name} END"
    return escaped if kind == "VARCHAR" else name


def _with_zones(name: str, kind: str) -> str:
    """Return SQL for a column; a time without a zone, like those of the index, gets the zone UTC."""
    return f"timezone('UTC', {name})" if kind in {"TIMESTAMP", "TIMESTAMP_NS"} else name


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Run ``work``, a function that runs DuckDB queries, so that signals can interrupt it; return its result.

    ``work`` runs in a thread, because no signal handler runs while DuckDB uses the main thread. The main thread waits
    in short intervals: polars makes SIGINT restart system calls, so that an unlimited wait would not be interrupted.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(work)
        try:
            while not running.done():
                wait([running], timeout=_INTERRUPT_AGAIN_S)
            return running.result()
        finally:
            while not running.done():
                connection.interrupt()
                wait([running], timeout=_INTERRUPT_AGAIN_S)


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE indexed (path VARCHAR PRIMARY KEY, run_id VARCHAR, fingerprint VARCHAR)")
    connection.execute(f"CREATE TABLE index_version AS SELECT {VERSION} AS version")
    for name, frame in _frames(Results(())):
        with _parquet(frame) as path:
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM read_parquet(?)', [path])  # noqa: S608 - as below


def _add(
    connection: duckdb.DuckDBPyConnection, runs: dict[str, Path], prints: dict[str, str], problems: list[str]
) -> int:
    """Read runs into the index, in one transaction, and return the number of runs that were added.

    A run that cannot be read, or whose ID the index already has, is left out; a message is added to ``problems``.
    """
    frames: dict[str, list[pl.DataFrame]] = {}
    good: list[tuple[str, str, str]] = []
    present = {run_id for (run_id,) in connection.execute("SELECT run_id FROM indexed").fetchall()}
    for name, path in runs.items():
        try:
            run = read_run(path)
            own = list(_frames(Results((run,))))
        except AnalysisError as error:
            problems.append(str(error))
            continue
        if run.manifest.run_id in present:
            problems.append(f"{path}: another folder has the same run {run.manifest.run_id}: this one is left out")
            continue
        present.add(run.manifest.run_id)
        good.append((name, run.manifest.run_id, prints[name]))
        for table, frame in own:
            frames.setdefault(table, []).append(frame)
    connection.execute("BEGIN")
    for table, parts in frames.items():
        with _parquet(pl.concat(parts)) as file:
            connection.execute(f'INSERT INTO "{table}" BY NAME SELECT * FROM read_parquet(?)', [file])  # noqa: S608 - as below
    for row in good:
        connection.execute("INSERT INTO indexed VALUES (?, ?, ?)", row)
    connection.execute("COMMIT")
    return len(good)


def _forget(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Remove all rows of the runs in the folders ``names`` from the index."""
    connection.execute("BEGIN")
    for name in names:
        for table in (*RESULT_TABLES, *TRACES):
            where = "run_id IN (SELECT run_id FROM indexed WHERE path = ?)"
            connection.execute(f'DELETE FROM "{table}" WHERE {where}', [name])  # noqa: S608 - names of our tables
        connection.execute("DELETE FROM indexed WHERE path = ?", [name])
    connection.execute("COMMIT")


def _frames(results: Results) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (name, frame) of every table of the index; times have no zone and are in UTC."""
    times = pl.selectors.datetime(time_zone="*").dt.replace_time_zone(None)
    for name in RESULT_TABLES:
        yield name, results.table(name).with_columns(times)
    for name in TRACES:
        yield name, results.traces(name).with_columns(times)


def _fingerprint(run: Path) -> str:
    parts = []
    for name in _FILES:
        try:
            status = (run / name).stat()
        except FileNotFoundError:
            parts.append("-")
        else:
            parts.append(f"{status.st_size}.{status.st_mtime_ns}")
    return " ".join(parts)


def _usable(file: Path) -> bool:
    """Return whether the file is an index of this version; True also if another process has locked the file."""
    if not file.exists():
        return False
    try:
        with duckdb.connect(str(file), read_only=True) as connection:
            (version,) = connection.execute("SELECT version FROM index_version").fetchone() or (None,)
            return bool(version == VERSION and set(_tables(connection)) >= {*RESULT_TABLES, *TRACES})
    except duckdb.Error as error:
        return str(error).startswith("IO Error: Could not set lock on file")


def _remove(file: Path) -> None:
    for path in (file, file.with_name(f"{file.name}.wal")):
        path.unlink(missing_ok=True)


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows: Iterable[tuple[str]] = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    return sorted(name for (name,) in rows)


@contextmanager
def _open(file: Path, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    if read_only and not file.exists():
        raise QueryError(f"{file}: there is no index; `mplab results index` makes it")
    # Never download extensions: everything needed is built in.
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "python_enable_replacements": False,
    }
    try:
        connection = duckdb.connect(str(file), read_only=read_only, config=config)
    except duckdb.Error as error:
        raise QueryError(f"{file}: the index cannot be opened: {_first_line(error)}") from error
    with connection:
        yield connection


@contextmanager
def _explained(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    try:
        yield
    except duckdb.CatalogException as error:
        known = ", ".join(name for name in _tables(connection) if name in {*RESULT_TABLES, *TRACES})
        raise QueryError(f"{_first_line(error)}; tables: {known} (mplab results tables)") from error
    except duckdb.Error as error:
        if _NO_ZONES in str(error):
            raise QueryError("a column is a TIMESTAMP WITH TIME ZONE: cast it: COLUMN::TIMESTAMP") from error
        raise QueryError(str(error).strip()) from error


@contextmanager
def _parquet(frame: pl.DataFrame) -> Iterator[str]:
    """Yield the path of a temporary Parquet file with the frame: without pyarrow, DuckDB cannot read polars frames."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.parquet"
        frame.write_parquet(path)
        yield str(path)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
