"""The real icecast service, in its own network."""

import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.nodes import Node
from mplab.drivers.origin.origin import Origin
from mplab.drivers.services import RunningServices, load_service
from tests.integration.conftest import wait_until

FRAME = re.compile(rb"\xff\xfb")


@dataclass
class Station:
    """A running station: the service and the origin in one node."""

    node: Node
    services: RunningServices
    folder: Path
    logs: Path

    def curl(self, *arguments: str) -> str:
        """Return the output of curl on the station's node."""
        argv = ["curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "10", *arguments]
        return self.node.run(argv, check=False).stdout


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    if os.geteuid() != 0:
        pytest.skip("a network of its own needs root")
    service = load_service("icecast")
    try:
        for program in service.programs:
            program.path()
    except LabNotReadyError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("station")
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
    wait_until(lambda: _has_its_own_network(holder.pid), "a network of its own")
    node = Node("station", holder.pid)
    services = RunningServices([service], directory=folder / "services", host=node)
    origin = Origin(folder / "origin", additions=services)
    try:
        node.ip("link set lo up", "route add local 10.65.0.0/16 dev lo")
        origin.prepare()
        origin.start(node, logs=folder)
        services.start(folder)
        yield Station(node, services, folder / "services" / "icecast", folder)
    finally:
        services.stop()
        origin.stop()
        holder.kill()
        holder.wait()


def _has_its_own_network(pid: int) -> bool:
    """Return whether ``sleep`` runs in its own network. Until it runs, the mounts may still be shared."""
    own = Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    return own and Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"


def test_a_listener_gets_the_burst_at_once_and_then_the_pace_of_the_sound(station: Station, tmp_path: Path) -> None:
    time.sleep(5)
    file = tmp_path / "heard.mp3"
    station.curl("--max-time", "3", "--output", str(file), "http://10.65.106.1:8000/live")
    heard = file.read_bytes()
    assert len(heard) == pytest.approx(65_536 + 3 * 16_000, rel=0.4)
    starts = [match.start() for match in FRAME.finditer(heard)]
    assert sum(after - before == 384 for before, after in pairwise(starts)) > 200


def test_tracks_come_in_ranges(station: Station) -> None:
    url, host = "http://10.65.106.2/tracks/track-2.mp3", "Host: music.lab"
    head = station.curl("--header", host, "--range", "1000-2999", "--dump-header", "-", "--output", "/dev/null", url)
    assert "206 Partial Content" in head
    assert "Content-Range: bytes 1000-2999/960000" in head
    assert "Cache-Control: no-store" in head


def test_the_players_pages_are_whole(station: Station) -> None:
    for address, host in (("10.65.106.1", "radio.lab"), ("10.65.106.2", "music.lab")):
        page = station.curl("--header", f"Host: {host}", f"http://{address}/")
        for script in re.findall(r'src="([^"]+)"', page):
            assert "'use strict'" in station.curl("--header", f"Host: {host}", f"http://{address}/{script}")


def test_the_password_is_in_private_files_alone(station: Station) -> None:
    password = (station.folder / "password").read_text()
    assert len(password) == 32
    for file in ("password", "icecast.xml"):
        assert stat.S_IMODE((station.folder / file).stat().st_mode) == 0o600
    logs = list(station.logs.glob("*.log"))
    assert {"icecast.log", "icecast-source.log"} <= {log.name for log in logs}
    assert [log.name for log in logs if password in log.read_text(errors="replace")] == []
    assert not any(password in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    assert password not in str(station.services.facts("icecast"))


def test_a_station_without_a_source_is_noticed(station: Station) -> None:
    station.services.check(["icecast"])
    (source,) = [
        process
        for process in psutil.Process().children(recursive=True)
        if any(part.endswith("/icecast/source.py") for part in process.cmdline())
    ]
    source.send_signal(signal.SIGKILL)
    with pytest.raises(DeviceError, match=r"icecast-source has ended|no source: the station is silent"):
        _check_for(station, seconds=20)


def _check_for(station: Station, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        station.services.check(["icecast"])
        time.sleep(0.1)
