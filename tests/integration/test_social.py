"""The social network and the file stores, in the virtual lab."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import psutil

from tests.integration.conftest import Mplab, lab_processes, score, wait_until
from tests.integration.test_run import cells, only_run

EXPERIMENT = """\
mplab: 1
name: social
transports: [{transport}]
links:
  - name: home
    wifi: {{down: 20 Mbit/s, up: {up}, rtt: 20 ms}}
    lte: {{down: 20 Mbit/s, up: {up}, rtt: 30 ms}}
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: {retries}
scenarios:
{scenarios}
"""


def write(path: Path, *scenarios: str, transport: str = "mptcp", up: str = "20 Mbit/s", retries: int = 1) -> str:
    lines = "\n".join(f"  - {scenario}" for scenario in scenarios)
    path.write_text(EXPERIMENT.format(transport=transport, up=up, retries=retries, scenarios=lines))
    return str(path)


def observations(run: Path, cell: dict[str, Any]) -> list[dict[str, Any]]:
    lines = (run / "cells" / cell["id"] / "scenario.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def scores(run: Path, cell: dict[str, Any]) -> dict[str, float]:
    values = json.loads((run / "cells" / cell["id"] / "scores.json").read_text())["values"]
    return {value["metric"]: value["value"] for value in values}


def test_posts_and_files_arrive(mplab: Mplab, tmp_path: Path) -> None:
    path = write(
        tmp_path / "social.yaml",
        "facebook: {rounds: 1, think: 100 ms}",
        "dropbox: {size: 3 MB, block: 1 MB, gap: 300 ms, files: 2, think: 100 ms}",
        "drive: {size: 3 MB, files: 1, think: 100 ms}",
    )
    result = mplab("run", path, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_scenario = {cell["spec"]["scenario"]: cell for cell in cells(run).values()}

    feed = observations(run, by_scenario["facebook"])
    actions = [item["action"] for item in feed if item["event"] == "action"]
    assert actions == ["refresh", "status", "photo", "nearby", "check-in"]
    photo = next(item for item in feed if item.get("action") == "photo")
    assert photo["photo_bytes"] == 160_000
    assert photo["response_time_s"] > 0.16 * 8 / 40, "faster than both paths"
    assert scores(run, by_scenario["facebook"])["actions_done"] == 100
    assert "PUT /api/photos" in (run / "cells" / by_scenario["facebook"]["id"] / "logs" / "feed.log").read_text()

    uploads = [item for item in observations(run, by_scenario["dropbox"]) if item["event"] == "upload"]
    assert [len(item["blocks"]) for item in uploads] == [3, 3]
    for item in uploads:
        first, second, third = item["blocks"]
        assert second["began_s"] - first["began_s"] - first["duration_s"] >= 0.29
        assert third["began_s"] - second["began_s"] - second["duration_s"] >= 0.29
    for name in ("dropbox", "drive"):
        values = scores(run, by_scenario[name])
        assert values["uploaded_share"] == 100
        assert 0 < values["goodput"] < 40
        assert 0 < values["goodput_windows"] < 60
        arrived = [item for item in observations(run, by_scenario[name]) if item["event"] == "arrived"]
        assert all(item["timeline"][-1][1] == 3_000_000 for item in arrived)


def test_an_upload_that_does_not_fit_is_scored_by_what_the_server_has(mplab: Mplab, tmp_path: Path) -> None:
    path = write(
        tmp_path / "slow.yaml", "drive: {size: 5 MB, limit: 15 s, think: 0 s}", transport="sptcp-wifi", up="1 Mbit/s"
    )
    result = mplab("run", path, "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    score(run)
    (cell,) = cells(run).values()
    upload = next(item for item in observations(run, cell) if item["event"] == "upload")
    assert upload["state"] == "cancelled"
    values = scores(run, cell)
    assert "upload_time" not in values
    assert 0 < values["uploaded_share"] < 50
    assert 0 < values["goodput"] < 1, "not what the browser has handed over, but what came through the path"


def test_a_server_that_dies_is_named_and_the_cell_made_again(
    start_mplab: Callable[..., Popen[str]], tmp_path: Path
) -> None:
    path = write(tmp_path / "dies.yaml", "facebook: {rounds: 6, think: 500 ms}", transport="sptcp-wifi", retries=0)
    running = start_mplab("run", path, "--json", "--no-report")

    def in_the_first_round() -> bool:
        return any("status" in log.read_text() for log in tmp_path.glob("runs/*/cells/*/scenario.jsonl"))

    wait_until(in_the_first_round, "a status is posted", timeout_s=120)
    (server,) = [process for process in lab_processes() if _is_feed_of(process, tmp_path)]
    server.kill()
    running.communicate(timeout=120)
    assert running.returncode == 0
    run = only_run(tmp_path)
    (cell,) = cells(run).values()
    assert cell["outcome"] == "ok"
    assert cell["attempts"][0]["reason"].startswith("feed: feed has ended (-9)")
    assert "the app says: HTTP 502" in cell["attempts"][0]["reason"]
    assert "feed: feed had ended and was started again" in cell["warnings"]
    directory = run / "cells" / cell["id"] / "attempts" / "1"
    shown = {path.name for path in (directory / "screenshots").iterdir()}
    assert {"end.png", "end.html"} < shown
    assert (directory / "logs" / "console-phone.jsonl").is_file()
    assert (directory / "logs" / "feed.log").read_text()


def _is_feed_of(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process is the server of the lab whose runs are in `folder`."""
    try:
        ours = process.environ().get("MPLAB_RUNS") == str(folder / "runs")
        return ours and any(part.endswith("feed/server.py") for part in process.cmdline())
    except psutil.Error:
        return False
