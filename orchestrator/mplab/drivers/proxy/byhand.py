"""Define `ByHand`, the object by which `mplab proxy` controls a proxy outside of runs; see `ProxyDriver.by_hand`."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Chosen:
    """Command line options of `mplab proxy` that override the lab file.

    Attributes:
        engine: address of the container engine; "": from the lab file.
        parts: parts to start, from `ProxyDriver.parts`; empty: from the lab file.
    """

    engine: str = ""
    parts: Sequence[str] = ()


@dataclass(frozen=True)
class ServiceState:
    """State of one container.

    Attributes:
        service: name in the compose file.
        id: id of the container.
        state: ``running``, ``exited``, …
        health: ``healthy``, ``starting``, ``unhealthy``, or "" without a health check.
        image: digest of the image.
        restarts: number of restarts.
        out_of_memory: True when the container ran out of memory.
        ports: published ports on the engine's host.
    """

    service: str
    id: str
    state: str
    health: str
    image: str
    restarts: int
    out_of_memory: bool
    ports: tuple[str, ...]

    @property
    def well(self) -> bool:
        """True when the service runs and passes its health check, if it has one."""
        return self.state == "running" and self.health in {"healthy", ""}


@dataclass(frozen=True)
class Check:
    """Result of one check on a server.

    Attributes:
        what: subject of the check.
        ok: the check passed.
        found: result, and advice if it failed.
    """

    what: str
    ok: bool
    found: str


class ByHand(Protocol):
    """A proxy with its origin and services, as `mplab proxy` controls it. Every method can raise LabNotReadyError."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a lock as a context: while it is held, runs and other `mplab` commands cannot change the proxy."""

    def prepare(self, *, renew: bool) -> Path:
        """Prepare the proxy without starting it; return the folder with secrets and the certificate for phones.

        Args:
            renew: make new secrets, passwords and certificates.
        """

    def up(self, *, renew: bool, build: bool) -> Sequence[ServiceState]:
        """Prepare and start the proxy. When every service answers, return the states of all services.

        Args:
            renew: see `prepare`.
            build: build images that are not up to date.
        """

    def down(self, *, volumes: bool) -> None:
        """Stop the proxy; with `volumes`, also delete its stored data."""

    def status(self) -> Sequence[ServiceState]:
        """Return the state of every service."""

    def logs(self, service: str, *, lines: int) -> Iterable[tuple[str, str]]:
        """Return pairs (service, line): the last `lines` lines of one service or, for "", of each service."""

    def examine(self) -> Sequence[Check]:
        """Check everything that the proxy needs, and its running services; return one result for each check."""
