"""Sum up each of the last days: its runs, their cells, and its campaigns."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from mplab.base.humanize import counted
from mplab.dashboard.watch import CampaignEntry, RunEntry, Snapshot

SHOWN_DAYS = 28
"""Number of days in the strip."""
_MARKS = {"none": "", "ok": "✓", "running": "…", "bad": "!", "failed": "✗"}


@dataclass
class Day:
    """Runs and campaigns that started on one day, in the time zone of this host."""

    date: date
    runs: list[RunEntry] = field(default_factory=list)
    campaigns: list[CampaignEntry] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Return the state of the day: ``none``, ``running``, ``failed``, ``bad`` (see the legend) or ``ok``."""
        if not self.runs and not self.campaigns:
            return "none"
        nights = [campaign.night for campaign in self.campaigns if campaign.night is not None]
        if any(run.at_work for run in self.runs) or any(night.live for night in nights):
            return "running"
        failed_jobs = any(status.state == "failed" for night in nights for status in night.state.jobs)
        if failed_jobs or any(run.state in {"killed", "unreadable"} for run in self.runs):
            return "failed"
        bad = any(run.cells.invalid or run.cells.failed or run.state == "unknown" for run in self.runs)
        worse = any(status.worse for night in nights for status in night.state.jobs)
        return "bad" if bad or worse else "ok"

    @property
    def mark(self) -> str:
        """Return a character for the state, so that colour is not its only sign."""
        return _MARKS[self.kind]

    @property
    def text(self) -> str:
        """Return the day in words: ``Sat 28 Nov: 2 runs, 96 cells ok, 1 failed``."""
        when = f"{self.date:%a} {self.date.day} {self.date:%b}"
        if not self.runs and not self.campaigns:
            return f"{when}: no run"
        parts = [counted(len(self.campaigns), "campaign")] if self.campaigns else []
        parts.append(counted(len(self.runs), "run"))
        counts = {name: sum(getattr(run.cells, name) for run in self.runs) for name in ("ok", "invalid", "failed")}
        parts.append(f"{counted(counts['ok'], 'cell')} ok")
        parts += [f"{counts[name]} {name}" for name in ("invalid", "failed") if counts[name]]
        killed = sum(run.state == "killed" for run in self.runs)
        parts += [f"{counted(killed, 'run')} killed"] if killed else []
        return f"{when}: {', '.join(parts)}"


def last_days(snapshot: Snapshot, count: int = SHOWN_DAYS) -> list[Day]:
    """Return the last `count` days, today last."""
    today = _day(snapshot.now)
    days = {when: Day(when) for when in (today - timedelta(days=back) for back in reversed(range(count)))}
    return list(_filled(snapshot, days).values())


def one_day(snapshot: Snapshot, when: date) -> Day:
    """Return one day."""
    return _filled(snapshot, {when: Day(when)})[when]


def _filled(snapshot: Snapshot, days: dict[date, Day]) -> dict[date, Day]:
    for run in snapshot.runs:
        if run.started is not None and (day := days.get(_day(run.started))):
            day.runs.append(run)
    for campaign in snapshot.campaigns:
        started = campaign.night.state.started if campaign.night is not None else None
        if started is not None and (day := days.get(_day(started))):
            day.campaigns.append(campaign)
    return days


def _day(t: float) -> date:
    return datetime.fromtimestamp(t).astimezone().date()


def newest_per_experiment(runs: Iterable[RunEntry]) -> dict[str, list[RunEntry]]:
    """Return experiment → its readable runs, in the order of `runs`."""
    found: dict[str, list[RunEntry]] = {}
    for run in runs:
        if not run.problem:
            found.setdefault(run.experiment, []).append(run)
    return found
