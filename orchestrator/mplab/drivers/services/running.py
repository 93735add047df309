"""Prepare, start, check and stop the services of a lab."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mplab.base.errors import DeviceError, LabNotReadyError, check_each, last_words
from mplab.base.installed import LOCAL, Installed
from mplab.base.machine import MachineProcess
from mplab.base.places import cache_folder
from mplab.drivers.origin.certificates import Authority, LabAuthority
from mplab.drivers.services.protocol import Service, ServiceContext, ServiceHost

CACHE_DIR = cache_folder("services")
"""Folder for generated content that is kept between labs."""

_READY_TIMEOUT_S = 15.0
_POLL_S = 0.05


@dataclass(frozen=True)
class LogMark:
    """Sizes of log files at one time; `keep` copies the bytes that were appended to the files after this time.

    Attributes:
        sizes: log file → its size, bytes.
    """

    sizes: Mapping[Path, int]

    @classmethod
    def of(cls, logs: Iterable[Path]) -> "LogMark":
        """Return a mark with the current sizes of `logs`."""
        return cls({log: log.stat().st_size if log.exists() else 0 for log in logs})

    def keep(self, directory: Path) -> None:
        """Copy, for each log, the bytes after the recorded size to a file of the same name in `directory`."""
        directory.mkdir(exist_ok=True)
        for log, size in self.sizes.items():
            with suppress(FileNotFoundError), log.open("rb") as source:
                source.seek(size)
                (directory / log.name).write_bytes(source.read())


@dataclass
class _Entry:
    service: Service
    context: ServiceContext
    running: dict[str, tuple[MachineProcess, Path]] = field(default_factory=dict)


class RunningServices:
    """Services behind the proxy of one lab: prepares, starts, checks and stops them.

    Args:
        services: services to run.
        directory: private folder of this lab.
        host: machine where the services run.
        cache: folder for content that is kept between labs.
        installed: translates paths and programs of this computer into those of `host`.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        directory: Path,
        host: ServiceHost,
        cache: Path = CACHE_DIR,
        installed: Installed = LOCAL,
    ) -> None:
        self._services = tuple(services)
        self._directory = directory
        self._host = host
        self._cache = cache
        self._installed = installed
        self._entries: dict[str, _Entry] = {}

    @property
    def records(self) -> list[tuple[str, str]]:
        """Pairs (host name, address) of all services, for the lab's name server."""
        return [pair for service in self._services for pair in service.hosts.items()]

    @property
    def ports(self) -> list[int]:
        """TCP ports of all services that phones must reach, in addition to 80 and 443."""
        return sorted({port for service in self._services for port in service.ports})

    def delay_by_prefix(self) -> dict[str, float]:
        """Map each service's network to the one-way delay between proxy and service, ms, for the link emulator."""
        return {service.network: service.rtt_ms / 2 for service in self._services}

    def prepare(self, authority: LabAuthority) -> None:
        """Write configurations, certificates and content of all services.

        Args:
            authority: the lab's certificate authority.

        Raises:
            LabNotReadyError: a program or file that a service needs is not installed.
        """
        for service in self._services:
            for program in service.programs:
                self._installed.program(program)
            context = self._context(service, authority)
            context.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            context.cache.mkdir(parents=True, exist_ok=True)
            service.prepare(context)
            self._entries[service.name] = _Entry(service, context)

    def adopt(self, authority: Authority) -> None:
        """Use services that another process has prepared and started; call it instead of `prepare` and `start`.

        Args:
            authority: certificate authority that issued the services' certificates.

        Raises:
            DeviceError: a service does not answer within 15 s.
        """
        self._entries = {service.name: _Entry(service, self._context(service, authority)) for service in self._services}
        self._wait_until_ready(list(self._entries))

    def _context(self, service: Service, authority: Authority) -> ServiceContext:
        folders = self._directory / service.name, self._cache / service.name
        return ServiceContext(*folders, authority, self._host, self._installed)

    def nginx(self) -> str:
        """Return the ``server`` blocks of all services for the origin's nginx. Call it after `prepare`."""
        return "\n".join(entry.service.nginx(entry.context) for entry in self._entries.values())

    def commands(self) -> dict[str, list[str]]:
        """Return the command of each program of all services, by name. Call it after `prepare`."""
        return {
            program: list(argv)
            for entry in self._entries.values()
            for program, argv in entry.service.commands(entry.context).items()
        }

    def start(self, logs: Path) -> None:
        """Start all services and wait until each answers.

        Raises:
            DeviceError: a program has ended, or a service does not answer within 15 s.
        """
        for entry in self._entries.values():
            for name, argv in entry.service.commands(entry.context).items():
                log = logs / f"{name}.log"
                entry.running[name] = (self._host.spawn(argv, log=log), log)
        self._wait_until_ready(list(self._entries))

    def revive(self) -> list[str]:
        """Start programs again that have ended unexpectedly, and wait until their services answer.

        Returns:
            One sentence for each program that was started again.

        Raises:
            DeviceError: a program ends again, or a service does not answer within 15 s.
        """
        started, names = [], []
        for name, entry in self._entries.items():
            for program, (process, log) in entry.running.items():
                if process.poll() is not None:
                    process.stop()
                    argv = entry.service.commands(entry.context)[program]
                    entry.running[program] = (self._host.spawn(argv, log=log), log)
                    started.append(f"{name}: {program} had ended and was started again")
                    names.append(name)
        self._wait_until_ready(names)
        return started

    def _wait_until_ready(self, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for name in names:
            while True:
                try:
                    self.check([name])
                    break
                except DeviceError:
                    self._check_alive(name)
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_POLL_S)

    def check_alive(self) -> None:
        """Raise DeviceError when programs of services have ended; the message names all of these programs."""
        check_each(partial(self._check_alive, name) for name in self._entries)

    def check(self, names: Sequence[str]) -> None:
        """Check that the services `names` of this lab run and answer correctly.

        Raises:
            DeviceError: a service does not answer correctly.
            LabNotReadyError: a service is not part of this lab.
        """
        for name in names:
            entry = self._entry(name)
            self._check_alive(name)
            entry.service.check(entry.context)

    def facts(self, name: str) -> Mapping[str, str]:
        """Return a service's data for scenarios (`Service.facts`).

        Raises:
            LabNotReadyError: the service `name` is not part of this lab.
        """
        entry = self._entry(name)
        return entry.service.facts(entry.context)

    def mark(self, names: Sequence[str]) -> "LogMark":
        """Record the current log sizes of the services `names`; see `LogMark.keep`."""
        return LogMark.of(log for name in names for _, log in self._entry(name).running.values())

    def stop(self) -> None:
        """Stop the programs of all services in reverse order of their start."""
        for entry in reversed(self._entries.values()):
            while entry.running:
                _, (process, _) = entry.running.popitem()
                process.stop()

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise LabNotReadyError(f"the service {name} is not part of this lab")
        return self._entries[name]

    def _check_alive(self, name: str) -> None:
        def check(program: str, process: MachineProcess, log: Path) -> None:
            if (code := process.poll()) is not None:
                raise DeviceError(name, f"{program} has ended ({code})", stderr=last_words(log))

        check_each(partial(check, program, *running) for program, running in self._entries[name].running.items())
