"""Compute the scores, statistics, figures and report of a run from the files of its run directory.

For notebooks and scripts::

    from mplab import analysis

    results = analysis.load("runs")  # or one run directory
    results.values.group_by("run_id", "scenario", "link", "metric", "labels", "transport").agg(pl.col("value").median())
"""

from pathlib import Path
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred

if TYPE_CHECKING:
    from mplab.analysis.results.frames import Results


def load(path: "Path | str") -> "Results":
    """Return the results of a run, or of all runs in a folder, as polars frames.

    `mplab.analysis.results.frames.Results` lists the frames.

    Raises:
        NotARunError: ``path`` holds no run.
    """
    with deferred("polars is slow to import, and not always needed"):
        from mplab.analysis.results.frames import load as read
    return read(path)
