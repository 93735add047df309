"""Run `mpflex proxy` in a container, configured for the cells of a run."""

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
from mplab.base.polling import wait_until
from mplab.drivers.capture import CapturePoint
from mplab.drivers.proxy.docker.layout import PRIVATE, USER
from mplab.drivers.proxy.docker.render import CONTROL, PORTS
from mplab.drivers.proxy.docker.sidecar import Sidecar
from mplab.drivers.proxy.docker.volumes import MARK
from mplab.drivers.proxy.docker.watch import ContainerWatch
from mplab.drivers.proxy.settings import proxy_settings
from mplab.format.agentlog import LogRecord, SessionSettings

SERVICE, HOLDER, ORIGIN = "proxy", "proxy-net", "origin-net"
"""Services: the proxy, the holder of the proxy's network namespace, and the holder of the origin's namespace."""
CLOCK_S = 2.0
"""Maximum offset between the clocks of the engine's host and this machine, s."""

_READY_TIMEOUT_S = 15.0
_STOP_S = 5
_POLL_S = 0.05
_TIMESTAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z ")
_COUNTERS = ("cat", "/proc/net/netstat", "/proc/net/snmp")


class DockerProxy:
    """`Proxy` as a container of a running stack.

    All actions use the engine's API, so the engine may be on any host. The only lasting change is the configuration in
    the volume `proxy`; the next start of the stack writes it again.

    Args:
        client: client of the engine.
        project: name of the compose project.
        image: image of the container that writes the configuration into its volume.
        sidecar: captures packets in the proxy's network namespace.
        interface: interface towards the phone in that namespace; "": the interface of the default route, at which
            packets to published ports arrive.
        congestion_control: algorithm for every socket towards the phone.
        ports: ports of the origin's services, which are allowed in addition to `WEB_PORTS`.
        plain: address and port for sessions without encryption; "": not accepted.
        internet: destinations outside of the lab that the proxy allows, ``NETWORK:PORTS``.
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
        self.watch = ContainerWatch(client, project)

    @property
    def capture_point(self) -> CapturePoint:
        """The proxy's interface towards the phone, with a side-car container that captures there.

        Raises:
            DeviceError: the interface is that of the default route, and there is no default route.
        """
        return CapturePoint(self._sidecar, self._interface or self._default_interface(), "proxy.pcapng")

    def _default_interface(self) -> str:
        routes = self._ask("ip", "-4", "-o", "route", "show", "default")
        match = re.search(r"\bdev (\S+)", routes)
        if match is None:
            raise DeviceError(HOLDER, "its network has no default route: is one of its networks gone?")
        return match[1]

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's own sockets. Raises DeviceError when it cannot be read."""
        return self._ask("cat", "/proc/sys/net/ipv4/tcp_congestion_control", service=ORIGIN).strip()

    def start(self) -> None:
        """Write the configuration for cells, restart the container, and wait until the proxy listens.

        Raises:
            DeviceError: the container does not start, or the proxy does not listen within 15 s.
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
        # Without its mark, the volume is filled again at the next start of the stack.
        self._put("proxy", {MARK: b"", "proxy.json": json.dumps(settings, indent=1).encode()})

    def _put(self, volume: str, files: Mapping[str, bytes]) -> None:
        """Write files into a volume through a helper container that never starts.

        The proxy's own container mounts the volume read-only.

        Raises:
            DeviceError: the engine refused.
        """
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
        lines: list[tuple[int, bytes]] = []

        def ready() -> bool:
            nonlocal lines
            lines = self._lines(mark)
            return any(record["event"] == "ready" for record in parse_records(lines))

        if not wait_until(ready, _READY_TIMEOUT_S, interval_s=_POLL_S):
            output = b"\n".join(line for _, line in lines).decode(errors="replace")
            raise DeviceError(SERVICE, f"does not listen after {_READY_TIMEOUT_S:g} s", stderr=output)

    def stop(self) -> None:
        """Remove remaining side-cars and stop the proxy. Before it ends, the proxy logs its open connections."""
        self._sidecar.clear()
        with suppress(NotFound):
            self._container(SERVICE).stop(timeout=_STOP_S)

    def use(self, session: SessionSettings, congestion_control: str) -> None:
        """Remove old side-cars, restart ended containers, and apply the settings. See `Proxy`.

        Raises:
            DeviceError: the proxy does not start, or its network namespace is lost.
        """
        self._sidecar.clear()
        self.watch.begin()
        wanted = session or self._session, congestion_control
        if wanted != (self._session, self._congestion_control):
            self._session, self._congestion_control = wanted
            self.start()

    def check_alive(self) -> None:
        """Raise DeviceError when a container of the stack has ended, even if the engine has started it again."""
        self.watch.check()

    def log_end(self) -> int:
        """Return the time of the last log line, ns since 1970; 0 for an empty log."""
        lines = parse_timed(self._container(SERVICE).logs(tail=1, timestamps=True))
        return lines[-1][0] if lines else 0

    def logs_since(self, mark: int) -> list[LogRecord]:
        """Return the proxy's log records after the time `mark`, ns since 1970.

        Wait until two reads of the log, 0.05 s apart, give the same number of lines.
        """
        lines = self._lines(mark)
        while True:
            time.sleep(_POLL_S)
            now = self._lines(mark)
            if len(now) == len(lines):
                return parse_records(now)
            lines = now

    def _lines(self, mark: int) -> list[tuple[int, bytes]]:
        # The engine filters by whole seconds; the exact limit is applied here.
        try:
            output = self._container(SERVICE).logs(since=max(mark // 10**9, 1), timestamps=True)
        except (DockerException, RequestException) as error:
            raise DeviceError(SERVICE, f"its log cannot be read: {error}") from error
        return [(at, line) for at, line in parse_timed(output) if at > mark]

    def counters(self) -> Mapping[str, int]:
        """Return the kernel's network counters in the proxy's network namespace."""
        return parse_netstat(self._ask(*_COUNTERS))

    def clock_offset_s(self, clock: Callable[[], float] = time.time) -> float:
        """Return the minimum difference between the clocks of this machine and of the engine's host, s: 0 or more.

        The clock of the engine's host is read once. The result is 0 if that time is between the times of this machine
        before and after the read; otherwise it is the distance to the nearer of these two times.

        Args:
            clock: clock of this machine, s since 1970.

        Raises:
            DeviceError: the container's clock cannot be read.
        """
        before = clock()
        container_time = float(self._ask("date", "+%s.%N"))
        after = clock()
        return max(before - container_time, container_time - after, 0.0)

    def check_clock(self, clock: Callable[[], float] = time.time) -> None:
        """Raise DeviceError when the clocks differ by more than `CLOCK_S`: logs and captures would not match."""
        off_s = self.clock_offset_s(clock)
        if off_s > CLOCK_S:
            raise DeviceError(
                "engine", f"the clock of its host is {off_s:.1f} s off this machine's: let both keep time by NTP"
            )

    def _ask(self, *argv: str, service: str = HOLDER) -> str:
        try:
            code, output = self._container(service).exec_run(list(argv))
        except (DockerException, RequestException) as error:
            raise DeviceError(service, f"a command could not be run: {error}", command=argv) from error
        text = output.decode(errors="replace") if isinstance(output, bytes) else ""
        if code != 0:
            raise DeviceError(service, "a command failed", command=argv, exit_code_found=code, stderr=text)
        return text

    def _container(self, service: str) -> Container:
        container = self.watch.containers().get(service)
        if container is None:
            raise DeviceError(service, f"the project {self._project} has no such container; 'mplab proxy up' makes it")
        return container


def parse_timed(log: bytes) -> list[tuple[int, bytes]]:
    """Split the engine's log of a container into pairs (time in ns since 1970, line)."""
    lines = []
    for line in log.splitlines():
        if match := _TIMESTAMP.match(line):
            seconds = datetime.fromisoformat(match[1].decode()).replace(tzinfo=UTC).timestamp()
            fraction = (match[2] or b"").ljust(9, b"0")[:9]
            lines.append((int(seconds) * 10**9 + int(fraction), line[match.end() :]))
    return lines


def parse_records(lines: Sequence[tuple[int, bytes]]) -> list[LogRecord]:
    """Return the log records (JSON objects with the key ``event``) in the lines; other lines are skipped."""
    records = []
    for _, line in lines:
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and "event" in record:
                records.append(cast("LogRecord", record))
    return records
