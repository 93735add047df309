"""Run ``mpflex agent`` on the phone during one cell: it carries the apps' connections to the proxy."""

import json
from pathlib import Path
from typing import cast

from mplab.base.endpoints import Endpoints
from mplab.base.errors import DeviceError, last_words
from mplab.base.machine import MachineProcess
from mplab.base.polling import wait_ready, wait_until
from mplab.base.programs import MPFLEX
from mplab.drivers.phone import Phone
from mplab.drivers.phone.protocol import by_our_names
from mplab.drivers.transport.protocol import AgentSettings
from mplab.drivers.transport.redirect import DNS_PORT, MARK, REDIRECT_PORT
from mplab.format.agentlog import ActiveCheck, LogRecord, PathRecord

_PATHS_TIMEOUT_S = 5.0
_CHECK_TIMEOUT_S = 15.0
"""Maximum time of a test connection, s. It carries 64 KiB each way: 12 s at 50 kbit/s with a long round-trip time."""
_POLL_S = 0.01


class Agent:
    """The process ``mpflex agent`` on a phone, configured for one transport.

    Args:
        phone: phone on which the agent runs.
        settings: settings of the transport for the agent.
        endpoints: addresses of proxy and name server.
        secret_file: file on this host with the secret that agent and proxy share.
        congestion_control: algorithm of every TCP socket of the agent.
        logs: folder for ``agent.jsonl`` (connections) and ``agent.log`` (its output).
    """

    def __init__(
        self,
        *,
        phone: Phone,
        settings: AgentSettings,
        endpoints: Endpoints,
        secret_file: Path,
        congestion_control: str,
        logs: Path,
    ) -> None:
        self._phone = phone
        self._paths = settings.paths
        self._log = logs / "agent.log"
        self._records = logs / "agent.jsonl"
        self._process: MachineProcess | None = None
        self._stopped = False
        options: dict[str, object] = {}
        if settings.devices:
            options["devices"] = [phone.devices.get(device, device) for device in settings.devices]
        if settings.policy is not None:
            # A copy in the logs: the cell keeps the policy that was in force.
            (logs / "policy.yaml").write_text(settings.policy)
            options["policy_file"] = phone.keep("policy.yaml", settings.policy)
        self._config = phone.keep(
            "agent.json",
            json.dumps(
                {
                    "listen": _listen(settings, endpoints),
                    "dns_server": endpoints.dns,
                    "proxy": endpoints.listener(settings.listener),
                    "transport": settings.transport,
                    "device": phone.devices.get(settings.device, settings.device),
                    "paths": [{"device": phone.devices.get(device, device)} for device in settings.paths],
                    "plain": settings.plain,
                    "session": settings.session,
                    "mark": 0 if endpoints.app_proxy else MARK,  # exempts the agent's packets; marks need root
                    "secret_file": phone.keep("secret", secret_file.read_text()),
                    "congestion_control": congestion_control,
                    "log": phone.outbox(self._records),
                    **options,
                }
            ),
        )

    def start(self) -> None:
        """Start the agent; wait until it listens and, with a session, until the session has every path.

        Raises:
            DeviceError: the agent does not listen, or a path is missing after 5 s.
        """
        self._process = self._phone.spawn(
            [self._phone.program(MPFLEX), "agent", "--config", self._config], log=self._log
        )
        wait_ready(self._process, self._log, name="mpflex agent")
        missing = set(self._paths)

        def attached() -> bool:
            missing.difference_update(r["interface"] for r in self._path_events() if r["what"] == "attached")
            return not missing

        if not wait_until(attached, _PATHS_TIMEOUT_S, interval_s=_POLL_S):
            why = {record["interface"]: record.get("error", "") for record in self._path_events()}
            words = "; ".join(f"{device}: {why.get(device) or 'no answer'}" for device in sorted(missing))
            raise DeviceError("mpflex agent", f"a path is missing after {_PATHS_TIMEOUT_S:g} s: {words}")

    def check_alive(self) -> None:
        """Raise DeviceError when the agent has ended unexpectedly."""
        if self._process is not None and not self._stopped and (code := self._process.poll()) is not None:
            raise DeviceError("mpflex agent", f"has ended by itself ({code})", stderr=last_words(self._log))

    def stop(self) -> None:
        """Stop the agent and copy its log to the host. The agent logs its open connections before it ends."""
        self._stopped = True
        if self._process is not None:
            self._process.stop()
            self._phone.bring(self._records)
            devices = self._phone.devices
            if self._records.exists() and any(name != device for name, device in devices.items()):
                self._records.write_text("".join(f"{json.dumps(record)}\n" for record in self.records()))

    def records(self) -> list[LogRecord]:
        """Return the records of the agent's log so far: connections, DNS lookups, policies, events of paths."""
        if self._process is not None and self._process.poll() is None:
            self._phone.bring(self._records)
        if not self._records.exists():
            return []
        lines = self._records.read_text().splitlines(keepends=True)
        devices = self._phone.devices
        return [by_our_names(cast("LogRecord", json.loads(line)), devices) for line in lines if line.endswith("\n")]

    def _path_events(self) -> list[PathRecord]:
        return [record for record in self.records() if record["event"] == "path"]

    def check(self, *, subflows: int) -> ActiveCheck:
        """Open a test connection or session to the proxy with the agent's settings; return a description of it.

        Args:
            subflows: number of subflows (or paths of a session) to wait for.

        Raises:
            DeviceError: no test connection could be made.
        """
        result = self._phone.shell(
            [
                *(self._phone.program(MPFLEX), "check", "--config", self._config),
                *("--wait-subflows", str(subflows), "--timeout", f"{_CHECK_TIMEOUT_S:g}s"),
            ],
            timeout_s=_CHECK_TIMEOUT_S + 5,
            check=False,
        )
        try:
            active: ActiveCheck = json.loads(result.stdout)
        except ValueError:
            active = {"ok": False, "error": result.stderr.strip() or f"exit code {result.exit_code}"}
        if not active.get("ok") and "mptcp" not in active:
            raise DeviceError("mpflex agent", f"no test connection to the proxy: {active.get('error')}")
        return by_our_names(active, self._phone.devices)


def _listen(settings: AgentSettings, endpoints: Endpoints) -> dict[str, str]:
    """Return the agent's listeners: kind → address.

    The kinds are ``redirect`` and ``dns`` for redirected packets, ``socks`` and ``http`` for apps that use a proxy.
    """
    if endpoints.app_proxy:
        return {"socks": endpoints.app_proxy, "http": endpoints.app_http_proxy}
    redirected = {"redirect": f"127.0.0.1:{REDIRECT_PORT}", "dns": f"127.0.0.1:{DNS_PORT}"}
    return redirected | ({"socks": settings.socks} if settings.socks else {})
