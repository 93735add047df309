"""A lab's folders for the dashboard: runs with and without a report, one that is running, and a campaign."""

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mplab.base.lock import resource_lock
from mplab.dashboard.serving import Served, serve
from mplab.format.cell import Outcome
from mplab.format.events import EventLog
from mplab.format.record import json_of
from mplab.format.runevents import CellFinished, CellStarted, CellStep, RunPlanned, RunStarted
from tests.unit.analysis.synthetic import Synthetic
from tests.unit.campaign.nights import events, run_name
from tests.unit.record.conftest import cell_spec

CAMPAIGN = "20231114T221320Z-nightly-abcdef"
EVIL = "<script>alert(1)</script>"
REPORT = "<!DOCTYPE html><html lang=en><title>report</title><h1>Report</h1>"


@dataclass
class Folders:
    """A folder with the subfolders ``runs`` and ``campaigns``."""

    path: Path

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def campaigns(self) -> Path:
        return self.path / "campaigns"

    def ended(self, day: int = 22, *, mptcp: float = 0.7, size: str = "1 MB", **changes: Any) -> str:
        """Add a run that has ended, with a report, and return its name."""
        run = Synthetic(self.runs, day=day, repetitions=1, **changes).build()
        series = [
            {"transport": name, "n": 5, "median": median, "interval": [median - 0.1, median + 0.1]}
            for name, median in {"sptcp-wifi": 1.0, "mptcp": mptcp}.items()
        ]
        group = {
            "scenario": "files", "link": "baseline", "metric": "time", "unit": "s", "title": "Download time",
            "better": "lower", "headline": True, "labels": {"size": size}, "transports": series,
        }  # fmt: skip
        answer = {"sentence": f"Multipath TCP takes 0.70 s {EVIL}"}
        (run / "report").mkdir()
        (run / "report" / "summary.json").write_text(json.dumps({"metrics": [group], "answers": [answer]}))
        (run / "report" / "index.html").write_text(REPORT)
        return run.name

    def running(self, name: str = "video", *, cells: int = 20) -> str:
        """Add a run whose seventh cell is running, and return its name; `held` makes it look alive."""
        source = Synthetic(self.path / "source", name=name, repetitions=1)
        manifest = json.loads((source.build() / "manifest.json").read_text())
        run = self.runs / run_name(name)
        run.mkdir(parents=True)
        (run / "manifest.json").write_text(json.dumps({**manifest, "run_id": run.name}))
        specs = [cell_spec(index, "mptcp") for index in range(1, cells + 1)]
        with EventLog(run / "events.jsonl") as log:
            log.append(RunPlanned(cells=tuple(specs), estimate_s=100.0 * cells))
            log.append(RunStarted())
            for spec in specs[:6]:
                log.append(CellStarted(cell=spec.id))
                outcome: Outcome = "invalid" if spec.index == 3 else "ok"
                log.append(CellFinished(cell=spec.id, outcome=outcome, duration_s=100.0, reasons=(EVIL,)))
            log.append(CellStarted(cell=specs[6].id))
            log.append(CellStep(cell=specs[6].id, step="probe"))
        return run.name

    def finish_cell(self, run: str, index: int = 7) -> str:
        """Append the end of a cell to the events of a run, and return the cell's id."""
        cell = cell_spec(index, "mptcp").id
        with EventLog(self.runs / run / "events.jsonl", beside=True) as log:
            log.append(CellFinished(cell=cell, outcome="ok", duration_s=90.0))
        return cell

    def night(self) -> str:
        """Add the campaign of `nights`, which no process runs, and return its name."""
        path = self.campaigns / CAMPAIGN
        (path / "logs").mkdir(parents=True)
        with EventLog(path / "events.jsonl") as log:
            log.append(events()[0])
        lines = [json.dumps(json_of(event)) for event in events()]
        (path / "events.jsonl").write_text("\n".join(lines) + "\n")
        (path / "logs" / "03-calls-1.log").write_text(f"phone-3: no answer {EVIL}\n")
        record = {
            "campaign": CAMPAIGN, "file": "/lab/night.yaml", "runs": str(self.runs), "host": {}, "versions": {},
            "git": {}, "started": "2023-11-14T22:13:20Z",
        }  # fmt: skip
        (path / "campaign.json").write_text(json.dumps(record))
        return CAMPAIGN

    @contextmanager
    def held(self, run: str) -> Iterator[None]:
        """Hold the lock of a run, as the process does that executes it."""
        with resource_lock(f"run-{run}", run_id=run):
            yield


@dataclass
class Client:
    """Sends requests to a dashboard."""

    served: Served
    cookie: str = ""

    @property
    def port(self) -> int:
        return int(urlsplit(self.served.url).port or 0)

    def get(
        self, path: str, method: str = "GET", host: str = "127.0.0.1", **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers (names in lower case) and text of an answer; redirections are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            if host:
                connection.putheader("Host", host)
            if self.cookie:
                connection.putheader("Cookie", self.cookie)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text
        finally:
            connection.close()

    def text(self, path: str) -> str:
        """Return the text of a page, after at most one redirection."""
        status, headers, text = self.get(path)
        if status in {302, 303}:
            status, _, text = self.get(headers["location"])
        assert status == 200, (path, status, text)
        return text


@contextmanager
def client(*folders: Path, **options: Any) -> Iterator[Client]:
    """Serve folders at a free port."""
    with serve(folders, port=0, **options) as served:
        yield Client(served)


def with_traps(run: Path, outside: Path) -> None:
    """Add files to a run that must not be served: links, a pipe, hidden files, keys, files of other types."""
    report, cell = run / "report", run / "cells" / "0001-a"
    (report / "data").mkdir()
    (report / "data" / "x.csv").write_text("a,b\n")
    (report / ".hidden.html").write_text("secret")
    (report / "program.exe").write_text("secret")
    (report / "link.html").symlink_to(outside)
    (report / "folder").symlink_to(outside.parent)
    os.mkfifo(report / "pipe.html")
    (cell / "logs").mkdir(parents=True)
    (cell / "logs" / "tls-keys.txt").write_text("secret")
    (cell / "logs" / "agent.log").write_text(EVIL)
    (cell / "page.html").write_text("secret")
    (cell / "outside").symlink_to(outside.parent)
    (cell / "linked.log").symlink_to(outside)
    (cell / ".hidden").mkdir()
    (cell / "phone.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a")
    (run / "lab.yaml").write_text("secret")
    (run / "logs").symlink_to(outside.parent)
