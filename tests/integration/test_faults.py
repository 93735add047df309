"""A fault in the middle of a cell ends it within its time limit, with a reason or a score, and with evidence.

Services that die are tested in `test_messenger` and `test_social`, a browser that dies in `test_run`.
"""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.lab.catalog import load_scenario, programs_of
from tests.integration.conftest import Mplab, score
from tests.integration.test_run import cells, only_run, skip_when_busy

Start = Callable[..., subprocess.Popen[str]]
EXPERIMENT = """\
mplab: 1
name: faults
seed: {seed}
transports: [sptcp-wifi]
links:
  - name: home
    wifi: {{down: {rate}, up: {rate}, rtt: 20 ms}}
    lte: {{down: {rate}, up: {rate}, rtt: 30 ms}}
    changes: [{changes}]
scenarios: [{scenarios}]
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: 0
"""
SERVERS = {"spotify": "nginx", "radio": "icecast2", "call": "turnserver"}
"""Scenario → server that is stopped in its cell. Its kernel still accepts connections; the server never answers."""

DOWNLOAD_LAST = 9
"""A seed that puts the download last among the cells of `test_servers_that_accept_and_never_answer`."""


@pytest.fixture(scope="module", autouse=True)
def _programs_are_there() -> None:
    for name in SERVERS:
        missing = [program.name for program in programs_of(load_scenario(name)) if program.find() is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")


def write(tmp_path: Path, *scenarios: str, changes: str = "", rate: str = "20 Mbit/s", seed: int = 1) -> str:
    path = tmp_path / "faults.yaml"
    path.write_text(EXPERIMENT.format(scenarios=", ".join(scenarios), changes=changes, rate=rate, seed=seed))
    return str(path)


@contextmanager
def stopped(run: subprocess.Popen[str], name: str) -> Iterator[None]:
    """Stop the lab's programs called `name` until the end of the context."""
    processes = [process for process in psutil.Process(run.pid).children(recursive=True) if process.name() == name]
    assert processes, name
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def stop_servers(run: subprocess.Popen[str], tmp_path: Path, servers: Mapping[str, str]) -> None:
    """Stop each scenario's server between the verification of its links and the end of its cell, until the run ends."""
    read = 0
    with ExitStack() as now:
        while run.poll() is None:
            lines = [line for file in tmp_path.glob("runs/*/events.jsonl") for line in whole_lines(file)]
            for event in map(json.loads, lines[read:]):
                server = next((name for key, name in servers.items() if f"-{key}-" in event.get("cell", "")), "")
                if server and event["event"] == "cell_step" and event["step"] == "capture":
                    now.enter_context(stopped(run, server))
                elif event["event"] == "cell_finished":
                    now.close()
            read = len(lines)
            time.sleep(0.02)


def whole_lines(file: Path) -> list[str]:
    return file.read_text().rpartition("\n")[0].splitlines()


def test_servers_that_accept_and_never_answer(start_mplab: Start, tmp_path: Path) -> None:
    scenarios = (
        "spotify: {listen: 2 s}",
        "radio: {listen: 3 s}",
        "call: {duration: 10 s}",
        "download: {sizes: [1 MB]}",
    )
    run = start_mplab(
        "run", write(tmp_path, *(f"{{{scenario}}}" for scenario in scenarios), seed=DOWNLOAD_LAST), "--no-report"
    )
    stop_servers(run, tmp_path, SERVERS)
    assert run.returncode == 1
    by_scenario = {cell["spec"]["scenario"]: cell for cell in cells(only_run(tmp_path)).values()}
    assert list(by_scenario)[-1] == "download"
    assert by_scenario["download"]["outcome"] == "ok", "after all that"
    expected = {
        "spotify": "browser: opening http://music.lab",
        "radio": "radio: no sound in ",
        "call": "call 1: the phone did not ring within 15 s, the desktop is ",
    }
    for name, reason in expected.items():
        skip_when_busy(by_scenario[name])
        assert by_scenario[name]["outcome"] == "failed", by_scenario[name]
        (message,) = by_scenario[name]["reasons"]
        assert message.startswith(reason)
        limit_s = load_scenario(name).time_limit_s(load_scenario(name).parameters())
        assert by_scenario[name]["timings_s"]["scenario"] < limit_s
        evidence = files(only_run(tmp_path) / "cells" / by_scenario[name]["id"])
        assert {"screenshots/end.png", "screenshots/end.html", "logs/console-phone.jsonl"} <= evidence
        assert {"logs/access.jsonl", "logs/nginx-error.log", "scenario.jsonl"} <= evidence
        own = {"logs/turn.log", "logs/console-peer.jsonl", "screenshots-peer/end.png"}
        assert (own if name == "call" else {"logs/icecast.log"}) <= evidence


def kill_once_each(run: subprocess.Popen[str], tmp_path: Path, programs: Sequence[str]) -> list[str]:
    """Kill one program of the lab in each cell's scenario, in the given order; return the killed programs."""
    killed: list[str] = []
    hit: set[str] = set()
    while run.poll() is None:
        lines = [line for file in tmp_path.glob("runs/*/events.jsonl") for line in whole_lines(file)]
        steps = [e for e in map(json.loads, lines) if e["event"] == "cell_step" and e["step"] == "scenario"]
        if len(killed) < len(programs) and steps and (cell := steps[-1]["cell"]) not in hit:
            words = programs[len(killed)].split()
            for process in psutil.Process(run.pid).children(recursive=True):
                with suppress(psutil.Error):
                    line = process.cmdline()
                    if Path(line[0]).name.startswith(words[0]) and all(any(w in arg for arg in line) for w in words):
                        process.kill()
                        killed.append(" ".join(words))
                        hit.add(cell)
                        break
        time.sleep(0.02)
    return killed


DIES = {
    "linkem run": "linkem: linkem has ended by itself (-9)",
    "nginx": "origin: nginx has ended (-9)",
    "dnsmasq": "origin: dnsmasq has ended (-9)",
    "mpflex proxy": "proxy: mpflex proxy has ended by itself (-9)",
    "mpflex agent": "mpflex agent: has ended by itself (-9)",
    "node appium": "appium: has ended by itself (-9)",
    "chromedriver": "browser: opening ",
}
"""Program, as words of its command line → start of the reason of the attempt in which it was killed."""


def test_a_program_of_the_lab_that_dies_once_costs_no_cell(start_mplab: Start, tmp_path: Path) -> None:
    path = Path(write(tmp_path, "{web: {sites: [search, video, wiki]}}"))
    path.write_text(path.read_text().replace("sptcp-wifi", "mpflex") + f"repetitions: {len(DIES) + 1}\n")
    path.write_text(path.read_text().replace("retries: 0", "retries: 1"))  # the cell starts agent and browser
    run = start_mplab("run", str(path), "--no-report")
    killed = kill_once_each(run, tmp_path, list(DIES))
    assert killed == list(DIES)
    output, errors = run.communicate()
    assert run.returncode == 0, output + errors
    all_cells = list(cells(only_run(tmp_path)).values())
    assert [cell["outcome"] for cell in all_cells] == ["ok"] * (len(DIES) + 1)
    for cell, (program, begin) in zip(all_cells, DIES.items(), strict=False):
        first = cell["attempts"][0]
        assert (first["outcome"], first["reason"].startswith(begin)) == ("failed", True), (program, first)
    events = map(json.loads, whole_lines(only_run(tmp_path) / "events.jsonl"))
    restored = [event["programs"] for event in events if event["event"] == "lab_restored"]
    assert [message for programs in restored for message in programs] == [
        "linkem: linkem had ended and was started again",
        "origin: nginx had ended and was started again",
        "origin: dnsmasq had ended and was started again",
        "proxy: mpflex proxy had ended and was started again",
        "appium had ended and was started again",
    ]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_network_that_never_comes_back_is_scored(mplab: Mplab, tmp_path: Path) -> None:
    scenarios = (
        "{dailymotion: {clips: [clip-1], watch: 20 s}}",
        "{radio: {listen: 12 s}}",
        "{drive: {size: 5 MB, limit: 15 s, think: 0 s}}",
    )
    path = write(tmp_path, *scenarios, changes="{at: 5 s, path: wifi, radio: off}", rate="4 Mbit/s")
    result = mplab("run", path, "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    score(run)
    scores = {cell["spec"]["scenario"]: values(run / "cells" / identity) for identity, cell in cells(run).items()}
    assert scores["dailymotion"]["rebuffering_ratio"] > 0
    assert scores["radio"]["silence_time"] > 0
    assert scores["drive"]["uploaded_share"] < 100


def values(folder: Path) -> dict[str, Any]:
    return {value["metric"]: value["value"] for value in json.loads((folder / "scores.json").read_text())["values"]}
