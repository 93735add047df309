"""The scenarios `dropbox` and `drive` on an app whose answers the test sets, and scores of their observations."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from mplab.analysis.record.schema import SCHEMAS
from mplab.base.errors import StepError
from mplab.format.selector import Selector
from mplab.scenarios.base.scoring.upload import window_goodput_mbps
from mplab.scenarios.base.upload import arrivals

FACTS = {"upload": {"dropbox": "https://dropbox.lab", "drive": "https://drive.lab"}}
BEGAN = 1000.0


class StoreUi:
    """An app that uploads at once, or (`slow`) only until it is cancelled."""

    def __init__(
        self, *, slow: bool = False, state: str = "done", duration_s: float = 2.0, spoil: bool = False
    ) -> None:
        self._slow, self._state, self._duration_s, self._spoil = slow, state, duration_s, spoil
        self._file = Path()
        self._block = 0
        self.results: list[dict[str, Any]] = []
        self.opened = ""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.opened = target
        match = re.search(r"block=(\d+)", target)
        self._block = int(match[1]) if match else 0

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        self._file = Path(text)

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        if selector.value == "#upload" and not self._slow:
            self._finish(self._state, self._file.stat().st_size)
        if selector.value == "#cancel":
            self._finish("cancelled", self._block)

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Return at once."""

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        return "HTTP 502"

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PNG")

    def hierarchy(self) -> str:
        return "<html>"

    def evaluate(self, _script: str) -> list[dict[str, Any]]:
        return list(self.results)

    def _finish(self, state: str, until: int) -> None:
        content = self._file.read_bytes()
        step = self._block or len(content)
        blocks = [
            {
                "offset": offset,
                "bytes": len(content[offset : offset + step]),
                "sha256": hashlib.sha256(content[offset + self._spoil : offset + step]).hexdigest(),
            }
            for offset in range(0, until, step)
        ]
        name = self._file.name
        self.results.append(
            {"name": name, "state": state, "blocks": blocks, "began": BEGAN, "duration_s": self._duration_s}
        )


def visit(scenario: Any, cell: Any, log: Callable[[], str] = lambda: "", **given: Any) -> None:
    parameters = scenario.parameters.model_validate({"think": "0 s", "size": "100 kB", **given})
    with scenario.open(cell.context, parameters) as session:
        session.run()
        (cell.context.cell_dir / "logs").mkdir(exist_ok=True)
        (cell.context.cell_dir / "logs" / "upload.log").write_text(log())


def test_dropbox_sends_blocks(dropbox: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    ui = StoreUi()
    cell = make_cell(ui=ui, facts=FACTS)
    visit(dropbox.scenario.SCENARIO, cell, block="40 kB", gap="250 ms")
    assert ui.opened == "https://dropbox.lab/?block=40000&gap=250"
    first, second = (item for item in cell.observations if item["event"] == "upload")
    assert [block["bytes"] for block in first["blocks"]] == [40_000, 40_000, 20_000]
    assert (first["file"], second["file"]) == (1, 2)
    assert first["name"] != second["name"]
    assert first["blocks"][0]["sha256"] != second["blocks"][0]["sha256"], "each file is fresh"


def test_drive_sends_one_stream(drive: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    ui = StoreUi()
    cell = make_cell(ui=ui, facts=FACTS)
    visit(drive.scenario.SCENARIO, cell, files=1)
    assert ui.opened == "https://drive.lab/"
    (item,) = (item for item in cell.observations if item["event"] == "upload")
    assert [block["bytes"] for block in item["blocks"]] == [100_000]


def test_a_second_file_only_when_it_fits(drive: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    cell = make_cell(ui=StoreUi(duration_s=55.0), facts=FACTS)
    visit(drive.scenario.SCENARIO, cell)
    assert [item["file"] for item in cell.observations if item["event"] == "upload"] == [1]


def test_an_upload_that_does_not_fit_is_cancelled_and_scored(
    dropbox: SimpleNamespace, make_cell: Callable[..., Any]
) -> None:
    ui = StoreUi(slow=True, duration_s=10.0)
    cell = make_cell(ui=ui, facts=FACTS, time_limit_s=8.5)

    def log() -> str:
        name = ui.results[0]["name"]
        lines = [
            {"t": BEGAN + 1, "event": "arrived", "name": name, "offset": 0, "bytes": 30_000},
            {"t": BEGAN + 2, "event": "stored", "name": name, "offset": 0, "bytes": 40_000},
            {"t": BEGAN + 9, "event": "arrived", "name": name, "offset": 40_000, "bytes": 25_000},
            {"t": BEGAN + 11, "event": "cut", "name": name, "offset": 40_000, "bytes": 39_000},
        ]
        return "".join(json.dumps(line) + "\n" for line in lines)

    visit(dropbox.scenario.SCENARIO, cell, log, block="40 kB")
    upload, arrived = cell.observations
    assert upload["state"] == "cancelled"
    assert arrived["timeline"][-1] == (BEGAN + 9, 65_000), "what came after its end does not count"
    values = scores(dropbox, cell.observations)
    assert "upload_time" not in values
    assert values["uploaded_share"] == pytest.approx(65)
    assert values["goodput"] == pytest.approx(65_000 * 8 / 10 / 1e6)


def test_the_server_has_something_else(drive: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    cell = make_cell(ui=StoreUi(spoil=True), facts=FACTS)
    with pytest.raises(StepError, match="the server received other bytes than were sent in the block at 0"):
        visit(drive.scenario.SCENARIO, cell)
    assert cell.observations == []


def test_an_error_that_the_app_shows_is_the_reason(drive: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    cell = make_cell(ui=StoreUi(state="failed"), facts=FACTS)
    with pytest.raises(StepError, match=r"^drive: file 1: the app says: HTTP 502$"):
        visit(drive.scenario.SCENARIO, cell)
    files = sorted(path.name for path in (cell.context.cell_dir / "screenshots").iterdir())
    assert files == ["file-1.html", "file-1.png"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size: 0 B", "size 0 B: more than 0 and at most 200 MB is needed"),
        ("block: 0 B", "size 0 B: more than 0 and at most 200 MB is needed"),
        ("files: 6", "found 6, allowed: 1…5"),
        ("{block: 100 kB, gap: 1 s}", "200 blocks with 1 s between them rest for 199 s, more than half of 120 s"),
        ("blocks: 3", "unknown key 'blocks'. Did you mean 'block'?"),
    ],
)
def test_wrong_parameters(
    dropbox: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, message: str
) -> None:
    assert message in "\n".join(problems(dropbox.scenario.SCENARIO, text))


def test_drive_has_no_blocks(drive: SimpleNamespace, problems: Callable[[Any, str], list[str]]) -> None:
    assert "unknown key 'block'" in problems(drive.scenario.SCENARIO, "block: 4 MB")[0]


def test_time_limits(dropbox: SimpleNamespace, drive: SimpleNamespace) -> None:
    for scenario in (dropbox.scenario.SCENARIO, drive.scenario.SCENARIO):
        assert scenario.time_limit_s(scenario.parameters()) == 120
        assert 2 * 20e6 * 8 / 7e6 < scenario.estimate_s(scenario.parameters()) < 120
        assert scenario.estimate_s(scenario.parameters(files=5)) < 120


def test_arrivals_of_one_file_in_blocks() -> None:
    lines = [
        {"t": 1.0, "event": "arrived", "name": "a", "offset": 0, "bytes": 10},
        {"t": 1.5, "event": "arrived", "name": "b", "offset": 0, "bytes": 99},
        {"t": 2.0, "event": "request", "what": "PUT"},
        {"t": 2.0, "event": "stored", "name": "a", "offset": 0, "bytes": 20},
        {"t": 3.0, "event": "arrived", "name": "a", "offset": 20, "bytes": 5},
    ]
    log = "".join(json.dumps(line) + "\n" for line in lines)
    assert arrivals(log, "a", 9.0) == [(1.0, 10), (2.0, 20), (3.0, 25)]
    assert arrivals(log, "c", 9.0) == []


def scores(folder: SimpleNamespace, observations: list[dict[str, Any]], tables: Any = None) -> dict[str, float]:
    empty = {name: pl.DataFrame(schema=SCHEMAS[name]) for name in ("connections", "throughput")}
    values = folder.scores.score(observations, tables or empty, Path())
    assert len({value.metric for value in values}) == len(values), "one file, one value"
    return {value.metric: value.value for value in values}


def upload(duration_s: float) -> dict[str, Any]:
    block = {"offset": 0, "bytes": 1_000_000}
    return {
        "event": "upload",
        "file": 1,
        "size_bytes": 1_000_000,
        "state": "done",
        "duration_s": duration_s,
        "blocks": [block],
    }


def test_worse_is_scored_worse(drive: SimpleNamespace) -> None:
    fast, slow = scores(drive, [upload(2.0)]), scores(drive, [upload(4.0)])
    assert fast == {"upload_time": 2.0, "uploaded_share": 100.0, "goodput": 4.0}
    assert (slow["upload_time"], slow["goodput"]) == (4.0, 2.0)
    cut = {**upload(4.0), "state": "cancelled", "blocks": []}
    assert scores(drive, [cut])["uploaded_share"] == 0


def test_a_second_file_that_was_cut(drive: SimpleNamespace) -> None:
    cut = {**upload(4.0), "file": 2, "state": "cancelled", "blocks": []}
    arrived = {"event": "arrived", "file": 2, "timeline": [[1.0, 100_000], [2.0, 600_000]]}
    tables = windows((0, "tcp", 0.0, 1.0, 1, 250))
    values = [(value.metric, value.value) for value in drive.scores.score([upload(2.0), cut, arrived], tables, Path())]
    expected = [("upload_time", 2.0), ("goodput", 4.0), ("goodput", 1.2), ("uploaded_share", 80.0)]
    assert values == [(name, pytest.approx(value)) for name, value in expected]


def test_confirmed_blocks_count_without_a_log(dropbox: SimpleNamespace) -> None:
    cut = {**upload(4.0), "state": "cancelled", "size_bytes": 4_000_000}
    assert scores(dropbox, [cut])["uploaded_share"] == 25


def windows(*rows: tuple[int, str, float, float, int, int]) -> dict[str, pl.DataFrame]:
    """Return tables of a phone from rows: connection, level, start (s), duration (s), bytes, packets of each window."""
    throughput: list[dict[str, Any]] = [
        {
            "connection_id": connection,
            "subflow_id": -1 if level == "mptcp" else 0,
            "level": level,
            "direction": "up",
            "start_ns": round(start_s * 1e9),
            "duration_s": duration_s,
            "bytes": size,
            "packets": packets,
        }
        for connection, level, start_s, duration_s, size, packets in rows
    ]
    connections = []
    for connection in {row["connection_id"] for row in throughput}:
        top = "mptcp" if any(r["connection_id"] == connection and r["level"] == "mptcp" for r in throughput) else "tcp"
        mine = [r["bytes"] for r in throughput if r["connection_id"] == connection and r["level"] == top]
        connections.append({"connection_id": connection, "bytes_up": sum(mine)})
    return {"throughput": pl.DataFrame(throughput), "connections": pl.DataFrame(connections)}


def test_windows_of_a_connection(drive: SimpleNamespace) -> None:
    tables = windows((0, "tcp", 0.0, 1.0, 1_000_000, 250), (0, "tcp", 1.0, 2.0, 1_000_000, 250), (0, "tcp", 3, 9, 1, 7))
    assert window_goodput_mbps(tables) == [8.0, 4.0], "the last one is not full"
    assert scores(drive, [], tables) == {"goodput_windows": 6.0}


def test_windows_at_the_level_of_multipath_tcp() -> None:
    tables = windows(
        (0, "mptcp", 0.0, 1.0, 1_000_000, 250), (0, "tcp", 0.0, 2.0, 600_000, 250), (0, "tcp", 0.0, 2.0, 400_000, 250)
    )
    assert window_goodput_mbps(tables) == [8.0]


def test_windows_of_the_paths_of_a_session_are_one_throughput() -> None:
    tables = windows(
        (0, "tcp", 0.0, 1.0, 1_000_000, 250), (1, "tcp", 0.0, 4.0, 2_000_000, 250), (2, "tcp", 0, 1, 999_999, 250)
    )
    assert window_goodput_mbps(tables) == pytest.approx([8.0 + 4.0, 4.0 + 2.0]), "the small connection is left out"


def test_a_rest_between_blocks_spoils_one_window_alone() -> None:
    steady = [(0, "tcp", float(start), 1.0, 1_000_000, 250) for start in range(4)]
    after_rest = (0, "tcp", 4.0, 5.0, 1_000_000, 250)
    assert window_goodput_mbps(windows(*steady, after_rest)) == pytest.approx([8.0] * 4 + [1.6])


def test_values_carry_the_labels_of_their_metric(dropbox: SimpleNamespace) -> None:
    tables = windows((0, "tcp", 0.0, 1.0, 1_000_000, 250))
    values = dropbox.scores.score([upload(2.0)], tables, Path())
    metrics = {metric.name: metric for metric in dropbox.scores.METRICS}
    assert {value.metric for value in values} == metrics.keys() - {"look_resolution"}
    assert all(tuple(value.labels) == metrics[value.metric].labels for value in values)
