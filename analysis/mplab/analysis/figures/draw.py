"""Write figures of a run into a folder: SVG and data, each time with the same bytes."""

from collections.abc import Sequence
from pathlib import Path

from mplab.analysis.figures.catalog import LeftOut, catalog, draw, figures
from mplab.analysis.figures.run_traces import Traces, traces_in, traces_of
from mplab.analysis.figures.style import Drawing
from mplab.analysis.files import csv_text, write_text
from mplab.analysis.record.run import read_run


def load(path: Path, cells: Sequence[str] = ()) -> Traces:
    """Read the traces of a run directory, or of a folder of tables that ``mptrace FILE… -o FOLDER`` wrote.

    Raises:
        NotARunError: the path is neither a run directory nor a folder of tables.
        FigureError: one of ``cells`` is not the name of an ok cell.
    """
    if (path / "connections.parquet").is_file():
        return traces_in(path)
    return traces_of(read_run(path), cells)


def write_figures(traces: Traces, names: Sequence[str], folder: Path) -> tuple[list[Path], list[LeftOut]]:
    """Draw the figures of these names, or all of them, into ``folder``.

    Return the paths of the SVG files, and the figures that were left out.

    Raises:
        FigureError: a figure does not exist, or cannot be used.
        OSError: a file cannot be written.
    """
    written: list[Path] = []
    left_out: list[LeftOut] = []
    if not names:
        left_out += [LeftOut(name, problem, failed=True) for name, problem in catalog().unusable.items()]
    for made in draw(traces, figures(names)):
        if isinstance(made, Drawing):
            path = folder / f"{made.stem.removeprefix('trace-').removeprefix('paper-')}.svg"
            write_text(path, made.svg)
            write_text(path.with_suffix(".csv"), csv_text(made.columns, made.rows))
            written.append(path)
        else:
            left_out.append(made)
    return written, left_out
