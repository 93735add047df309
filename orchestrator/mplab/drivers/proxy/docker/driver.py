"""Driver of proxies in containers of a Docker engine, on this machine or another one."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.base.findings import Finding
from mplab.drivers.proxy.byhand import Chosen
from mplab.drivers.proxy.docker.settings import PROFILES, DockerProxyFile
from mplab.drivers.proxy.driver import HostedResources, HostSettings, ProxyDriver, Say, ServerSettings

if TYPE_CHECKING:
    from mplab.drivers.proxy.byhand import ByHand
    from mplab.drivers.proxy.protocol import Servers


class DockerDriver(ProxyDriver[DockerProxyFile]):
    """Driver of proxies in containers (`ContainerServers`).

    Docker's client is slow to import, so methods import it only when they use it.
    """

    name = "docker"
    settings = DockerProxyFile
    preparing = "containers: images, configurations and content"
    parts = PROFILES

    def open(self, settings: DockerProxyFile, lab: ServerSettings) -> "Servers":
        """Return the lab's servers, which run in the containers that `host` has started. See `ProxyDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.servers import open_servers
        return open_servers(settings, lab)

    def resources(self, settings: DockerProxyFile) -> Iterator[str]:
        """Yield the name of the lock on the compose project at its engine. See `ProxyDriver`."""
        yield settings.resource

    def uses(self, settings: DockerProxyFile) -> str:
        """Return a phrase that names the Docker engine. See `ProxyDriver`."""
        return f"starts containers with the Docker engine {settings.engine or 'of this host, or of $DOCKER_HOST'}"

    def check(self, settings: DockerProxyFile, lab_file: str) -> Iterator[Finding]:
        """Yield the results of `mplab proxy doctor` as findings for `mplab doctor`. See `ProxyDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.byhand import examine
            from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
        for finding in examine(DockerStack(StackSettings.of(settings))):
            remedy = "" if finding.ok else f"mplab proxy doctor --lab {lab_file}"
            yield Finding(f"proxy: {finding.what}", "ok" if finding.ok else "missing", finding.found, remedy)

    def by_hand(
        self, settings: DockerProxyFile | None, chosen: Chosen, *, say: Say, detail: Say | None = None
    ) -> "ByHand":
        """Return the object by which `mplab proxy` controls the containers. See `ProxyDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.byhand import DockerByHand
            from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
        file = settings or DockerProxyFile.model_validate({})
        stack = StackSettings.of(file, engine=chosen.engine, profiles=chosen.parts)
        return DockerByHand(DockerStack(stack, say=say, detail=detail) if detail else DockerStack(stack, say=say))

    def prepare(self, settings: DockerProxyFile, host: HostSettings) -> dict[str, object]:
        """Prepare images, configurations and content in the engine. See `ProxyDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.hosting import prepared
        return prepared(settings, host)

    def host(
        self, settings: DockerProxyFile, host: HostSettings, run_id: str
    ) -> AbstractContextManager[HostedResources | None]:
        """Return a context in which the containers run. See `ProxyDriver`."""
        with deferred("Docker's client is slow to import"):
            from mplab.drivers.proxy.docker.hosting import hosted
        return hosted(settings, host, run_id)


DRIVER = DockerDriver()
