"""Names of the files in a report that other programs link to. Imports nothing, so that the dashboard stays small."""

FOLDER = "cells"
"""Folder of the pages of cells in ``report``."""


def page_name(cell: str) -> str:
    """Return the file name of a cell's page in the folder `FOLDER`."""
    return f"{cell}.html" if cell != "index" else "index.cell.html"


def comparison_name(run: str) -> str:
    """Return the default file name of the comparison of a run, next to the run directory."""
    return f"compare-{run}.html"
