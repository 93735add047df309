"""Write the state of the folders in the OpenMetrics text format, for Prometheus and compatible systems."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from mplab.dashboard.days import newest_per_experiment
from mplab.dashboard.watch import Resource, RunEntry, Snapshot
from mplab.format.campaign import JobState

__all__ = ["CONTENT_TYPE_LATEST", "exposition"]

_RUN_STATES = ("planned", "running", "paused", "interrupted", "killed", "unknown", "finished", "unreadable")
_JOB_STATES: tuple[JobState, ...] = ("waiting", "running", "done", "failed", "left out")
_RESOURCE_STATES = ("free", "busy", "rests", "quarantined")
_MOST_SERIES = 5000
"""Number of medians that are written; more would burden a monitoring system."""


def exposition(snapshot: Snapshot) -> bytes:
    """Return all metrics of a snapshot."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(snapshot))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


class _Snapshot(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._runs()
        yield from self._last_runs()
        yield from self._running()
        yield from self._campaigns()
        yield from self._resources()
        free = GaugeMetricFamily("mplab_disk_free_bytes", "Free space on the disk of a folder.", labels=["folder"])
        size = GaugeMetricFamily("mplab_disk_size_bytes", "Size of the disk of a folder.", labels=["folder"])
        for folder, disk in self._snapshot.disks:
            free.add_metric([str(folder)], disk.free)
            size.add_metric([str(folder)], disk.total)
        yield from (free, size)

    def _runs(self) -> Iterator[Metric]:
        counts = Counter(run.state for run in self._snapshot.runs)
        runs = GaugeMetricFamily("mplab_runs", "Runs by state.", labels=["state"])
        for state in _RUN_STATES:
            runs.add_metric([state], counts[state])
        yield runs

    def _last_runs(self) -> Iterator[Metric]:
        newest = {name: runs[0] for name, runs in newest_per_experiment(self._snapshot.runs).items()}
        cells = GaugeMetricFamily(
            "mplab_last_run_cells",
            "Cells of the last run of an experiment, by outcome.",
            labels=["experiment", "outcome"],
        )
        started = GaugeMetricFamily(
            "mplab_last_run_start_timestamp_seconds", "Start of the last run of an experiment.", labels=["experiment"]
        )
        for name, run in newest.items():
            for outcome, count in _outcomes(run):
                cells.add_metric([name, outcome], count)
            if run.started is not None:
                started.add_metric([name], run.started)
        yield from (cells, started)
        keys = ["experiment", "scenario", "link", "metric", "labels", "transport", "unit"]
        about = "of a headline metric in the last run of an experiment that has a report."
        median = GaugeMetricFamily("mplab_last_run_median", f"Median {about}", labels=keys)
        low = GaugeMetricFamily("mplab_last_run_median_low", f"Lower end of the 95 % interval {about}", labels=keys)
        high = GaugeMetricFamily("mplab_last_run_median_high", f"Upper end of the 95 % interval {about}", labels=keys)
        left = _MOST_SERIES
        for name, runs in newest_per_experiment(run for run in self._snapshot.runs if run.headlines).items():
            for line in runs[0].headlines[:left]:
                values = [name, line.scenario, line.link, line.metric, line.labels, line.transport, line.unit]
                median.add_metric(values, line.median)
                if line.low is not None and line.high is not None:
                    low.add_metric(values, line.low)
                    high.add_metric(values, line.high)
            left = max(0, left - len(runs[0].headlines))
        yield from (median, low, high)

    def _running(self) -> Iterator[Metric]:
        keys = ["run", "experiment"]
        done = GaugeMetricFamily("mplab_running_cells_done", "Cells of a running run with an outcome.", labels=keys)
        total = GaugeMetricFamily("mplab_running_cells_planned", "Planned cells of a running run.", labels=keys)
        left = GaugeMetricFamily("mplab_running_left_seconds", "Estimated time that a run still needs.", labels=keys)
        cell = GaugeMetricFamily(
            "mplab_running_cell", "Current cell and step of a running run; always 1.", labels=[*keys, "cell", "step"]
        )
        for run in self._snapshot.runs:
            if run.at_work:
                names = [run.name, run.experiment]
                done.add_metric(names, run.progress.done)
                total.add_metric(names, run.progress.total)
                left.add_metric(names, run.progress.eta_s)
                if run.progress.current_cell:
                    cell.add_metric([*names, run.progress.current_cell, run.progress.current_step or ""], 1)
        yield from (done, total, left, cell)

    def _campaigns(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily(
            "mplab_campaign_jobs", "Jobs of the last campaign of a name, by state.", labels=["campaign", "state"]
        )
        worse = GaugeMetricFamily(
            "mplab_campaign_jobs_worse", "Jobs of the last campaign that are worse than before.", labels=["campaign"]
        )
        age = GaugeMetricFamily(
            "mplab_campaign_age_seconds", "Time since the last event of the last campaign.", labels=["campaign"]
        )
        live = GaugeMetricFamily(
            "mplab_campaign_running", "1 if a process runs the last campaign, else 0.", labels=["campaign"]
        )
        seen: set[str] = set()
        for campaign in self._snapshot.campaigns:
            night = campaign.night
            if night is None or night.state.name in seen:
                continue
            name = night.state.name
            seen.add(name)
            counts = Counter(status.state for status in night.state.jobs)
            for state in _JOB_STATES:
                jobs.add_metric([name, state], counts[state])
            worse.add_metric([name], sum(status.worse for status in night.state.jobs))
            live.add_metric([name], night.live)
            if night.state.updated is not None:
                age.add_metric([name], max(0.0, self._snapshot.now - night.state.updated))
        yield from (jobs, worse, age, live)

    def _resources(self) -> Iterator[Metric]:
        state_of = {resource.status.name: self._state(resource) for resource in self._snapshot.resources}
        counts = Counter(state_of.values())
        total = GaugeMetricFamily("mplab_resources", "Phones, routers, servers and labs by state.", labels=["state"])
        for state in _RESOURCE_STATES:
            total.add_metric([state], counts[state])
        each = GaugeMetricFamily(
            "mplab_resource_quarantined", "1 if a resource is in quarantine, else 0.", labels=["resource"]
        )
        for name, state in state_of.items():
            each.add_metric([name], state == "quarantined")
        yield from (total, each)

    def _state(self, resource: Resource) -> str:
        status = resource.status
        if status.quarantined:
            return "quarantined"
        if status.rests_until is not None and status.rests_until > self._snapshot.now:
            return "rests"
        return "busy" if status.job and resource.live else "free"


def _outcomes(run: RunEntry) -> Iterator[tuple[str, int]]:
    counts = run.cells
    yield from (("ok", counts.ok), ("invalid", counts.invalid), ("failed", counts.failed))
    yield "left_out", counts.left_out
    yield "waiting", max(0, counts.total - counts.ok - counts.invalid - counts.failed - counts.left_out)
