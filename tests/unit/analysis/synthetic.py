"""Builds run directories as `mplab run` would leave them, in milliseconds and without a lab."""

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mplab.analysis.results.reported import read_summary
from tests.foreign import installed
from tests.unit.analysis.traces import Trace

START = 1_790_000_000.0
CELL_SECONDS = 6.0
WIFI = {"label": "sptcp-wifi", "name": "sptcp-wifi", "title": "TCP over WiFi", "colour": "#0072B2", "marker": "o"}
LTE = {"label": "sptcp-lte", "name": "sptcp-lte", "title": "TCP over LTE", "colour": "#C55200", "marker": "s"}
MPTCP = {"label": "mptcp", "name": "mptcp", "title": "Multipath TCP", "colour": "#00886A", "marker": "D"}
TRANSPORTS = (WIFI, LTE, MPTCP)
SIZES = ("10 kB", "1 MB", "10 MB")
BASE_SECONDS = {"10 kB": 0.21, "1 MB": 1.42, "10 MB": 12.4}
FACTOR = {"sptcp-wifi": 1.0, "sptcp-lte": 0.86, "mptcp": 0.62}

TRACES = 16
"""Number of different traces of cells with the same interfaces."""

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
"""A picture of one pixel."""

TOY_SCORES = '''"""Scores of a toy download."""

from mplab.analysis.metric import Metric, Value

METRICS = (
    Metric("goodput", "Goodput", "Mbit/s", "higher", ("size",)),
    Metric("time", "Download time", "s", "lower", ("size",), headline=True, source="RFC 0 §1", limits=(0, 900),
           activity="Downloading {size}"),
    Metric("flows", "Subflows", "", "neither"),
)


def score(observations, tables, folder):
    done = [o for o in observations if o["event"] == "done"]
    values = [Value("time", o["seconds"], {"size": o["size"]}) for o in done]
    values += [Value("goodput", o["bits"] / o["seconds"] / 1e6, {"size": o["size"]}) for o in done]
    return [*values, Value("flows", float(tables["subflows"].height))]
'''

Outcome = Callable[[Mapping[str, Any]], str]


@dataclass
class Synthetic:
    """Content of the run to build; every part can be replaced."""

    root: Path
    repetitions: int = 5
    scenarios: Sequence[Mapping[str, Any]] = ({"label": "files", "name": "toy", "parameters": {"sizes": list(SIZES)}},)
    transports: Sequence[Mapping[str, Any]] = TRANSPORTS
    links: Sequence[str] = ("baseline",)
    losses: Sequence[float] = ()
    """Loss over LTE of each of the link conditions, percent; empty: none."""
    seed: int = 1
    labels: Sequence[str] = SIZES
    outcome: Outcome = lambda _: "ok"
    skipped: Sequence[Mapping[str, str]] = ()
    retried: Sequence[int] = ()
    name: str = "demo"
    claims: Sequence[Mapping[str, Any]] = ()
    budgets: Sequence[Mapping[str, Any]] = ()
    exclude: Sequence[Mapping[str, Any]] = ()
    """Combinations that the experiment leaves out; the run has cells of them, without a meaning for its claims."""
    day: int = 22
    """Day of the run in September 2026: part of its name, and seed of everything except the order of the cells."""
    slower: Mapping[str, float] = field(default_factory=dict)
    """Transport → factor by which it takes longer."""
    origin_control: str = "cubic"
    """Congestion control of the origin's sockets."""
    manifest_changes: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Path:
        """Write the run and return its directory."""
        run_id = f"202609{self.day:02}T101500Z-{self.name}-abc123"
        run = self.root / run_id
        run.mkdir(parents=True)
        cells = self._plan()
        self._write_manifest(run, run_id, cells)
        events: list[dict[str, Any]] = [
            {"t": START, "event": "run_planned", "cells": cells, "estimate_s": 90.0, "skipped": list(self.skipped)},
            {"t": START, "event": "run_started"},
        ]
        clock = START + 1
        for spec in cells:
            outcome = self.outcome(spec)
            if outcome == "missing":
                continue
            events.append({"t": clock, "event": "cell_started", "cell": spec["id"], "attempt": 1})
            if spec["index"] in self.retried:
                reason = "curl: connection reset"
                events.append(
                    {"t": clock + 1, "event": "cell_retried", "cell": spec["id"], "attempt": 1, "reason": reason}
                )
            self._write_cell(run, spec, outcome, clock)
            clock += CELL_SECONDS
            if outcome != "partial":
                finished = {"cell": spec["id"], "outcome": outcome, "reasons": [], "duration_s": CELL_SECONDS}
                events.append({"t": clock - 0.4, "event": "cell_finished", **finished})
        if not any(self.outcome(spec) in {"missing", "partial"} for spec in cells):
            events.append({"t": clock, "event": "run_finished", "outcomes": {}})
        lines = [json.dumps(event) for event in events]
        (run / "events.jsonl").write_text("\n".join(lines) + "\n")
        return run

    def _plan(self) -> list[dict[str, Any]]:
        rng = random.Random(self.seed)  # noqa: S311
        cells: list[dict[str, Any]] = []
        for repetition in range(1, self.repetitions + 1):
            block = [(s, t, k) for s in self.scenarios for t in self.transports for k in self.links]
            rng.shuffle(block)
            for scenario, transport, link in block:
                index = len(cells) + 1
                cells.append(
                    {
                        "id": f"{index:04}-{scenario['label']}-{transport['label']}-{link}-r{repetition}",
                        "index": index,
                        "block": repetition,
                        "scenario": scenario["label"],
                        "transport": transport["label"],
                        "link": link,
                        "repetition": repetition,
                        "seed": 1000 + repetition,
                        "hash": f"{index:064x}",
                    }
                )
        return cells

    def _write_manifest(self, run: Path, run_id: str, cells: list[dict[str, Any]]) -> None:
        paths = {
            interface: {way: {"rate_kbps": rate, "delay_ms": delay} for way, rate in (("down", down), ("up", up))}
            for interface, down, up, delay in (("wlan0", 7040, 2020, 25), ("rmnet0", 9185, 2286, 35))
        }
        manifest = {
            "format": 1,
            "run_id": run_id,
            "experiment": {
                "name": self.name,
                "title": "WiFi, LTE or both",
                "seed": self.seed,
                "repetitions": self.repetitions,
                "scenarios": list(self.scenarios),
                "transports": [{"options": {}, **transport} for transport in self.transports],
                "links": [
                    {"name": link, "title": f"Link {link}", "source": "han2015 table 2", "paths": _lossy(paths, loss)}
                    for link, loss in zip(self.links, self.losses or [0.0] * len(self.links), strict=True)
                ],
                "tolerance": {"rtt_percent": 10.0, "rate_percent": 10.0},
                "capture": "headers",
                "congestion_control": "cubic",
                "retries": 1,
                "claims": list(self.claims),
                "matrix": {"exclude": list(self.exclude)},
                "budgets": list(self.budgets),
            },
            "plan": {"cells": cells, "estimate_s": 90.0, "skipped": list(self.skipped)},
            "lab": "virtual",
            "host": {
                "kernel": "6.8.0",
                "cpus": 4,
                "memory_bytes": 8 << 30,
                "distribution": "Debian 13",
                "mptcp": {"enabled": 1},
            },
            "versions": {"mplab": "0.1.0", "python": "3.11.7", "linkem": "go1.27.3", "packages": {"polars": "2.1.0"}},
            "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
            "started": f"2026-09-{self.day:02}T10:15:00Z",
            "from_the_future": {"unknown": True},
        }
        manifest.update(self.manifest_changes)
        (run / "manifest.json").write_text(json.dumps(manifest))
        (run / "experiment.yaml").write_text("mplab: 1\n")
        (run / "cells").mkdir()

    def _write_cell(self, run: Path, spec: Mapping[str, Any], outcome: str, clock: float) -> None:
        day = "" if self.day == 22 else f" {self.day}"
        rng = random.Random(f"{self.seed} {spec['id']}{day}")  # noqa: S311
        folder = run / "cells" / (spec["id"] + (".partial" if outcome == "partial" else ""))
        folder.mkdir()
        if outcome == "partial":
            return
        lines = []
        for label in self.labels:
            base = BASE_SECONDS.get(label, 1.0 + len(label) / 10)
            seconds = base * FACTOR.get(spec["transport"], 0.7) * rng.uniform(0.93, 1.12)
            seconds *= self.slower.get(spec["transport"], 1.0)
            lines.append({"t": clock, "event": "done", "size": label, "seconds": seconds, "bits": base * 6.1e6})
        (folder / "scenario.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        reasons = [] if outcome == "ok" else [f"<{outcome}> because of cell {spec['index']}"]
        record = {
            "format": 1,
            "id": spec["id"],
            "spec": dict(spec),
            "outcome": outcome,
            "reasons": reasons,
            "attempt": 2 if spec["index"] in self.retried else 1,
            "attempts": [{"attempt": 1, "outcome": "failed", "reason": "curl: connection reset"}]
            if spec["index"] in self.retried
            else [],
            "started": "2026-09-22T10:15:00Z",
            "timings_s": {"prepare": 0.5, "scenario": 4.0},
            "links": {
                "wlan0": _link(rng, 7040, 2020, 50, spread=0.03 if outcome == "ok" else 0.3),
                "rmnet0": _link(rng, 9185, 2286, 70, spread=0.03),
            },
            "captures": [{"file": "phone-wlan0.pcapng", "dropped": 0}],
            "congestion_control": {"agent": "cubic", "proxy": "cubic", "origin": self.origin_control},
        }
        (folder / "cell.json").write_text(json.dumps(record))
        write_tables(folder / "tables", spec["transport"], rng)


def _lossy(paths: Mapping[str, Any], loss: float) -> dict[str, Any]:
    ways = {way: {**described, "loss_percent": loss} for way, described in paths["rmnet0"].items()}
    return {**paths, "rmnet0": ways} if loss else dict(paths)


def summary_json(run_dir: Path) -> dict[str, Any]:
    """Return the content of ``report/summary.json``."""
    return read_summary(run_dir).model_dump(mode="json")


@contextmanager
def toy_scenario(folder: Path) -> Iterator[None]:
    """Register the scenario of these runs, by a distribution in its own folder."""
    with installed(folder) as foreign:
        foreign.scenario("toy", TOY_SCORES)
        yield


def write_tables(folder: Path, transport: str, rng: random.Random) -> None:
    """Write the tables of a cell with three connections: one of `TRACES` traces, chosen by `rng`."""
    interfaces = {"sptcp-wifi": ("wlan0",), "sptcp-lte": ("rmnet0",)}.get(transport, ("wlan0", "rmnet0"))
    folder.mkdir()
    for name, content in _tables(interfaces, rng.randrange(TRACES)).items():
        (folder / name).write_bytes(content)


@cache
def _tables(interfaces: tuple[str, ...], seed: int) -> Mapping[str, bytes]:
    """Return the files of a trace; made once, because a run with many cells would spend most of its time on them."""
    with TemporaryDirectory() as folder:
        Trace(seed=str(seed), interfaces=interfaces, connections=3, segments=60).write(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _link(rng: random.Random, down: int, up: int, rtt: int, *, spread: float) -> dict[str, Any]:
    def near(value: float) -> float:
        return value * (1 + rng.uniform(-spread, spread))

    return {
        "asked": {"down_kbps": down, "up_kbps": up, "rtt_ms": rtt, "loss_percent": 0.0},
        "measured": {
            "down_kbps": near(down),
            "up_kbps": near(up),
            "rtt_ms_median": near(rtt),
            "rtt_ms_iqr": 0.4,
            "loss_percent": 0.0,
        },
        "where": "linkem",
    }
