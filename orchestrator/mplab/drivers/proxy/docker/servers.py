"""Proxy, origin and services of a lab as containers.

The containers' network namespaces replace those of the lab's nodes `proxy` and `origin`.

A process inside a lab reaches the engine only through the file descriptors that it inherits: the engine's socket and
two network namespaces. When the lab ends, even by a crash, the kernel removes the veth pairs that connect the lab
to these namespaces.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

from docker.errors import DockerException
from requests.exceptions import RequestException

from mplab.base.browser.chromium import nss_database
from mplab.base.endpoints import PORTS
from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.nodes import Node
from mplab.drivers.origin.certificates import KnownAuthority
from mplab.drivers.origin.config import ACCESS_LOG, ERROR_LOG
from mplab.drivers.proxy.docker.engine import connect
from mplab.drivers.proxy.docker.hosting import HostedStack
from mplab.drivers.proxy.docker.layout import InImages
from mplab.drivers.proxy.docker.proxy import DockerProxy
from mplab.drivers.proxy.docker.render import Nowhere, load_rendered
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.drivers.proxy.docker.sidecar import Sidecar
from mplab.drivers.proxy.docker.stack import state_of
from mplab.drivers.proxy.docker.watch import ContainerWatch
from mplab.drivers.proxy.driver import ServerSettings
from mplab.drivers.services import RunningServices, Service
from mplab.format.sites import delay_by_prefix


def open_servers(settings: DockerProxyFile, lab: ServerSettings) -> "ContainerServers":
    """Return the servers of a lab, which already run as containers.

    Raises:
        LabNotReadyError: the host process has passed no running containers to this process.
    """
    kind = ContainerServers if lab.interface else FarServers
    return kind(settings, lab, HostedStack.received())


class ContainerServers:
    """`Servers` as running containers.

    Args:
        settings: entry of the proxy in the lab file.
        lab: settings that the lab passes to its servers.
        handed: the running containers, as the host process passed them to this process.

    Raises:
        LabNotReadyError: the containers' configurations are missing.
    """

    def __init__(self, settings: DockerProxyFile, lab: ServerSettings, handed: HostedStack) -> None:
        self._lab = lab
        self._internet = tuple(settings.internet.proxy_rules()) if settings.internet is not None else ()
        self._handed = handed
        rendered = load_rendered(Path(handed.directory))
        if rendered is None:
            raise LabNotReadyError(f"{handed.directory}: the containers' configurations are gone")
        self._rendered = rendered
        self._stack = ExitStack()
        self.secret_file = rendered.secret_file

    @property
    def networks(self) -> Mapping[str, int]:
        """Node (``proxy``, ``origin``) → file descriptor of the network namespace of its container."""
        return self._handed.networks

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Connect to the running containers, wait until the services answer, and start to copy the web server's log."""
        client = connect(self._handed.url)
        self._stack.callback(client.close)
        self.services = self._make_services(nodes, ContainerWatch(client, self._handed.project))
        self.services.adopt(KnownAuthority(self._rendered.ca_pem.parent))
        images = self._handed.images
        sidecar = Sidecar(client, image=images["capture"], project=self._handed.project, beside=self._handed.holder)
        self.proxy = DockerProxy(
            client,
            project=self._handed.project,
            image=images["net"],
            sidecar=sidecar,
            interface=self._lab.interface,
            congestion_control=self._lab.congestion_control,
            ports=self.services.ports,
            plain=self._plain(),
            internet=self._internet,
        )
        self._stack.callback(self.proxy.stop)
        self.proxy.check_clock()
        for service, stream, file in (("web", "stdout", ACCESS_LOG), ("web", "stderr", ERROR_LOG)):
            self._follow(service, stream, file)

    def _make_services(self, nodes: Mapping[str, Node], watch: ContainerWatch) -> RunningServices:
        """Return the lab's services; they run in containers already.

        Requests that check the services are sent from the node `origin`, which has the containers' network namespace.
        """
        return RunningServices(
            self._lab.services,
            directory=self._rendered.directory / "services",
            host=nodes["origin"],
            installed=InImages(self._rendered.directory),
        )

    def _plain(self) -> str:
        """Return the address with port at which the proxy accepts sessions without encryption."""
        return self._lab.endpoints.listener("mpflex_plain")

    def _follow(self, service: str, stream: str, file: str) -> None:
        """Start a thread that appends a container's output to a log file of the lab until the container ends."""
        container = self.proxy.watch.containers().get(service)
        if container is None:
            return
        path = self._lab.logs / file
        path.touch()
        chosen = {"stdout": stream == "stdout", "stderr": stream == "stderr"}

        def run() -> None:
            with suppress(DockerException, RequestException, OSError), path.open("ab") as log:
                for chunk in container.logs(stream=True, follow=True, tail=0, **chosen):
                    log.write(chunk)
                    log.flush()

        Thread(target=run, daemon=True).start()

    def start_proxy(self) -> None:
        """Start the proxy with the configuration for cells."""
        self.proxy.start()

    def stop(self) -> None:
        """Stop the proxy and remove the side-cars; the other containers run until `hosted` stops them."""
        self._stack.close()

    def delay_by_prefix(self) -> dict[str, float]:
        """Return address prefix of servers → one-way delay between the proxy and them, ms.

        The values are the same as for `ProcessServers`.
        """
        return {**delay_by_prefix(), **self.services.delay_by_prefix()}

    def logs(self) -> list[Path]:
        """Return the files to which the web server's logs are copied from its container."""
        return [self._lab.logs / ACCESS_LOG, self._lab.logs / ERROR_LOG]

    @property
    def ca_pem(self) -> Path:
        """Certificate of the authority that issued the containers' certificates."""
        return self._rendered.ca_pem

    def make_home(self, directory: Path) -> Path:
        """Make a home folder in which browsers trust the authority of the containers' certificates."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        nss_database(directory / ".pki" / "nssdb", self._rendered.ca_pem)
        return directory

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's sockets, read in the origin's container. See `Servers`."""
        return self.proxy.origin_congestion_control()

    def describe(self) -> Mapping[str, object]:
        """Return engine, images and configurations, for the manifest."""
        return {"containers": self._handed.facts}

    def check_alive(self) -> None:
        """Raise DeviceError when a container has ended, even if the engine has started it again."""
        self.proxy.check_alive()

    def revive(self) -> list[str]:
        """Restart containers that have ended since the start of the last cell; return one sentence for each.

        Raises:
            DeviceError: a container does not start, or its network namespace is lost.
        """
        watch = self.proxy.watch
        problems = watch.problems()
        watch.begin()
        return [f"{problem}, and was started again" for problem in problems]


class WatchedServices(RunningServices):
    """Services that run in containers and that this machine cannot reach over the network.

    The engine's health checks of the containers replace the requests by which `RunningServices` checks services.

    Args:
        services: services to watch.
        directory: folder in which the configurations of the containers were made.
        watch: lists the containers.
    """

    def __init__(self, services: Sequence[Service], *, directory: Path, watch: ContainerWatch) -> None:
        super().__init__(services, directory=directory / "services", host=Nowhere(), installed=InImages(directory))
        self._watch = watch

    def check(self, names: Sequence[str]) -> None:
        """Raise DeviceError when a container of the project does not run or fails its health check.

        If `names` is empty, nothing is checked; otherwise all containers are checked, not only those of `names`.
        """
        states = [state_of(name, container.attrs) for name, container in self._watch.containers().items()]
        if names and (bad := sorted(state.service for state in states if not state.well)):
            raise DeviceError("engine", f"{', '.join(bad)} does not answer: mplab proxy logs {bad[0]}")


class FarServers(ContainerServers):
    """`Servers` as containers that the phone reaches by published ports of the engine's host, on any machine."""

    def _make_services(self, nodes: Mapping[str, Node], watch: ContainerWatch) -> RunningServices:
        return WatchedServices(self._lab.services, directory=self._rendered.directory, watch=watch)

    def _plain(self) -> str:
        return f"0.0.0.0:{PORTS['mpflex_plain']}"

    def delay_by_prefix(self) -> dict[str, float]:
        """Return no delays: the real network between proxy and servers is not changed."""
        return {}
