"""The emulator does everything that a link condition can express; what it cannot do is refused before the run."""

import json
from pathlib import Path

from tests.integration.conftest import Mplab

EXPERIMENT = """\
mplab: 1
name: links
transports: [mptcp]
links:
  - name: everything
    wifi:
      down: {rate: 8 Mbit/s, loss: {p: 1 %, r: 20 %}, reorder: 2 %, queue: {discipline: DISCIPLINE}}
      up: {rate: 2 Mbit/s, delay: 5 ms, duplicate: 1 %, loss: 1 %}
      rtt: 40 ms
      jitter: 3 ms
      distribution: normal
    lte: {down: {trace: driving-lte.down}, up: {trace: constant-5mbit, queue: {discipline: fq_codel}}, rtt: 60 ms}
    changes:
      - {at: 100 ms, path: lte, loss: 1 %}
      - {at: 200 ms, over: 100 ms, steps: 2, path: wifi, down: {rate: 4 Mbit/s}}
scenarios:
  - download: {sizes: [1 MB]}
"""


def experiment(directory: Path, discipline: str) -> str:
    file = directory / "links.yaml"
    file.write_text(EXPERIMENT.replace("DISCIPLINE", discipline), encoding="utf-8")
    return str(file)


def test_every_key_of_a_link_reaches_the_emulator(mplab: Mplab, tmp_path: Path) -> None:
    result = mplab("run", experiment(tmp_path, "codel"), "--no-report", "--json")
    assert result.returncode == 0, result.stderr
    run = Path(json.loads(result.stdout)["run"])
    (cell,) = (run / "cells").iterdir()
    before, after = (
        json.loads((cell / "counters" / f"links-{when}.json").read_text(encoding="utf-8"))
        for when in ("before", "after")
    )
    grown = {name for name, count in after.items() if count > before.get(name, 0)}
    assert {"wlan0.down.dropped_loss", "wlan0.down.reordered", "wlan0.up.duplicated"} <= grown
    events = [json.loads(line) for line in (cell / "scenario.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["what"] for event in events if event["event"] == "change"] == [
        "loss 1 %",
        "down 6 Mbit/s",
        "down 4 Mbit/s",
    ]


def test_what_the_emulator_cannot_do_is_refused_before_anything_is_touched(mplab: Mplab, tmp_path: Path) -> None:
    result = mplab("run", experiment(tmp_path, "cake"))
    assert result.returncode == 2
    assert "links.yaml:5: links[0]: link 'everything': wifi, down: " in result.stderr
    assert "it has: drop-tail, codel, fq_codel" in result.stderr
    assert not (tmp_path / "runs").exists()
