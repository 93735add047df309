"""The agent on the phone, for the time of one cell."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import DeviceError
from orchestrator.lab import topology
from orchestrator.lab.nodes import Node, NodeProcess
from orchestrator.lab.ready import wait_ready
from orchestrator.programs import MPFLEX
from orchestrator.transport.protocol import AgentSettings

_CHECK_TIMEOUT_S = 5.0


class Agent:
    """`mpflex agent` with one transport.

    Args:
        phone: the node it runs on.
        settings: what the transport asks of it.
        secret_file: the secret shared with the proxy.
        congestion_control: pinned on every socket.
        config: where its configuration is written (a private place).
        logs: folder for ``agent.jsonl`` (connections) and ``agent.log`` (its output).
    """

    def __init__(
        self,
        *,
        phone: Node,
        settings: AgentSettings,
        secret_file: Path,
        congestion_control: str,
        config: Path,
        logs: Path,
    ) -> None:
        self._phone = phone
        self._config = config
        self._log = logs / "agent.log"
        self._process: NodeProcess | None = None
        config.write_text(
            json.dumps(
                {
                    "listen": {
                        "redirect": f"127.0.0.1:{topology.AGENT_REDIRECT_PORT}",
                        "dns": f"127.0.0.1:{topology.AGENT_DNS_PORT}",
                    },
                    "dns_server": f"{topology.DNS}:53",
                    "proxy": topology.PROXY_MPTCP if settings.transport == "mptcp" else topology.PROXY_TCP,
                    "transport": settings.transport,
                    "device": settings.device,
                    "mark": topology.AGENT_MARK,
                    "secret_file": str(secret_file),
                    "congestion_control": congestion_control,
                    "log": str(logs / "agent.jsonl"),
                }
            )
        )

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._process = self._phone.spawn([str(MPFLEX.path()), "agent", "--config", str(self._config)], log=self._log)
        wait_ready(self._process, self._log, name="mpflex agent")

    def stop(self) -> None:
        """End it; connections that are still open are logged first."""
        if self._process is not None:
            self._process.stop()

    def check(self, *, subflows: int) -> Mapping[str, Any]:
        """Open a test connection to the proxy as the agent would, and say what it was made of.

        Raises:
            DeviceError: no connection, or not as many subflows in time.
        """
        done = self._phone.run(
            [
                *(str(MPFLEX.path()), "check", "--config", str(self._config)),
                *("--wait-subflows", str(subflows), "--timeout", f"{_CHECK_TIMEOUT_S:g}s"),
            ],
            timeout_s=_CHECK_TIMEOUT_S + 5,
            check=False,
        )
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            found = {"ok": False, "error": done.stderr.strip() or f"exit code {done.exit_code}"}
        if not found.get("ok") and "mptcp" not in found:
            raise DeviceError("mpflex agent", f"no test connection to the proxy: {found.get('error')}")
        return found
