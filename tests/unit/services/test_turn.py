"""The service of calls: coturn on loopback, and the recorded speech."""

import json
import subprocess
import sys
import wave
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import DeviceError
from mplab.base.machine import CommandResult
from mplab.base.nodes import NodeProcess
from mplab.base.plugins import SERVICES
from mplab.base.ports import free_port
from mplab.drivers.origin.certificates import LabAuthority
from mplab.drivers.services import RunningServices, load_service

turn = load_service("turn")
missing = [program.name for program in turn.programs if program.find() is None]
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")]

PROBE = SERVICES["turn"].folder() / "probe.py"


class LocalHost:
    """A host that runs programs on this machine."""

    def spawn(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> NodeProcess:
        with log.open("ab") as output:
            return NodeProcess(subprocess.Popen(argv, stdout=output, stderr=output, env=env))

    def run(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        result = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=check)
        return CommandResult(result.returncode, result.stdout, result.stderr)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def prepared(directory: Path, cache: Path) -> tuple[RunningServices, Any]:
    """Prepare the service on loopback, at a free port; return it with its runner."""
    service = type(turn)()
    service.hosts = {"turn.lab": "127.0.0.1", "call.lab": "127.0.0.1"}
    service.ports = (free_port(),)
    services = RunningServices([service], directory=directory / "lab", host=LocalHost(), cache=cache)
    services.prepare(LabAuthority(directory / "certificates"))
    return services, service


def credential(directory: Path) -> str:
    config = json.loads((directory / "lab" / "turn" / "config.json").read_text())
    assert config["iceTransportPolicy"] == "relay"
    (server,) = config["iceServers"]
    assert server["urls"].endswith("?transport=tcp")
    return str(server["credential"])


def test_it_gives_relays_to_those_who_have_this_labs_password(tmp_path: Path, cache: Path) -> None:
    services, service = prepared(tmp_path, cache)
    try:
        services.start(tmp_path)
        services.check(["turn"])
        secret = credential(tmp_path)
        argv = ["turnutils_uclient", "-t", "-y", "-c", "-n", "1", "-p", str(service.ports[0]), "-u", "mplab"]
        tried = subprocess.run(
            [*argv, "-w", secret, "127.0.0.1"], capture_output=True, text=True, check=False, timeout=60
        ).stdout
    finally:
        services.stop()
    assert "Cannot complete Allocation" not in tried
    assert "Forbidden IP" in tried, "it had relays, and asked for a peer that is not of the lab"
    assert secret not in (tmp_path / "turn.log").read_text()


def test_passwords_are_new_in_every_lab_and_for_nobody_else(tmp_path: Path, cache: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        services, _ = prepared(tmp_path / name, cache)
        assert credential(tmp_path / name) not in json.dumps(dict(services.facts("turn"))) + services.nginx()
        for file in ("config.json", "turnserver.conf"):
            assert (tmp_path / name / "lab" / "turn" / file).stat().st_mode & 0o077 == 0
    assert credential(tmp_path / "one") != credential(tmp_path / "other")


def test_a_server_that_has_died_is_noticed(tmp_path: Path, cache: Path) -> None:
    services, service = prepared(tmp_path, cache)
    services.start(tmp_path)
    services.stop()
    with pytest.raises(DeviceError, match=r"^turn: coturn does not answer as it should: .*refused"):
        services.check(["turn"])
    assert service.ports[0]


def test_another_server_at_the_port_is_told() -> None:
    script = (
        "import socket, sys\nserver = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nprint(flush=True)\n"
        "client = server.accept()[0]\nclient.recv(100)\nclient.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n')\n"
    )
    port = str(free_port())
    with subprocess.Popen([sys.executable, "-c", script, port], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        probe = subprocess.run(
            [sys.executable, str(PROBE), "127.0.0.1", port], capture_output=True, text=True, check=False
        )
    assert probe.returncode == 1
    assert "an answer of type 0x4854" in probe.stderr


def test_the_speech_is_made_once_and_always_the_same(tmp_path: Path, cache: Path) -> None:
    prepared(tmp_path, cache)
    (first,) = cache.glob("turn/speech-*")
    files = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.iterdir()}
    (tmp_path / "again").mkdir()
    prepared(tmp_path / "again", cache)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.iterdir()} == files
    (tmp_path / "elsewhere").mkdir()
    prepared(tmp_path / "elsewhere", tmp_path / "cache")
    (second,) = (tmp_path / "cache").glob("turn/speech-*")
    assert {path.name: path.read_bytes() for path in second.iterdir()} == {
        name: data for name, (data, _) in files.items()
    }


def test_the_speech_is_what_pesq_wants(tmp_path: Path, cache: Path) -> None:
    services, _ = prepared(tmp_path, cache)
    facts = services.facts("turn")
    utterances = json.loads(Path(facts["utterances"]).read_text())
    assert len({utterance["voice"] for utterance in utterances}) >= 4
    assert all(8 <= utterance["end_s"] - utterance["start_s"] <= 12 for utterance in utterances)
    gaps = [after["start_s"] - before["end_s"] for before, after in pairwise(utterances)]
    assert min(gaps) > 0.5
    for name, rate in (("sent", 48_000), ("reference", 16_000)):
        with wave.open(facts[name]) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, rate)
            length_s = file.getnframes() / rate
        assert utterances[-1]["end_s"] < length_s <= 120
