"""Two phones chat in the lab, also after the server dies and after the network fails."""

import json
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.base.nodes import NODE_VARIABLE
from tests.integration.conftest import Mplab, score, wait_until

Start = Callable[..., subprocess.Popen[str]]

EXPERIMENT = """\
mplab: 1
name: chat
transports: [sptcp-wifi]
links:
  - name: fast
    wifi: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}}
    lte: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}}
scenarios:
  - messenger: {{{parameters}}}
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: 0
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[[str], str]:
    def write(parameters: str) -> str:
        path = tmp_path / "chat.yaml"
        path.write_text(EXPERIMENT.format(parameters=parameters))
        return str(path)

    return write


def cell(tmp_path: Path) -> Path:
    (path,) = tmp_path.glob("runs/*/cells/*r1")
    return path


def observations(directory: Path, event: str) -> list[dict[str, Any]]:
    lines = (directory / "scenario.jsonl").read_text().splitlines()
    return [item for line in lines if (item := json.loads(line))["event"] == event]


def test_messages_arrive_as_they_were_sent(mplab: Mplab, experiment: Callable[[str], str], tmp_path: Path) -> None:
    result = mplab("run", experiment("rounds: 1, photo: 20 kB, periodic: 2, period: 2 s"))
    assert result.returncode == 0, result.stdout + result.stderr
    directory = cell(tmp_path)
    (clean,) = observations(directory, "clean")
    assert {name: count for name, count in clean.items() if name not in {"t", "event"} and count} == {}
    messages = observations(directory, "message")
    assert [item["kind"] for item in messages] == ["text", "smiley", "photo", "periodic", "periodic"]
    for item in messages:
        assert item["delivered"]
        assert item["verified"]
        # A receipt crosses the link in both directions, a displayed message in one.
        assert item["delivery_delay_s"] > 0.010
        assert item["one_way_delay_s"] > 0.005
        assert item["receipt_t"] == pytest.approx(item["sent_t"] + item["delivery_delay_s"], abs=1e-3)
    photo = messages[2]
    assert photo["size_bytes"] == 20_000
    assert 0 < photo["upload_s"] < photo["one_way_delay_s"]
    assert messages[4]["sent_t"] - messages[3]["sent_t"] > 1.0

    scored = {(value["metric"], *value["labels"].values()) for value in scores(directory)}
    assert {("delivery_delay", kind) for kind in ("text", "smiley", "photo", "periodic")} < scored
    assert "Authenticated as phone@chat.lab" in (directory / "logs" / "prosody.log").read_text()
    # The phone's browser connected only to the service's two addresses, with TLS.
    agent = [json.loads(line) for line in (directory / "logs" / "agent.jsonl").read_text().splitlines()]
    carried = {item["dst"] for item in agent if item["event"] == "connection" and item["process"].startswith("chrom")}
    assert carried == {"10.65.103.1:443", "10.65.103.2:443"}


def scores(directory: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((directory / "scores.json").read_text())["values"]
    return rows


def test_a_server_that_dies_is_named_and_the_cell_made_again(
    start_mplab: Start, experiment: Callable[[str], str], tmp_path: Path
) -> None:
    process = start_mplab("run", experiment("rounds: 10, periodic: 0, photo: 20 kB, patience: 3 s"), "--no-report")
    wait_until(lambda: uploads(tmp_path) > 0, "some messages delivered, a photo on its way")
    (server,) = (child for child in children(process) if any(part.endswith("/prosody") for part in child.cmdline()))
    accounts = Path(f"/proc/{server.pid}/root/run/mplab/services/xmpp/accounts.json")
    passwords = json.loads(accounts.read_text()).values()
    server.kill()
    assert process.wait(180) == 0
    assert len(set(passwords)) == 2
    assert left_in(tmp_path / "runs", passwords) == []
    record = json.loads((cell(tmp_path) / "cell.json").read_text())
    directory = cell(tmp_path) / "attempts" / "1"
    assert record["outcome"] == "ok"
    reason = record["attempts"][0]["reason"]
    assert reason.startswith("xmpp: prosody has ended (-9)")
    assert "was not delivered: the second phone lost its wired connection to the service" in reason
    for folder in ("screenshots", "screenshots-peer"):
        assert {"end.png", "end.html"} <= {path.name for path in (directory / folder).iterdir()}
    assert {"console-phone.jsonl", "console-peer.jsonl"} <= {path.name for path in (directory / "logs").iterdir()}
    assert "Authenticated as phone@chat.lab" in (directory / "logs" / "prosody.log").read_text()
    log = json.loads((directory / "logs" / "messenger.json").read_text())
    assert {"disconnect"} <= {item.get("status") for item in log["second phone"]["statuses"]}


def left_in(folder: Path, secrets: Collection[str]) -> list[Path]:
    """Return the files that contain one of the secrets."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "appium.log" for path in files), "where typed text would be"
    return [path for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)]


def test_messages_that_the_network_loses_are_scored(
    start_mplab: Start, experiment: Callable[[str], str], tmp_path: Path
) -> None:
    parameters = "rounds: 1, photo: 5 MB, periodic: 2, period: 3 s, patience: 2 s"
    process = start_mplab("run", experiment(parameters), "--no-report")
    wait_until(lambda: uploads(tmp_path) > 0, "a photo on its way")
    router = next(child for child in children(process) if child.environ().get(NODE_VARIABLE) == "router")
    subprocess.run(["nsenter", "-t", str(router.pid), "-n", "ip", "rule", "add", "pref", "1", "blackhole"], check=True)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, output + errors
    directory = cell(tmp_path)
    score(directory.parent.parent)
    messages = observations(directory, "message")
    assert [item["delivered"] for item in messages] == [True, True, False, False, False]
    assert [item["verified"] for item in messages] == [True, True, False, False, False]
    (share,) = [value["value"] for value in scores(directory) if value["metric"] == "undelivered"]
    assert share == pytest.approx(60)
    assert list((directory / "screenshots").glob("*.png"))


def uploads(tmp_path: Path) -> int:
    """Return the number of photos for which the server has issued an upload slot."""
    return sum(log.read_text().count("Issuing upload slot") for log in tmp_path.glob("runs/*/logs/prosody.log"))


def children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the programs of this run's lab."""
    return psutil.Process(process.pid).children(recursive=True)
