"""A disturbed campaign ends with the same results as an undisturbed one.

It is killed three times, its disk runs full, and a browser and a proxy die. It has 12 cells;
``MPLAB_CAMPAIGN_REPETITIONS=15`` makes 60.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.campaign.state import state_of
from mplab.format.campaign import CampaignState
from mplab.format.campaignevents import CampaignEvent
from mplab.format.events import read_events
from tests.fakes.eventlines import read_lines
from tests.integration.conftest import runner, wait_until

Start = Callable[..., subprocess.Popen[str]]
REPETITIONS = int(os.environ.get("MPLAB_CAMPAIGN_REPETITIONS", "3"))
CELLS = 4 * REPETITIONS
SEED = random.SystemRandom().randrange(2**32)
"""Seed of the times of the faults; the test prints it."""
PATIENCE_S = 240.0 + 30.0 * CELLS
DISK_MB = 100 + 10 * CELLS

EXPERIMENT = """\
mplab: 1
name: {name}
seed: 7
repetitions: {repetitions}
transports: [{transports}]
links: [baseline]
scenarios: [{scenario}]
retries: 3
"""
CAMPAIGN = """\
mplab_campaign: 1
name: night
experiments: [pages.yaml, files.yaml]
tries: 10
keep_free: 20 MB
breaker: {failures: 10, rest: 1 s}
"""


@pytest.fixture
def campaign(tmp_path: Path) -> str:
    pages = EXPERIMENT.format(
        name="pages", repetitions=REPETITIONS, transports="sptcp-wifi, mptcp", scenario="web: {sites: [search]}"
    )
    files = EXPERIMENT.format(
        name="files", repetitions=REPETITIONS, transports="sptcp-lte, mptcp", scenario="download: {sizes: [1 MB]}"
    )
    (tmp_path / "pages.yaml").write_text(pages)
    (tmp_path / "files.yaml").write_text(files)
    path = tmp_path / "night.yaml"
    path.write_text(CAMPAIGN)
    return str(path)


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """Yield a folder on its own small disk."""
    path.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "mplab", str(path)], capture_output=True)  # noqa: PLW1510
    if mount.returncode != 0:
        pytest.skip(f"no disk of its own: {mount.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


class Night:
    """A campaign that runs in a folder, and the faults that a test injects."""

    def __init__(self, start: Start, folder: Path, campaign: str) -> None:
        self.folder = folder
        self._start = start
        self._places = ("--campaigns", str(folder / "campaigns"))
        self._process = start("campaign", campaign, *self._places, "--runs", str(folder / "runs"))

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events called `name` of all runs."""
        files = sorted(self.folder.glob("runs/*/events.jsonl"))
        return [event for file in files for event in read_lines(file) if event["event"] == name]

    def _finished(self) -> int:
        return len({event["cell"] for event in self.events("cell_finished")})

    def wait_for(self, cells: int, step: str = "") -> None:
        """Wait until `cells` cells have ended and the next one is at `step`."""

        def there() -> bool:
            assert self._process.poll() is None, self._process.communicate()
            if self._finished() < cells:
                return False
            steps = self.events("cell_step")
            return not step or (bool(steps) and max(steps, key=lambda event: float(event["t"]))["step"] == step)

        wait_until(there, f"{cells} of {CELLS} cells, {step}", PATIENCE_S)

    def kill(self) -> None:
        """Kill the campaign and resume it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()
        self._process = self._start("campaign", "resume", *self._places)

    def kill_program(self, *words: str) -> None:
        """Kill the oldest program of the lab whose command line begins with `words`."""

        def found() -> list[psutil.Process]:
            family = psutil.Process(self._process.pid).children(recursive=True)
            return [process for process in family if _is(process, words)]

        wait_until(lambda: bool(found()), f"{words} runs")
        min(found(), key=lambda one: one.create_time()).send_signal(signal.SIGKILL)

    def fill_the_disk(self) -> None:
        """Fill the disk, wait 3 s so that the campaign notices, and free it again."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass
        time.sleep(3.0)
        filler.unlink()

    def end(self) -> CampaignState:
        """Wait until the campaign ends and return its state."""
        out, errors = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, out + errors
        (events,) = self.folder.glob("campaigns/*/events.jsonl")
        return state_of(read_events(events, CampaignEvent))


def _is(process: psutil.Process, words: tuple[str, ...]) -> bool:
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return bool(line) and words[0] in Path(line[0]).name and line[1 : len(words)] == list(words[1:])


def shape(folder: Path) -> dict[str, Any]:
    """Return the cells of each run in a folder, and the number of values behind each number of its report.

    Of the numbers of traces only `app_bytes` is compared: others are there only when there was loss or reinjection.
    """
    runs: dict[str, Any] = {}
    for path in sorted(folder.glob("runs/*/manifest.json")):
        manifest = json.loads(path.read_text())
        name = manifest["experiment"]["name"]
        assert name not in runs, f"two runs of {name}"
        summary = json.loads((path.parent / "report" / "summary.json").read_text())
        runs[name] = {
            "planned": [(cell["id"], cell["hash"]) for cell in manifest["plan"]["cells"]],
            "complete": sorted(cell.name for cell in (path.parent / "cells").iterdir()),
            "outcomes": summary["cells"],
            "numbers": sorted(
                (
                    metric["scenario"],
                    metric["link"],
                    metric["metric"],
                    str(metric["labels"]),
                    use["transport"],
                    use["n"],
                )
                for metric in summary["metrics"]
                for use in metric["transports"]
                if not metric["traced"] or metric["metric"] == "app_bytes"
            ),
            "figures": sorted(figure.name for figure in (path.parent / "report" / "figures").iterdir()),
        }
    return runs


@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_night_with_everything_going_wrong(start_mplab: Start, campaign: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)  # noqa: S311 - when what happens
    print(f"seed {SEED}")
    half = CELLS // 2
    first, browser, second = sorted(chance.sample(range(half), 3))
    proxy, disk, third = sorted(chance.sample(range(half, CELLS), 3))
    runner_of = runner(tmp_path, timeout_s=PATIENCE_S)
    calm = tmp_path / "calm"
    result = runner_of("campaign", campaign, "--campaigns", str(calm / "campaigns"), "--runs", str(calm / "runs"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert not result.stdout, "where nobody looks, nothing but errors is said"
    assert not result.stderr
    with small_disk(tmp_path / "disk") as disk_folder:
        night = Night(start_mplab, disk_folder, campaign)
        for cells, act in (
            (first, night.kill),
            (browser, lambda: night.kill_program("chrom")),
            (second, night.kill),
            (proxy, lambda: night.kill_program("mpflex", "proxy")),
            (disk, night.fill_the_disk),
            (third, night.kill),
        ):
            night.wait_for(cells, "scenario")
            time.sleep(chance.random())
            act()
        state = night.end()
        assert state.good
        assert any(failure.about == "disk" for failure in state.failures)
        assert shape(disk_folder) == shape(calm)
        assert len(night.events("cell_retried")) >= 1
        assert len({event["cell"] for event in night.events("cell_finished")}) == CELLS
        attempts = [path for path in disk_folder.glob("runs/*/cells/*/attempts/*") if any(path.iterdir())]
        begun = night.events("cell_started")
        assert len(begun) - CELLS == len(attempts), "of every attempt, what there was of it is kept"
    assert len(state.jobs) == 2
    assert all(len(status.tries) >= 2 for status in state.jobs)
