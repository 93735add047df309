"""The `docker` driver of proxies: `mpflex proxy` in a container, for cells."""

import io
import json
import re
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

from docker import DockerClient
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from mplab.base.counters import parse_netstat
from mplab.base.errors import DeviceError
from mplab.drivers.capture import CapturePoint
from mplab.drivers.proxy.docker.layout import PRIVATE, USER
from mplab.drivers.proxy.docker.render import CONTROL, PORTS
from mplab.drivers.proxy.docker.sidecar import Sidecar
from mplab.drivers.proxy.docker.volumes import MARK
from mplab.drivers.proxy.docker.watch import Watch
from mplab.drivers.proxy.settings import proxy_settings
from mplab.format.agentlog import LogRecord, SessionSettings

SERVICE, HOLDER, ORIGIN = "proxy", "proxy-net", "origin-net"
"""The service that carries, the one that holds its network, and the one that holds the origin's."""
CLOCK_S = 2.0
"""How far the clock of the engine's host may be off."""

_READY_TIMEOUT_S = 15.0
_STOP_S = 5
_POLL_S = 0.05
_TIMESTAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z ")
_COUNTERS = ("cat", "/proc/net/netstat", "/proc/net/snmp")


class DockerProxy:
    """`Proxy` as a container of a stack that is up.

    Everything goes through the engine's API, so that the engine may be anywhere. What it changes, the configuration in
    the volume, is taken back by whoever brought the stack up.

    Args:
        client: of the engine.
        project: name of the compose project.
        image: what the configuration is put into its volume by.
        sidecar: captures in the proxy's network.
        interface: towards the phone, in the proxy's network; "": that of its default route, to which the engine
            brings what comes to published ports.
        congestion_control: pinned on every socket towards the phone.
        ports: of the origin's services that phones reach, beside those of the web.
        plain: where sessions without privacy are accepted, address and port; "": nowhere.
        internet: destinations outside of the lab, in the form of the proxy's allow list.
    """

    def __init__(
        self,
        client: DockerClient,
        *,
        project: str,
        image: str,
        sidecar: Sidecar,
        interface: str,
        congestion_control: str,
        ports: Sequence[int] = (),
        plain: str = "",
        internet: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._project = project
        self._image = image
        self._sidecar = sidecar
        self._interface = interface
        self._congestion_control = congestion_control
        self._ports = ports
        self._plain = plain
        self._internet = internet
        self._session: SessionSettings = {}
        self.watch = Watch(client, project)

    @property
    def capture_point(self) -> CapturePoint:
        """The interface towards the phone, watched by a side-car. Raises DeviceError."""
        return CapturePoint(self._sidecar, self._interface or self._default_interface(), "proxy.pcapng")

    def _default_interface(self) -> str:
        said = self._ask("ip", "-4", "-o", "route", "show", "default")
        found = re.search(r"\bdev (\S+)", said)
        if found is None:
            raise DeviceError(HOLDER, "its network has no default route: is one of its networks gone?")
        return found[1]

    def origin_congestion_control(self) -> str:
        """What the origin's own sockets use. Raises DeviceError."""
        return self._ask("cat", "/proc/sys/net/ipv4/tcp_congestion_control", service=ORIGIN).strip()

    def start(self) -> None:
        """Configure it for cells, start it again, and wait until it listens.

        Raises:
            DeviceError: it does not.
        """
        self._configure()
        mark = self.log_end()
        try:
            self._container(SERVICE).restart(timeout=_STOP_S)
        except (DockerException, RequestException) as error:
            raise DeviceError(SERVICE, f"its container cannot be started: {error}") from error
        self._wait_ready(mark)
        self.watch.begin()

    def _configure(self) -> None:
        settings = proxy_settings(
            listen={name: f"0.0.0.0:{port}" for name, port in PORTS.items()}
            | ({"mpflex_plain": self._plain} if self._plain else {}),
            secret_file=f"{PRIVATE}/proxy/secret",
            ports=self._ports,
            congestion_control=self._congestion_control,
            log="/dev/stdout",
            session=self._session,
            internet=self._internet,
            control=CONTROL,
        )
        # Without its mark, the volume is filled anew when the stack is next brought up.
        self._put("proxy", {MARK: b"", "proxy.json": json.dumps(settings, indent=1).encode()})

    def _put(self, volume: str, files: Mapping[str, bytes]) -> None:
        """Write files into a volume, by a container that is never started: the proxy's own sees it read-only."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode, member.uid, member.gid = len(content), 0o600, USER, USER
                archive.addfile(member, io.BytesIO(content))
        mounts = {f"{self._project}_{volume}": {"bind": "/volume", "mode": "rw"}}
        try:
            helper = self._client.containers.create(self._image, ["true"], network_mode="none", volumes=mounts)
            try:
                helper.put_archive("/volume", data.getvalue())
            finally:
                helper.remove(force=True)
        except (DockerException, RequestException) as error:
            raise DeviceError(SERVICE, f"its configuration cannot be written: {error}") from error

    def _wait_ready(self, mark: int) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            lines = self._lines(mark)
            if any(record["event"] == "ready" for record in parse_records(lines)):
                return
            if time.monotonic() > deadline:
                said = b"\n".join(line for _, line in lines).decode(errors="replace")
                raise DeviceError(SERVICE, f"does not listen after {_READY_TIMEOUT_S:g} s", stderr=said)
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it; open connections are logged first. Side-cars that are left go, too."""
        self._sidecar.clear()
        with suppress(NotFound):
            self._container(SERVICE).stop(timeout=_STOP_S)

    def use(self, session: SessionSettings) -> None:
        """Have these settings for sessions; containers that had ended are started again, old side-cars go.

        Raises:
            DeviceError: the proxy does not come up, or its network is gone.
        """
        self._sidecar.clear()
        self.watch.begin()
        if session and session != self._session:
            self._session = session
            self.start()

    def check_alive(self) -> None:
        """Raise DeviceError when a container of the stack has ended since the cell began."""
        self.watch.check()

    def log_end(self) -> int:
        """The time of the last line, ns since 1970."""
        lines = parse_timed(self._container(SERVICE).logs(tail=1, timestamps=True))
        return lines[-1][0] if lines else 0

    def logs_since(self, mark: int) -> list[LogRecord]:
        """The records after `mark`; the engine is given time to take what the proxy has just written."""
        lines = self._lines(mark)
        while True:
            time.sleep(_POLL_S)
            now = self._lines(mark)
            if len(now) == len(lines):
                return parse_records(now)
            lines = now

    def _lines(self, mark: int) -> list[tuple[int, bytes]]:
        # The engine takes whole seconds; what is older is left out here.
        try:
            said = self._container(SERVICE).logs(since=max(mark // 10**9, 1), timestamps=True)
        except (DockerException, RequestException) as error:
            raise DeviceError(SERVICE, f"its log cannot be read: {error}") from error
        return [(at, line) for at, line in parse_timed(said) if at > mark]

    def counters(self) -> Mapping[str, int]:
        """Kernel counters of the container's network."""
        return parse_netstat(self._ask(*_COUNTERS))

    def clock_offset_s(self, clock: Callable[[], float] = time.time) -> float:
        """How far the clock of the engine's host is surely off this machine's, seconds; 0 when it may be right.

        Args:
            clock: of this machine.
        """
        before = clock()
        there = float(self._ask("date", "+%s.%N"))
        after = clock()
        return max(before - there, there - after, 0.0)

    def check_clock(self, clock: Callable[[], float] = time.time) -> None:
        """Raise DeviceError when captures and logs of the server would not fit those of the phone."""
        off_s = self.clock_offset_s(clock)
        if off_s > CLOCK_S:
            raise DeviceError(
                "engine", f"the clock of its host is {off_s:.1f} s off this machine's: let both keep time by NTP"
            )

    def _ask(self, *argv: str, service: str = HOLDER) -> str:
        try:
            code, output = self._container(service).exec_run(list(argv))
        except (DockerException, RequestException) as error:
            raise DeviceError(service, f"cannot be asked: {error}", command=argv) from error
        text = output.decode(errors="replace") if isinstance(output, bytes) else ""
        if code != 0:
            raise DeviceError(service, "a command failed", command=argv, exit_code_found=code, stderr=text)
        return text

    def _container(self, service: str) -> Container:
        found = self.watch.containers().get(service)
        if found is None:
            raise DeviceError(service, f"the project {self._project} has no such container; 'mplab proxy up' makes it")
        return found


def parse_timed(said: bytes) -> list[tuple[int, bytes]]:
    """Lines of a log with their times, ns since 1970."""
    lines = []
    for line in said.splitlines():
        if found := _TIMESTAMP.match(line):
            seconds = datetime.fromisoformat(found[1].decode()).replace(tzinfo=UTC).timestamp()
            fraction = (found[2] or b"").ljust(9, b"0")[:9]
            lines.append((int(seconds) * 10**9 + int(fraction), line[found.end() :]))
    return lines


def parse_records(lines: Sequence[tuple[int, bytes]]) -> list[LogRecord]:
    """What of the lines is a JSON object."""
    found = []
    for _, line in lines:
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and "event" in record:
                found.append(cast("LogRecord", record))
    return found
