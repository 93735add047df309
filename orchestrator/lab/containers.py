"""Proxy, origin and services of a lab as containers: their networks take the place of the nodes `proxy` and `origin`.

What runs inside a lab has no way to the engine but what it was handed over: open descriptors of the engine's socket
and of two network namespaces. Wires that end in these go with the lab, however it ends.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from docker.errors import DockerException
from requests.exceptions import RequestException

from orchestrator.endpoints import Endpoints
from orchestrator.errors import LabNotReadyError
from orchestrator.lab import topology
from orchestrator.lab.handover import HandedOver
from orchestrator.lab.nodes import Node
from orchestrator.origin.certificates import KnownAuthority, nss_database
from orchestrator.origin.config import ACCESS_LOG, ERROR_LOG
from orchestrator.origin.sites import delay_by_prefix
from orchestrator.proxy.docker.engine import connect
from orchestrator.proxy.docker.layout import InImages
from orchestrator.proxy.docker.proxy import DockerProxy
from orchestrator.proxy.docker.render import load_rendered
from orchestrator.proxy.docker.sidecar import Sidecar
from orchestrator.services import RunningServices, Service


class ContainerServers:
    """`Servers` as containers that are up.

    Args:
        services: what the origin has beside web sites and files.
        directory: private folder of the lab.
        logs: host folder for the logs of the containers.
        congestion_control: pinned on every socket of the proxy towards the phone.
        endpoints: where the proxy listens.
        given: the stack.
    """

    def __init__(
        self,
        *,
        services: Sequence[Service],
        directory: Path,
        logs: Path,
        congestion_control: str,
        endpoints: Endpoints,
        given: HandedOver,
    ) -> None:
        self._wanted = tuple(services)
        self._directory = directory
        self._logs = logs
        self._congestion_control = congestion_control
        self._endpoints = endpoints
        self._given = given
        self._url = f"unix:///proc/self/fd/{given.socket}"
        made = load_rendered(Path(given.directory))
        if made is None:
            raise LabNotReadyError(f"{given.directory}: the containers' configurations are gone")
        self._made = made
        self._stack = ExitStack()
        self.secret_file = made.secret_file

    @property
    def networks(self) -> Mapping[str, int]:
        """Those of the containers."""
        return self._given.networks

    def start(self, nodes: Mapping[str, Node]) -> None:
        """They run: see that they answer where the lab's nodes are."""
        client = connect(self._url)
        self._stack.callback(client.close)
        made = self._made
        self.services = RunningServices(
            self._wanted,
            directory=made.directory / "services",
            host=nodes["origin"],
            installed=InImages(made.directory),
        )
        self.services.adopt(KnownAuthority(made.ca_pem.parent))
        images = self._given.images
        sidecar = Sidecar(client, image=images["capture"], project=self._given.project, beside=self._given.holder)
        self.proxy = DockerProxy(
            client,
            project=self._given.project,
            image=images["net"],
            sidecar=sidecar,
            interface=topology.PROXY_LAN,
            congestion_control=self._congestion_control,
            ports=self.services.ports,
            plain=self._endpoints.mpflex_plain,
        )
        self._stack.callback(self.proxy.stop)
        self.proxy.check_clock()
        for service, stream, file in (("web", "stdout", ACCESS_LOG), ("web", "stderr", ERROR_LOG)):
            self._follow(service, stream, file)

    def _follow(self, service: str, stream: str, file: str) -> None:
        """Write what a container says from now on into a file of the lab, for as long as it."""
        container = self.proxy.watch.containers().get(service)
        if container is None:
            return
        path = self._logs / file
        path.touch()
        chosen = {"stdout": stream == "stdout", "stderr": stream == "stderr"}

        def run() -> None:
            with suppress(DockerException, RequestException, OSError), path.open("ab") as log:
                for chunk in container.logs(stream=True, follow=True, tail=0, **chosen):
                    log.write(chunk)
                    log.flush()

        Thread(target=run, daemon=True).start()

    def start_proxy(self) -> None:
        """With the configuration of cells."""
        self.proxy.start()

    def stop(self) -> None:
        """Whoever has brought the stack up takes it down; side-cars are this lab's own."""
        self._stack.close()

    def delay_by_prefix(self) -> dict[str, float]:
        """Of sites and services, the same as of processes."""
        return {**delay_by_prefix(), **self.services.delay_by_prefix()}

    def logs(self) -> list[Path]:
        """As the containers' logs are followed."""
        return [self._logs / ACCESS_LOG, self._logs / ERROR_LOG]

    @property
    def ca_pem(self) -> Path:
        """Of the authority whose certificates the containers have."""
        return self._made.ca_pem

    def make_home(self, directory: Path) -> Path:
        """By the authority whose certificates the containers have."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        nss_database(directory / ".pki" / "nssdb", self._made.ca_pem)
        return directory

    def describe(self) -> Mapping[str, Any]:
        """Engine, images and configurations."""
        return {"containers": self._given.facts}

    def check_alive(self) -> None:
        """No container has ended, and none has been started again."""
        self.proxy.check_alive()
