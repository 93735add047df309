"""The proxy of the virtual lab: `mpflex proxy` in a node of its own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.capture import CapturePoint
from orchestrator.lab import topology
from orchestrator.lab.nodes import Node, NodeProcess
from orchestrator.lab.ready import wait_ready
from orchestrator.phone.counters import parse_netstat
from orchestrator.programs import MPFLEX

ALLOWED = (f"{topology.ORIGIN_NET}:53,80,443",)


class ProcessProxy:
    """`Proxy` as a program in the node `proxy`."""

    def __init__(self, node: Node, *, directory: Path, secret_file: Path, congestion_control: str) -> None:
        self._node = node
        self._directory = directory
        self._secret_file = secret_file
        self._congestion_control = congestion_control
        self._process: NodeProcess | None = None

    @property
    def log_file(self) -> Path:
        """Its connection log."""
        return self._directory / "proxy.jsonl"

    @property
    def capture_point(self) -> CapturePoint:
        """The interface towards the phone."""
        return CapturePoint(self._node, "eth0", "proxy.pcapng")

    def start(self) -> None:
        """Start it and wait until it listens."""
        config = self._directory / "proxy.json"
        listen = {"tcp": topology.PROXY_TCP}
        if Path("/proc/sys/net/mptcp/enabled").exists():
            listen["mptcp"] = topology.PROXY_MPTCP
        config.write_text(
            json.dumps(
                {
                    "listen": listen,
                    "secret_file": str(self._secret_file),
                    "allow": list(ALLOWED),
                    "congestion_control": self._congestion_control,
                    "log": str(self.log_file),
                }
            )
        )
        log = self._directory / "proxy.log"
        self._process = self._node.spawn([str(MPFLEX.path()), "proxy", "--config", str(config)], log=log)
        wait_ready(self._process, log, name="mpflex proxy")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop()

    def status(self) -> Mapping[str, Any]:
        """Whether it runs."""
        running = self._process is not None and self._process.poll() is None
        return {"running": running, "listen": [topology.PROXY_TCP, topology.PROXY_MPTCP]}

    def logs_since(self, mark: int) -> tuple[str, int]:
        """What was logged after `mark` bytes."""
        if not self.log_file.exists():
            return "", 0
        with self.log_file.open("rb") as log:
            log.seek(mark)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        return whole.decode(errors="replace"), mark + len(whole)

    def counters(self) -> Mapping[str, int]:
        """Kernel counters of the node."""
        return parse_netstat(self._node.run(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)
