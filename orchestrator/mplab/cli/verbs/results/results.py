"""Read all runs of a folder as tables: update their index, query it in SQL, export tables."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from mplab.analysis.record.schema import TABLES
from mplab.analysis.results.columns import RESULT_TABLES, trace_schema
from mplab.analysis.results.index import NAME, TRACES, Updated, update
from mplab.analysis.results.index import export as write
from mplab.analysis.results.index import query as ask
from mplab.base.errors import InputError
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, RunsOption, check_name
from mplab.cli.output import err, escaped, out, output_file, print_json, table
from mplab.run.run_directory import RUNS

MAX_ROWS = 500
"""Maximum number of rows that are printed; ``--json`` and ``export`` have all."""

app = VerbApp(no_args_is_help=True)

IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index",
        help="Use this file as index. By default, it is results.duckdb in the folder of runs.",
        envvar="MPLAB_INDEX",
        callback=output_file,
    ),
]
UpdateOption = Annotated[
    bool,
    typer.Option("--update/--no-update", help="Update the index with new and changed runs first, or use it unchanged."),
]


Form = Literal["csv", "parquet", "json"]
"""Format of an exported file."""


@app.command("index")
def index(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the whole index again from the run directories.")
    ] = False,
    runs: RunsOption = RUNS,
    file: IndexOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update the index from the run directories."""
    updated = _update(runs, _file(runs, file), rebuild=rebuild)
    if as_json:
        print_json({"index": str(_file(runs, file)), **vars(updated)})
    else:
        out.print(
            f"{_file(runs, file)}: {updated.read} runs read, {updated.kept} unchanged, {updated.removed} gone",
            markup=False,
            soft_wrap=True,
        )


@app.command("tables")
def tables(as_json: JsonOption = False) -> None:
    """List the tables and their columns; docs/reference/result-tables.md and docs/trace-tables.md have the meanings."""

    known = {
        name: (table_schema.doc, [field.name for field in table_schema.fields])
        for name, table_schema in RESULT_TABLES.items()
    }
    for name in TRACES:
        known[name] = (TABLES[name].doc, list(trace_schema(name)))
    if as_json:
        print_json([{"table": name, "doc": doc, "columns": columns} for name, (doc, columns) in known.items()])
        return
    rows = table("table", "a row is", "columns")
    for name, (doc, columns) in known.items():
        rows.add_row(name, doc, ", ".join(columns))
    out.print(rows)


@app.command("query")
def query(
    sql: Annotated[
        str, typer.Argument(help="Statement in the SQL of DuckDB, like 'SELECT * FROM statistics WHERE headline'.")
    ],
    *,
    runs: RunsOption = RUNS,
    file: IndexOption = None,
    update: UpdateOption = True,
    as_json: JsonOption = False,
) -> None:
    """Query the index in SQL. The index is updated first; a query cannot change it.

    The table statistics has the medians of the reports. Group a median of the table values by run_id, scenario, link,
    metric and labels: otherwise it mixes sizes.
    """

    if update:
        _update(runs, _file(runs, file))
    answer = ask(_file(runs, file), sql)
    if as_json:
        print_json(answer.records())
        return
    rows = table(*answer.columns)
    for row in answer.rows[:MAX_ROWS]:
        rows.add_row(*map(_text, row))
    out.print(rows)
    if len(answer.rows) > MAX_ROWS:
        err.print(f"… and {len(answer.rows) - MAX_ROWS} more rows: --json and 'mplab results export' have all")


@app.command("export")
def export(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Table to export; 'mplab results tables' lists them. Or give --query.",
            show_default=False,
        ),
    ] = "",
    *,
    sql: Annotated[
        str,
        typer.Option(
            "--query", metavar="SQL", help="Export the result of this query instead of a table.", show_default=False
        ),
    ] = "",
    form: Annotated[Form, typer.Option("--format", help="Write this format.")] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file. By default, it is standard output.",
            show_default=False,
            callback=output_file,
        ),
    ] = None,
    runs: RunsOption = RUNS,
    file: IndexOption = None,
    update: UpdateOption = True,
) -> None:
    """Write a table, or the result of a query, as CSV, Parquet or JSON."""

    if bool(name) == bool(sql):
        raise InputError("a table (mplab results tables) or --query is needed, and only one of them")
    if output is None and form == "parquet":
        raise InputError("Parquet needs a file: --output FILE.parquet")
    if name:
        check_name("table", name, (*RESULT_TABLES, *TRACES))
    if update:
        _update(runs, _file(runs, file))
    with tempfile.TemporaryDirectory() as folder:
        path = output or Path(folder) / "rows"
        quoted = name.replace('"', '""')
        write(_file(runs, file), sql or f'SELECT * FROM "{quoted}"', path, form)  # noqa: S608 - quoted
        if output is None:
            text = path.read_text(encoding="utf-8")
            typer.echo(escaped(text) if sys.stdout.isatty() else text, nl=False)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _file(runs: Path, file: Path | None) -> Path:

    return file or runs / NAME


def _update(runs: Path, file: Path, *, rebuild: bool = False) -> Updated:

    with err.status("Reading the runs …"):
        updated = update(runs, file, rebuild=rebuild)
    for problem in updated.problems:
        err.print(f"! {problem}", style="yellow", markup=False, soft_wrap=True)
    return updated
