"""Control the containers of a proxy for `mplab proxy`."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from mplab.drivers.proxy.byhand import Check, ServiceState
from mplab.drivers.proxy.docker.borrow import exclusive, forget
from mplab.drivers.proxy.docker.doctor import examine
from mplab.drivers.proxy.docker.stack import DockerStack


class DockerByHand:
    """`ByHand` for a Docker stack."""

    def __init__(self, stack: DockerStack) -> None:
        self._stack = stack

    def exclusive(self) -> AbstractContextManager[None]:
        """See `ByHand`."""
        return exclusive(self._stack)

    def prepare(self, *, renew: bool) -> Path:
        """See `ByHand`."""
        return self._stack.prepare(renew=renew).directory

    def up(self, *, renew: bool, build: bool) -> Sequence[ServiceState]:
        """See `ByHand`."""
        states = self._stack.up(renew=renew, build=build)
        forget(self._stack)
        return states

    def down(self, *, volumes: bool) -> None:
        """See `ByHand`: removes containers and networks, with `volumes` also volumes; images stay."""
        forget(self._stack)
        self._stack.down(volumes=volumes)

    def status(self) -> Sequence[ServiceState]:
        """See `ByHand`."""
        return self._stack.status()

    def logs(self, service: str, *, lines: int) -> Iterable[tuple[str, str]]:
        """See `ByHand`."""
        return self._stack.logs(service, lines=lines)

    def examine(self) -> Sequence[Check]:
        """See `ByHand`."""
        return examine(self._stack)
