"""Control the containers of a proxy for `mplab proxy`, and check the engine and the machine on which it runs."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError, ImageNotFound

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.byhand import Check, ServiceState
from mplab.drivers.proxy.docker.compose import compose_command
from mplab.drivers.proxy.docker.engine import connected
from mplab.drivers.proxy.docker.stack import ALLOWED, DockerStack, not_allowed
from mplab.drivers.proxy.docker.takeover import exclusive, forget

_FREE_MB = 1000
_CLOCK_S = 2.0
_DAY_S = 86_400.0


def examine(stack: DockerStack) -> list[Check]:
    """Check a Docker engine and the containers of `stack` on it; return one result for each check.

    If the engine cannot be used, the only result is that error.
    """
    try:
        with connected(stack.url) as client:
            return [_compose(), *_engine(client), *_images(client, stack), *_kernel(client, stack), *_services(stack)]
    except LabNotReadyError as error:
        return [Check("engine", False, str(error))]


def _compose() -> Check:
    try:
        return Check("compose", True, " ".join(compose_command()))
    except LabNotReadyError as error:
        return Check("compose", False, str(error))


def _engine(client: DockerClient) -> Iterator[Check]:
    info = client.info()
    yield Check("engine", True, f"Docker {info['ServerVersion']}, {info['OperatingSystem']}, {info['Name']}")
    limits = bool(info.get("MemoryLimit"))
    yield Check("memory limits", limits, "enforced" if limits else "the kernel has no memory cgroup: add it")


def _images(client: DockerClient, stack: DockerStack) -> Iterator[Check]:
    image = stack.image("net")
    try:
        client.images.get(image)
    except ImageNotFound:
        yield Check("images", False, f"{image} is missing; 'mplab proxy prepare' builds it")
    else:
        yield Check("images", True, image)


_SCRIPT = """
echo "$(cat /proc/sys/net/mptcp/enabled 2>/dev/null || echo none)"
cat ALLOWED
date +%s.%N
df -Pm /mnt | tail -1
""".replace("ALLOWED", str(ALLOWED))


def _kernel(client: DockerClient, stack: DockerStack) -> Iterator[Check]:
    """Check kernel, clock and disk of the engine's host from a container.

    If the container's image is missing, it is not pulled. Then only the congestion control is checked, and only if the
    engine is on this machine.
    """
    before = time.time()
    try:
        client.images.get(stack.image("net"))
        answer = client.containers.run(
            stack.image("net"),
            ["bash", "-c", _SCRIPT],
            remove=True,
            network_mode="none",
            volumes=_content(client, stack.settings.project),
        )
    except ImageNotFound:
        yield Check("kernel", False, f"not checked: the image {stack.image('net')} is missing")
        if stack.url.startswith("unix://") and ALLOWED.exists():  # its kernel is this machine's
            yield _congestion_control(stack, ALLOWED.read_text())
        return
    except APIError as error:
        yield Check("kernel", False, f"not checked: {error}")
        return
    after = time.time()
    mptcp, allowed, clock, disk = answer.decode().splitlines()
    on = mptcp == "1"
    yield Check("MPTCP", on, "on" if on else "off: the server's kernel is older than 5.6, or net.mptcp.enabled is 0")
    yield _congestion_control(stack, allowed)
    off_s = max(before - float(clock), float(clock) - after, 0.0)
    hint = f"{off_s:.1f} s off this machine's: let both keep time by NTP"
    yield Check("clock", off_s <= _CLOCK_S, "as here" if off_s <= _CLOCK_S else hint)
    free_mb = int(disk.split()[3])
    hint = f"{free_mb} MB free: {_FREE_MB} MB are needed for captures and logs"
    yield Check("disk", free_mb >= _FREE_MB, f"{free_mb} MB free" if free_mb >= _FREE_MB else hint)


def _congestion_control(stack: DockerStack, allowed: str) -> Check:
    requested = stack.settings.congestion_control
    problem = not_allowed(requested, allowed.split())
    return Check("congestion control", not problem, problem or requested or "the system's")


def _content(client: DockerClient, project: str) -> dict[str, dict[str, str]]:
    """Return the volume ``content`` as Docker's option `volumes`, for a container that measures free space.

    The result is {} if the volume is missing: Docker would make a missing volume that is mounted.
    """
    name = f"{project}_content"
    exists = any(volume.name == name for volume in client.volumes.list(filters={"name": name}))
    return {name: {"bind": "/mnt", "mode": "ro"}} if exists else {}


def _services(stack: DockerStack) -> Iterator[Check]:
    states = stack.status()
    bad = [f"{state.service} ({state.health or state.state})" for state in states if not state.well]
    well = f"{len(states)} run and answer" if states else "none runs"
    yield Check("services", not bad, ", ".join(bad) or well)
    configuration = stack.last_rendered()
    if configuration is not None:
        days = (configuration.expires - time.time()) / _DAY_S
        hint = f"valid for {days:.0f} days"
        yield Check("certificates", days > 0, hint if days > 0 else "out of date: 'mplab proxy up' makes new ones")


class DockerByHand:
    """`ByHand` for the containers of a Docker stack."""

    def __init__(self, stack: DockerStack) -> None:
        self._stack = stack

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a lock on the containers as a context; see `ByHand.exclusive`."""
        return exclusive(self._stack)

    def prepare(self, *, renew: bool) -> Path:
        """Prepare images, configurations and content; return the folder of the configurations. See `ByHand`."""
        return self._stack.prepare(renew=renew).directory

    def up(self, *, renew: bool, build: bool) -> Sequence[ServiceState]:
        """Prepare and start the containers; return their states when all services answer. See `ByHand`."""
        states = self._stack.up(renew=renew, build=build)
        forget(self._stack)
        return states

    def down(self, *, volumes: bool) -> None:
        """Remove containers and networks; with `volumes`, also the volumes. Images are kept. See `ByHand`."""
        forget(self._stack)
        self._stack.down(volumes=volumes)

    def status(self) -> Sequence[ServiceState]:
        """Return the state of each container. See `ByHand`."""
        return self._stack.status()

    def logs(self, service: str, *, lines: int) -> Iterable[tuple[str, str]]:
        """Return pairs (service, line) from the containers' logs. See `ByHand`."""
        return self._stack.logs(service, lines=lines)

    def examine(self) -> Sequence[Check]:
        """Check the engine and the containers; return one result for each check. See `ByHand`."""
        return examine(self._stack)
