"""Proxy, origin and services of a lab as processes in its nodes."""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from mplab.base.configs import write_private
from mplab.base.counters import parse_netstat
from mplab.base.endpoints import PORTS
from mplab.base.errors import DeviceError, check_each, last_words
from mplab.base.nodes import Node, NodeProcess
from mplab.base.polling import wait_ready
from mplab.base.programs import MPFLEX
from mplab.drivers.capture import CapturePoint
from mplab.drivers.origin.origin import Origin
from mplab.drivers.proxy.driver import ServerSettings
from mplab.drivers.proxy.settings import proxy_settings
from mplab.drivers.services import RunningServices
from mplab.format.agentlog import LogRecord, SessionSettings


class ProcessProxy:
    """`Proxy` as a program in the node `proxy`.

    Args:
        node: node to run in.
        lab: settings that the lab passes to its servers.
        secret_file: file with the secret that agent and proxy share.
        ports: ports of the origin's services, which are allowed in addition to `WEB_PORTS`.
    """

    def __init__(self, node: Node, lab: ServerSettings, *, secret_file: Path, ports: Sequence[int]) -> None:
        self._node = node
        self._lab = lab
        self._log_file = lab.logs / "proxy.jsonl"
        self._secret_file = secret_file
        self._ports = ports
        self._session: SessionSettings = {}
        self._congestion_control = lab.congestion_control
        self._process: NodeProcess | None = None

    @property
    def capture_point(self) -> CapturePoint:
        """The proxy's interface towards the phone."""
        return CapturePoint(self._node, self._lab.interface, "proxy.pcapng")

    def start(self) -> None:
        """Start the proxy and wait until it listens. Raises DeviceError when it does not become ready."""
        config = self._lab.directory / "proxy.json"
        config.write_text(
            json.dumps(
                proxy_settings(
                    listen=self._listen(),
                    secret_file=str(self._secret_file),
                    ports=self._ports,
                    congestion_control=self._congestion_control,
                    log=str(self._log_file),
                    session=self._session,
                )
            )
        )
        log = self._lab.logs / "proxy.log"
        before = log.stat().st_size if log.exists() else 0
        self._process = self._node.spawn([str(MPFLEX.path()), "proxy", "--config", str(config)], log=log)
        wait_ready(self._process, log, name="mpflex proxy", since=before)

    def _listen(self) -> dict[str, str]:
        kernel_mptcp = Path("/proc/sys/net/mptcp/enabled").exists()
        return {name: self._lab.endpoints.listener(name) for name in PORTS if kernel_mptcp or name != "mptcp"}

    def stop(self) -> None:
        """Stop the proxy."""
        if self._process is not None:
            self._process.stop()

    def use(self, session: SessionSettings, congestion_control: str) -> None:
        """Restart the proxy with these settings; do nothing if they are unchanged. See `Proxy`."""
        wanted = session or self._session, congestion_control
        if wanted != (self._session, self._congestion_control):
            self.stop()
            self._session, self._congestion_control = wanted
            self.start()

    def revive(self) -> list[str]:
        """Start the proxy again if it has ended unexpectedly.

        Returns:
            One sentence about the restart; [] if the proxy was still running or was never started.

        Raises:
            DeviceError: the proxy does not become ready.
        """
        if self._process is None or self._process.poll() is None:
            return []
        self.stop()
        self.start()
        return ["proxy: mpflex proxy had ended and was started again"]

    def check_alive(self) -> None:
        """Raise DeviceError when the proxy has ended unexpectedly."""
        if self._process is not None and (code := self._process.poll()) is not None:
            words = last_words(self._lab.logs / "proxy.log")
            raise DeviceError("proxy", f"mpflex proxy has ended by itself ({code})", stderr=words)

    def log_end(self) -> int:
        """Return the size of the connection log, bytes; it is the mark for `logs_since`."""
        return self._log_file.stat().st_size if self._log_file.exists() else 0

    def logs_since(self, mark: int) -> list[LogRecord]:
        """Return the records of the connection log after byte `mark`; a last line that is incomplete is left out."""
        if not self._log_file.exists():
            return []
        with self._log_file.open("rb") as log:
            log.seek(mark)
            new = log.read()
        return [json.loads(line) for line in new[: new.rfind(b"\n") + 1].splitlines()]

    def counters(self) -> Mapping[str, int]:
        """Return the kernel's network counters in the proxy's node."""
        return parse_netstat(self._node.run(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)


_SECRET_BYTES = 32


class ProcessServers:
    """`Servers` as programs in the nodes `proxy` and `origin`.

    Args:
        lab: settings that the lab passes to its servers.
    """

    networks: Mapping[str, int] = {}

    def __init__(self, lab: ServerSettings) -> None:
        self._lab = lab
        self._stack = ExitStack()
        self.secret_file = lab.directory / "secret"

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Start origin and services, and make the proxy, which `start_proxy` starts. See `Servers`."""
        lab = self._lab
        self._origin_node = origin = replace(nodes["origin"], launcher=lab.launcher)
        write_private(self.secret_file, secrets.token_hex(_SECRET_BYTES))
        self.services = RunningServices(lab.services, directory=lab.directory / "services", host=origin)
        self.origin = Origin(lab.directory / "origin", additions=self.services)
        self.proxy = ProcessProxy(nodes["proxy"], lab, secret_file=self.secret_file, ports=self.services.ports)
        self.origin.prepare()
        self._stack.callback(self.origin.stop)
        self.origin.start(origin, logs=lab.logs)
        self._stack.callback(self.services.stop)
        self.services.start(lab.logs)
        self._stack.callback(self.proxy.stop)

    def start_proxy(self) -> None:
        """Start the proxy in its node."""
        self.proxy.start()

    def stop(self) -> None:
        """Stop proxy, services and origin, in this order."""
        self._stack.close()

    def delay_by_prefix(self) -> dict[str, float]:
        """Return address prefix of servers → one-way delay between the proxy and them, ms."""
        return {**self.origin.delay_by_prefix(), **self.services.delay_by_prefix()}

    def logs(self) -> list[Path]:
        """Return the log files of nginx."""
        return self.origin.logs

    @property
    def ca_pem(self) -> Path:
        """Certificate of the lab's certificate authority, made by `Origin.prepare`."""
        return self.origin.ca_pem

    def make_home(self, directory: Path) -> Path:
        """Make a home folder in which browsers trust this lab's authority."""
        return self.origin.make_home(directory)

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's sockets, read in the origin's node. See `Servers`."""
        return self._origin_node.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout.strip()

    def describe(self) -> Mapping[str, object]:
        """Return {}: the manifest already has all facts about these servers."""
        return {}

    def check_alive(self) -> None:
        """Raise DeviceError when the proxy, a server of the origin, or a service has ended."""
        check_each([self.proxy.check_alive, self.origin.check_alive, self.services.check_alive])

    def revive(self) -> list[str]:
        """Start ended servers again: first the origin's, because services and proxy need them. See `Servers`."""
        return [*self.origin.revive(), *self.services.revive(), *self.proxy.revive()]
