"""``mplab analyze --cluster``: many runs, on the processes of a Dask cluster."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from mplab.base.deferred import deferred
from mplab.base.errors import InputError
from mplab.cli.options import find_run, meant
from mplab.cli.output import duration, err, out, print_json, table
from mplab.cli.run_display import print_summary
from mplab.run.run_directory import RUNS

if TYPE_CHECKING:
    from mplab.analysis.cluster.drive import Spread
    from mplab.analysis.cluster.store import Store
    from mplab.analysis.cluster.work import AnalysedRun

ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Spread the work over a Dask cluster: local[:N] (N processes of this machine), tcp://HOST:PORT or "
        "tls://HOST:PORT (a scheduler). The results are the same (docs/cluster.md).",
        show_default=False,
    ),
]
PlaceOption = Annotated[
    str,
    typer.Option(
        "--runs",
        metavar="FOLDER|URL",
        help="Use the runs in this folder; with --cluster also a URL that fsspec knows: s3://bucket/runs.",
        envvar="MPLAB_RUNS",
        show_default=True,
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all-runs", help="Analyse every run in the folder of runs; needs --cluster.")
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--memory", metavar="SIZE", help="Limit the memory of each process of '--cluster local', for example to 2GiB."
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca", help="Trust this certificate authority (PEM file) of a tls:// cluster.", envvar="MPLAB_CLUSTER_CA"
    ),
]
CertOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        help="Identify this machine to a tls:// cluster by this certificate (PEM file).",
        envvar="MPLAB_CLUSTER_CERT",
    ),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        help="Use this private key of the certificate of --tls-cert (PEM file).",
        envvar="MPLAB_CLUSTER_KEY",
    ),
]


@dataclass(frozen=True)
class Asked:
    """Values of the command line options that describe the connection to the cluster."""

    address: str
    memory: str = ""
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def analyze_on_cluster(options: Asked, names: Sequence[str], runs: str, *, all_runs: bool, as_json: bool) -> None:
    """Analyse runs on a Dask cluster, and print the outcome of each run.

    Raises:
        InputError: the folder has no such run, or the cluster's address or options are wrong.
        LabNotReadyError: Dask is not installed.
        typer.Exit: with code 1, if some runs could not be analysed.
    """
    with deferred("slow to import, needed only here"):
        from mplab.analysis.cluster.address import Keys, parse
        from mplab.analysis.cluster.connect import connected
        from mplab.analysis.cluster.drive import Drive
    address = parse(options.address, Keys(options.authority, options.certificate, options.key), options.memory)
    selected = _found(names, runs, all_runs=all_runs)
    began = time.monotonic()
    results: list[AnalysedRun] = []
    with err.status(f"Connecting with {options.address} …") as status:

        def tell(spread: "Spread") -> None:
            status.update(Text(_how_far(spread, time.monotonic() - began)))

        with connected(address) as client:
            results += Drive(client, selected, tell=tell).results()
    position = {run: index for index, (_, run) in enumerate(selected)}
    results.sort(key=lambda result: position[result.run])
    seconds = time.monotonic() - began
    if as_json:
        print_json({"cluster": options.address, "seconds": round(seconds, 3), "runs": [_content(r) for r in results]})
    else:
        _show(results, seconds)
    if any(result.error for result in results):
        raise typer.Exit(1)


def _found(names: Sequence[str], runs: str, *, all_runs: bool) -> list[tuple["Store", str]]:
    """Return (store, name) of each requested run; the store is the folder or bucket with the run.

    Raises:
        InputError: `names` is not empty although `all_runs` is set, there is no run, or a name matches no run or
            several.
    """
    with deferred("slow to import"):
        from mplab.analysis.cluster.store import public, store_at
    if all_runs and names:
        raise InputError("--all-runs means every run: name none, or leave it out")
    if "://" not in runs and not all_runs:
        paths = [find_run(name, Path(runs or RUNS)).absolute() for name in names or [""]]
        return list(dict.fromkeys((store_at(str(path.parent)), path.name) for path in paths))
    store = store_at(runs or str(RUNS))
    there = store.runs()
    if not there:
        raise InputError(f"{public(runs)}: no run in it")
    if all_runs:
        return [(store, name) for name in there]
    return [
        (store, name)
        for name in dict.fromkeys(meant("run", name, there, public(runs)) for name in names or [there[-1]])
    ]


def _how_far(spread: "Spread", seconds: float) -> str:
    left = ""
    if spread.runs_done:
        left = f", {duration(seconds / spread.runs_done * (spread.runs - spread.runs_done))} left"
    return (
        f"Analysing: {spread.runs_done}/{spread.runs} runs, {spread.cells_done}/{spread.cells} cells of started runs, "
        f"{spread.workers} workers{left}"
    )


def _content(result: "AnalysedRun") -> dict[str, object]:
    return {
        "run": result.run,
        "where": result.where,
        "counts": dict(result.counts),
        "problems": list(result.problems),
        "error": result.error or None,
    }


def _show(results: Sequence["AnalysedRun"], seconds: float) -> None:
    for result in results:
        if result.error:
            err.print(f"! {result.run}: {result.error}", style="red", markup=False, soft_wrap=True)
    analysed = [result for result in results if not result.error]
    if len(results) == len(analysed) == 1 and Path(analysed[0].where).is_dir():
        with deferred("slow to import"):
            from mplab.run.hostside.concluding import summary_of
        print_summary(summary_of(Path(analysed[0].where)), Path(analysed[0].where))
        return
    rows = table("run", "cells", "problems", "report")
    for result in analysed:
        cells = ", ".join(f"{count} {outcome}" for outcome, count in result.counts.items() if count)
        rows.add_row(result.run, cells, str(len(result.problems) or ""), f"{result.where}/report/index.html")
    if analysed:
        out.print(rows)
    out.print(f"→ {len(analysed)} of {len(results)} runs analysed in {duration(seconds)}", markup=False)
