"""Prepare, start, check and stop the origin's servers: nginx, dnsmasq and a UDP echo server."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from mplab.base.browser.chromium import nss_database
from mplab.base.errors import DeviceError, check_each, last_words
from mplab.base.installed import LOCAL, Installed
from mplab.base.machine import MachineProcess
from mplab.base.places import cache_folder
from mplab.base.programs import DNSMASQ, MPFLEX, NGINX
from mplab.drivers.origin import OriginHost
from mplab.drivers.origin.cache import build_files, build_sites
from mplab.drivers.origin.certificates import VALID_FOR, LabAuthority
from mplab.drivers.origin.config import ACCESS_LOG, ERROR_LOG, dnsmasq_conf, nginx_argv, nginx_conf
from mplab.format.sites import ECHO_ADDRESS, ECHO_PORT, VARIANTS, SiteIndex, delay_by_prefix

CACHE_DIR = cache_folder("origin")
"""Folder in which generated sites and files are kept between runs."""

_READY_TIMEOUT_S = 10.0
_POLL_S = 0.02
_LISTEN_STATE = "0A"
_UNCONNECTED_STATE = "07"


class Additions(Protocol):
    """Host names and nginx ``server`` blocks of services, which the origin's servers serve in addition to its sites."""

    @property
    def records(self) -> list[tuple[str, str]]:
        """Pairs (host name, address) of the services, for the name server."""

    def prepare(self, authority: LabAuthority) -> None:
        """Make the certificates and files to which the additional ``server`` blocks refer."""

    def nginx(self) -> str:
        """Return the additional ``server`` blocks of nginx.conf."""


class Origin:
    """The origin's servers: nginx with sites and files, dnsmasq with the lab's names, and a UDP echo server.

    Args:
        directory: private folder of this lab: configurations, certificates, logs, pid files.
        cache: folder in which generated content is kept between labs.
        additions: additional host names and servers, or None.
        installed: translates paths and programs of this machine into those of the host that runs the servers.
        valid_for: validity of the certificates.
        upstream: address of the server that resolves names outside of the lab; "": these names do not exist.
    """

    def __init__(
        self,
        directory: Path,
        *,
        cache: Path = CACHE_DIR,
        additions: Additions | None = None,
        installed: Installed = LOCAL,
        valid_for: timedelta = VALID_FOR,
        upstream: str = "",
    ) -> None:
        self.directory = directory
        self._cache = cache
        self._additions = additions
        self._installed = installed
        self._valid_for = valid_for
        self._upstream = upstream
        self._host: OriginHost
        self._logs: Path
        self._running: dict[str, tuple[MachineProcess, Path]] = {}
        self._authority: LabAuthority | None = None
        self._index: SiteIndex | None = None

    @property
    def index(self) -> SiteIndex:
        """Index of the generated sites. Raises RuntimeError before `prepare`."""
        if self._index is None:
            raise RuntimeError("origin: call prepare() first")
        return self._index

    @property
    def authority(self) -> LabAuthority:
        """The lab's certificate authority. Raises RuntimeError before `prepare`."""
        if self._authority is None:
            raise RuntimeError("origin: call prepare() first")
        return self._authority

    @property
    def ca_pem(self) -> Path:
        """Certificate file of the lab's authority. Raises RuntimeError before `prepare`."""
        return self.authority.ca_pem

    @property
    def access_log(self) -> Path:
        """Access log of nginx: one JSON object per request, written when the request has ended."""
        return self.directory / ACCESS_LOG

    @property
    def logs(self) -> list[Path]:
        """Paths of nginx's access log and error log."""
        return [self.access_log, self.directory / ERROR_LOG]

    def prepare(self) -> None:
        """Generate missing sites and files; write the servers' certificates and configurations."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._index = build_sites(self._cache)
        files = build_files(self._cache)
        self._authority = LabAuthority(self.directory / "certificates", valid_for=self._valid_for)
        wildcards: dict[str, list[str]] = defaultdict(list)
        for site in self._index:
            for variant in VARIANTS:
                wildcards[variant.certificate(site.slug)].append(variant.host_name("*", site.slug))
        certificates = {name: self._authority.issue(name, names) for name, names in wildcards.items()}
        servers, further = "", []
        if self._additions is not None:
            self._additions.prepare(self._authority)
            servers, further = self._additions.nginx(), self._additions.records
        nginx = nginx_conf(
            prefix=self.directory,
            index=self._index,
            files=files,
            certificates=certificates,
            version=self._installed.version(NGINX),
            servers=servers,
            installed=self._installed,
        )
        (self.directory / "nginx.conf").write_text(nginx)
        (self.directory / "dnsmasq.conf").write_text(dnsmasq_conf(self._index, further, self._upstream))

    def commands(self) -> dict[str, list[str]]:
        """Map each server's name to the command that runs it in the foreground."""
        where = self._installed
        return {
            "nginx": nginx_argv(where.program(NGINX), self.directory, where.version(NGINX), installed=where),
            # Not --no-daemon: with it, one open TCP connection blocks all other requests.
            "dnsmasq": [
                *(where.program(DNSMASQ), "--keep-in-foreground", "--log-facility=-", "--pid-file="),
                f"--conf-file={where.path(self.directory / 'dnsmasq.conf')}",
            ],
            "udp-echo": [where.program(MPFLEX), "udp-echo", "--listen", f"{ECHO_ADDRESS}:{ECHO_PORT}"],
        }

    def checks(self) -> dict[str, list[str]]:
        """Map the names of nginx and dnsmasq to the commands that check their configurations and exit."""
        commands = self.commands()
        return {
            "nginx": [*commands["nginx"], "-t"],
            "dnsmasq": [commands["dnsmasq"][0], "--test", commands["dnsmasq"][-1]],
        }

    def start(self, host: OriginHost, logs: Path) -> None:
        """Start all servers and wait until they listen.

        Raises:
            DeviceError: a server ended, or was not ready within 10 s.
        """
        self._host, self._logs = host, logs
        self._start(list(self.commands()))

    def revive(self) -> list[str]:
        """Start those servers again that have ended unexpectedly; return one sentence for each of them.

        Raises:
            DeviceError: a server ended again, or was not ready within 10 s.
        """
        ended = [name for name, (process, _) in self._running.items() if process.poll() is not None]
        for name in ended:
            self._running[name][0].stop()
        self._start(ended)
        return [f"origin: {name} had ended and was started again" for name in ended]

    def _start(self, names: Sequence[str]) -> None:
        ready: dict[str, Callable[[int], bool]] = {
            "nginx": _nginx_listens,
            "dnsmasq": _dnsmasq_listens,
            "udp-echo": _echo_listens,
        }
        commands = self.commands()
        for name in names:
            log = self._logs / f"{name}.log"
            self._running[name] = (self._host.spawn(commands[name], log=log), log)
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for name in names:
            while not ready[name](self._running[name][0].pid):
                self.check_alive()
                if time.monotonic() > deadline:
                    raise DeviceError("origin", f"{name} does not listen after {_READY_TIMEOUT_S:g} s")
                time.sleep(_POLL_S)

    def check_alive(self) -> None:
        """Raise DeviceError when servers have ended; the message names all of them."""
        check_each(partial(_check_running, name, *running) for name, running in self._running.items())

    def stop(self) -> None:
        """Stop all servers."""
        while self._running:
            _, (process, _) = self._running.popitem()
            process.stop()

    def delay_by_prefix(self) -> dict[str, float]:
        """Map address prefix → one-way delay between proxy and servers, ms, for the link emulator."""
        return delay_by_prefix()

    def make_home(self, directory: Path) -> Path:
        """Make `directory` a home folder in which browsers trust the lab's authority; return it. Call `prepare` before.

        Raises:
            LabNotReadyError: certutil is missing or failed.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        nss_database(directory / ".pki" / "nssdb", self.ca_pem)
        return directory


def _check_running(name: str, process: MachineProcess, log: Path) -> None:
    if (code := process.poll()) is not None:
        raise DeviceError("origin", f"{name} has ended ({code})", stderr=last_words(log))


def _nginx_listens(pid: int) -> bool:
    return _has_socket(pid, "tcp", 443, _LISTEN_STATE)


def _dnsmasq_listens(pid: int) -> bool:
    return _has_socket(pid, "udp", 53, _UNCONNECTED_STATE)


def _echo_listens(pid: int) -> bool:
    return _has_socket(pid, "udp", ECHO_PORT, _UNCONNECTED_STATE)


def _has_socket(pid: int, kind: str, port: int, state: str) -> bool:
    """Return True when a socket with this port and state exists in the network namespace of the process `pid`.

    Args:
        pid: id of the process.
        kind: ``tcp`` or ``udp``.
        port: local port.
        state: state of the socket as ``/proc/net`` prints it: ``0A``.
    """
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}") and fields[3] == state:
                return True
    return False
