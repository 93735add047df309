"""Prepare and start a lab's containers outside of its namespaces, before the lab starts, and pass them into the lab."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self, cast

from docker.models.containers import Container

from mplab.base.enter import Inherited
from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.engine import connected
from mplab.drivers.proxy.docker.settings import LOCAL_ENGINE, PROFILES, DockerProxyFile
from mplab.drivers.proxy.docker.stack import DockerStack, StackFacts, StackSettings
from mplab.drivers.proxy.docker.takeover import exclusive, taken_over
from mplab.drivers.proxy.docker.watch import ContainerWatch
from mplab.drivers.proxy.driver import HostSettings

VARIABLE = "MPLAB_CONTAINERS"
"""Environment variable that carries a `HostedStack` into the lab, as JSON."""

HOLDERS = {"proxy": "proxy-net", "origin": "origin-net"}
"""Node of the lab → compose service whose container's network namespace replaces that of the node."""


@dataclass(frozen=True)
class HostedStack:
    """The running containers of a proxy, described for the process inside the lab (`HostedResources`).

    Attributes:
        url: URL of the engine, valid inside the lab.
        project: name of the compose project.
        directory: folder of configurations and secrets of the containers.
        holder: id of the container that holds the proxy's network namespace.
        images: ``net``, ``capture`` → name and tag of the image that cells use: ``mplab/net:latest``.
        facts: engine version, image ids and hash of the configurations (`DockerStack.describe`).
        socket: file descriptor of the engine's socket, if `url` refers to it; -1: none.
        networks: node → file descriptor of the network namespace for the node; see `Servers.networks`.
    """

    url: str
    project: str
    directory: str
    holder: str
    images: Mapping[str, str]
    facts: StackFacts
    socket: int = -1
    networks: Mapping[str, int] = field(default_factory=dict)

    def changed_since(self, prepared: Mapping[str, object]) -> str:
        """Return a phrase that names mplab's images whose ids differ from those in `prepared`; "" if none differ."""
        before, now = cast("StackFacts", prepared["containers"])["images"], self.facts["images"]
        changed = sorted(name for name, image in before.items() if now.get(name) != image)
        return f"the images {', '.join(changed)}" if changed else ""

    def inherited(self) -> Inherited:
        """Return the environment variable and the file descriptors by which the lab's process gets this object."""
        descriptors = tuple(number for number in (self.socket, *self.networks.values()) if number >= 0)
        return Inherited({VARIABLE: json.dumps(asdict(self))}, descriptors)

    @classmethod
    def received(cls) -> Self:
        """Return the stack that the host process passed to this process. Raises LabNotReadyError if there is none."""
        text = os.environ.get(VARIABLE)
        if text is None:
            raise LabNotReadyError("the lab has no running containers: they must be started before it, outside of it")
        return cls(**json.loads(text))


_ALWAYS = ("proxy", "origin", "dns")
_PROBE = "probe"
_SIDECARS = frozenset({"capture"})
"""Profiles that are built but not started with the stack: each cell starts its own side-car containers."""


def prepared(settings: DockerProxyFile, host: HostSettings) -> dict[str, object]:
    """Prepare the containers; return their description under the key ``containers``. See `ProxyDriver.prepare`."""
    stack = _stack(settings, host)
    with exclusive(stack):
        return {"containers": stack.describe(stack.prepare(further=sorted(_SIDECARS)))}


@contextmanager
def hosted(settings: DockerProxyFile, host: HostSettings, run_id: str) -> Iterator[HostedStack]:
    """Run the containers during the context, and yield their description for the lab. See `ProxyDriver.host`."""
    stack = _stack(settings, host)
    with exclusive(stack, run_id=run_id), taken_over(stack), ExitStack() as opened:
        yield _hand_over(stack, opened, wired=host.wired)


def _stack(settings: DockerProxyFile, host: HostSettings) -> DockerStack:
    profiles = profiles_of(settings, host.services, probed=not host.wired)
    stack = DockerStack(StackSettings.of(settings, profiles=profiles, congestion_control=host.congestion_control))
    if host.wired:
        _check_wires(stack)
    return stack


def _check_wires(stack: DockerStack) -> None:
    """Raise LabNotReadyError when no veth pair can connect the virtual phone's lab to the containers."""
    if os.geteuid() != 0:
        raise LabNotReadyError("only root can wire a virtual phone to containers. Run as root, or without --lab")
    if not stack.url.startswith(LOCAL_ENGINE):  # from DOCKER_HOST; a lab file with such a URL is refused earlier
        raise LabNotReadyError(
            f"engine {stack.url}: a virtual phone needs containers of this machine's engine: unix:///…"
        )


def profiles_of(proxy: DockerProxyFile, services: Sequence[str], *, probed: bool = False) -> tuple[str, ...]:
    """Return the compose profiles that a run starts, in the order of the compose file.

    Args:
        proxy: entry of the proxy in the lab file.
        services: services of the origin that the run uses.
        probed: also start the server that answers link probes; needed when the phone uses real networks.
    """
    wanted = {*_ALWAYS, *proxy.profiles, *(name for name in services if name in PROFILES)} - _SIDECARS
    wanted |= {_PROBE} if probed else set()
    return tuple(name for name in PROFILES if name in wanted)


def _hand_over(stack: DockerStack, opened: ExitStack, *, wired: bool) -> HostedStack:
    """Return the description of the running containers, for the process inside the lab.

    Args:
        stack: the running containers.
        opened: exit stack that closes the file descriptors opened for the lab.
        wired: True if the lab runs in namespaces, and veth pairs connect it to the namespaces of containers.

    Raises:
        LabNotReadyError: the configurations of the containers are gone.
    """
    url, networks, socket = stack.url, {}, -1
    with connected(stack.url) as client:
        containers = ContainerWatch(client, stack.settings.project).containers()
        for node, service in HOLDERS.items() if wired else ():
            networks[node] = open_network(containers[service], service)
            opened.callback(os.close, networks[node])
        holder = str(containers[HOLDERS["proxy"]].id)
    if wired:
        # A lab has its own /run; this descriptor is its only access to the engine's socket.
        socket = os.open(stack.url.removeprefix(LOCAL_ENGINE), os.O_PATH | os.O_CLOEXEC)
        opened.callback(os.close, socket)
        url = f"unix:///proc/self/fd/{socket}"
    configuration = stack.last_rendered()
    if configuration is None:
        raise LabNotReadyError(f"{stack.directory}: the containers' configurations are gone")
    return HostedStack(
        url,
        stack.settings.project,
        str(stack.directory),
        holder,
        {name: stack.image(name) for name in ("net", "capture")},
        stack.describe(configuration),
        socket,
        networks,
    )


_PROC = Path("/proc")


def open_network(container: Container, service: str) -> int:
    """Return a file descriptor of a container's network namespace.

    A process of the container is found by its control group, because the process ids that the engine reports are wrong
    when the engine runs in its own PID namespace.

    Args:
        container: a running container.
        service: name of the container in messages.

    Raises:
        LabNotReadyError: this machine sees no process of the container.
    """
    for process in _PROC.iterdir():
        if process.name.isdigit():
            # The process has just ended, or belongs to another user.
            with suppress(OSError):
                if str(container.id) in (process / "cgroup").read_text():
                    return os.open(process / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
    raise LabNotReadyError(
        f"no process of the container of {service} is on this machine: the engine is on another one, or hidden. A "
        "virtual phone needs an engine on this machine"
    )
