"""Read the results of runs, for notebooks and scripts (docs/results.md).

::

    from mplab.results import load

    results = load("runs")  # a folder of runs, or one run directory
    results.statistics.filter("headline").select("scenario", "link", "metric", "labels", "transport", "median", "unit")
    results.plot("download_time")
"""

from mplab.analysis.results.frames import Results, load

__all__ = ["Results", "load"]
