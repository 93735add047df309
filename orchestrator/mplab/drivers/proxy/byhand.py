"""A proxy as `mplab proxy` controls it, outside of runs: `ProxyDriver.by_hand` returns one."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Chosen:
    """Options of `mplab proxy` that go before the lab file.

    Attributes:
        engine: where its services run; "": as the lab file says.
        parts: what is started, of `ProxyDriver.parts`; none: as the lab file says.
    """

    engine: str = ""
    parts: Sequence[str] = ()


@dataclass(frozen=True)
class ServiceState:
    """How one container is.

    Attributes:
        service: its name in the compose file.
        id: of the container.
        state: ``running``, ``exited``, …
        health: ``healthy``, ``starting``, ``unhealthy``, or "" when nobody asks it.
        image: digest of its image.
        restarts: how often it had to be started again.
        out_of_memory: whether its memory was not enough.
        ports: where it listens on the engine's host.
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
        """Runs, and answers when asked."""
        return self.state == "running" and self.health in {"healthy", ""}


@dataclass(frozen=True)
class Check:
    """One thing that was checked on a server.

    Attributes:
        what: was checked.
        ok: whether it is as needed.
        found: what was found, and what to do about it.
    """

    what: str
    ok: bool
    found: str


class ByHand(Protocol):
    """A proxy with its origin and services. Every method may raise LabNotReadyError."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep runs and other verbs from changing it meanwhile."""

    def prepare(self, *, renew: bool) -> Path:
        """Prepare it without starting it; return the folder with secrets and the certificate for phones.

        Args:
            renew: make new secrets, passwords and certificates.
        """

    def up(self, *, renew: bool, build: bool) -> Sequence[ServiceState]:
        """Prepare and start it; return when every service answers.

        Args:
            renew: see `prepare`.
            build: build what is not up to date.
        """

    def down(self, *, volumes: bool) -> None:
        """Stop it; with `volumes`, also delete what it has stored."""

    def status(self) -> Sequence[ServiceState]:
        """Return the state of every service."""

    def logs(self, service: str, *, lines: int) -> Iterable[tuple[str, str]]:
        """Return the last lines of each service, or of one, with the service's name."""

    def examine(self) -> Sequence[Check]:
        """Check what it needs."""
