"""Make the trend page of an experiment from the reports of its runs, again only after a report has changed."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import quote

from mplab.analysis.errors import AnalysisError
from mplab.analysis.record.run import Run
from mplab.analysis.results.frames import Results
from mplab.analysis.verdicts.trend import histories
from mplab.base.deferred import deferred
from mplab.campaign.night import REPORT
from mplab.dashboard.files import fingerprint
from mplab.dashboard.watch import RunEntry, read_manifest

MOST_RUNS = 200
"""Number of runs of a trend page: the newest ones."""
_KEPT = 8


class Trends:
    """Trend pages of experiments; the latest ones are kept. Several threads may call it."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, tuple[object, str]] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, experiment: str, runs: Sequence[RunEntry]) -> str:
        """Return the trend page of an experiment; "": fewer than two runs have the same metric.

        Args:
            experiment: name of the experiment.
            runs: all runs, the newest first.
        """
        own = [run for run in runs if run.experiment == experiment and run.headlines][:MOST_RUNS]
        prints = tuple((run.name, fingerprint(run.folder / run.name, "report/summary.json")) for run in own)
        with self._lock:
            known = self._pages.get(experiment)
            if known is not None and known[0] == prints:
                return known[1]
            text = _made(experiment, own)
            self._pages[experiment] = (prints, text)
            self._pages.move_to_end(experiment)
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
            return text


def _made(experiment: str, entries: Sequence[RunEntry]) -> str:
    reports = {entry.name: f"{quote(entry.name)}/{REPORT}/index.html" for entry in entries if entry.has_report}
    runs = [
        Run(entry.folder / entry.name, manifest, (), ())
        for entry in reversed(entries)
        if (manifest := read_manifest(entry.folder / entry.name)) is not None
    ]
    if not runs:
        return ""
    try:
        series = histories(Results(tuple(runs)), experiment)
    except AnalysisError:
        return ""
    if not series:
        return ""
    with deferred("loads Matplotlib, which no other page needs"):
        from mplab.analysis.report.trendpage import trend_page
    return trend_page(experiment, series, runs[-1].transports, reports)
