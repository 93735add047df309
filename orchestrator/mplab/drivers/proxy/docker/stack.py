"""Prepare, start, inspect and stop the containers of a lab."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypedDict

from docker import DockerClient
from docker.errors import ImageNotFound, NotFound
from docker.models.containers import Container
from pydantic import TypeAdapter

from mplab.base.configs import write_private
from mplab.base.errors import LabNotReadyError
from mplab.base.files import state_directory
from mplab.base.programs import PROXY_DIR
from mplab.drivers.proxy.byhand import ServiceState
from mplab.drivers.proxy.docker.base import Say, ensure_base
from mplab.drivers.proxy.docker.compose import default_settings, one_for_each_image, profiles, run_compose
from mplab.drivers.proxy.docker.engine import connected
from mplab.drivers.proxy.docker.render import Rendered, RenderSettings, load_rendered, rendered
from mplab.drivers.proxy.docker.settings import DockerProxyFile, engine_url, resource_of
from mplab.drivers.proxy.docker.volumes import fill_volumes, volume_names
from mplab.drivers.proxy.docker.watch import PROJECT_LABEL, SERVICE_LABEL

DEFAULT_PROFILES = ("proxy", "origin", "dns")

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
"""File of the kernel with the congestion controls that processes without CAP_NET_ADMIN may use."""
IMAGES_DIR = PROXY_DIR / "images"
_READY_TIMEOUT_S = 120.0
_POLL_S = 0.25
_LOG_LINES = 5


@dataclass(frozen=True)
class StackSettings:
    """Settings of a stack: the containers of one compose project on one engine.

    Attributes:
        engine: URL of the engine; "": ``DOCKER_HOST`` or, if it is not set, the engine of this machine.
        project: name of the compose project.
        profiles: profiles to start.
        listen: up to two addresses of the server at which phones reach the proxy; (): loopback.
        signal: addresses that MPTCP advertises to phones.
        congestion_control: algorithm for the proxy's sockets towards phones; "": the system's default.
        internet: destinations outside of the lab that the proxy allows, ``NETWORK:PORTS``; (): none.
        upstream_names: also resolve names outside of the lab.
        variables: additional variables of the compose file.
    """

    engine: str = ""
    project: str = "mplab"
    profiles: tuple[str, ...] = DEFAULT_PROFILES
    listen: tuple[str, ...] = ()
    signal: tuple[str, ...] = ()
    congestion_control: str = "cubic"
    internet: tuple[str, ...] = ()
    upstream_names: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, file: DockerProxyFile, *, engine: str = "", profiles: Sequence[str] = (), congestion_control: str = ""
    ) -> Self:
        """Return the settings from `file`, the proxy entry of a lab file; non-empty arguments override its values."""
        requested = congestion_control or file.congestion_control
        started = dict.fromkeys((*(profiles or file.profiles), *(["names"] if file.upstream_names else [])))
        return cls(
            engine=engine or file.engine or "",
            project=file.project,
            profiles=tuple(started),
            listen=tuple(file.listen),
            signal=tuple(file.signal),
            congestion_control="" if requested == "system" else requested,
            internet=tuple(file.internet.proxy_rules()) if file.internet is not None else (),
            upstream_names=file.upstream_names,
        )

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the settings from `data`, which `asdict` and JSON have written. Raises ValueError for other data."""
        return TypeAdapter(cls).validate_python(data)

    def environment(self) -> dict[str, str]:
        """Return these settings as variables of the compose file; they take precedence over ``.env``."""
        variables = {"COMPOSE_PROJECT_NAME": self.project, **self.variables}
        variables |= {f"MPLAB_LISTEN_{number}": address for number, address in enumerate(self.listen, 1)}
        if self.signal:
            variables["MPLAB_MPTCP_SIGNAL"] = " ".join(self.signal)
        return variables


class StackFacts(TypedDict):
    """Description of a stack: the value of ``containers`` in the manifest.

    `images` maps name → id of the image; `configuration` is `Rendered.digest`.
    """

    engine: str
    kernel: str
    project: str
    profiles: list[str]
    images: dict[str, str]
    configuration: str


def _silent(_line: str) -> None:
    pass


class DockerStack:
    """The containers of proxy and origin services on one engine.

    Args:
        settings: settings of the stack.
        say: receives one line for each step.
        detail: receives the output of Compose.
    """

    def __init__(self, settings: StackSettings, *, say: Say = _silent, detail: Callable[[str], None] = _silent) -> None:
        self.settings = settings
        self.url = engine_url(settings.engine)
        self._say = say
        self._detail = detail

    @property
    def resource(self) -> str:
        """Name of the lock for the containers of the stack."""
        return resource_of(self.settings.project, self.url)

    @property
    def directory(self) -> Path:
        """Folder of the stack's configurations and secrets on this machine."""
        return state_directory() / "proxy" / self.settings.project

    def render(self, *, renew: bool = False) -> Rendered:
        """Return configurations and content for the containers; make them if they are missing or outdated."""
        ours = self.settings
        settings = RenderSettings(ours.congestion_control, ours.listen, ours.internet, ours.upstream_names)
        return rendered(self.directory, settings, renew=renew)

    def last_rendered(self) -> Rendered | None:
        """Return the newest result of `render`, or None."""
        return load_rendered(self.directory)

    @property
    def _up_file(self) -> Path:
        return self.directory.with_name(f"{self.settings.project}.up.json")

    def up_with(self) -> StackSettings | None:
        """Return the settings with which a user started the stack; None if the user stopped it or never started it."""
        try:
            settings = json.loads(self._up_file.read_text())
        except (OSError, ValueError):
            return None
        return StackSettings.read(settings)

    def describe(self, configuration: Rendered) -> StackFacts:
        """Return facts on which the results of cells depend: engine version, image ids, hash of the configurations."""
        with self._engine() as client:
            version = client.version(api_version=False)
            image_ids = {tag: str(image.id) for image in client.images.list("mplab/*") for tag in image.tags}
        names = {path.parent.name for path in IMAGES_DIR.glob("*/Dockerfile")}
        images = {name: image_ids[self.image(name)] for name in sorted(names) if self.image(name) in image_ids}
        return {
            "engine": version["Version"],
            "kernel": version.get("KernelVersion", ""),
            "project": self.settings.project,
            "profiles": list(self.settings.profiles),
            "images": images,
            "configuration": configuration.digest,
        }

    def prepare(self, *, renew: bool = False, build: bool = True, further: Sequence[str] = ()) -> Rendered:
        """Provide base image, images, configurations and content in the engine; return the configurations.

        Args:
            renew: make new secrets, passwords and certificates.
            build: build images that are not up to date.
            further: additional profiles whose images are built.

        Raises:
            LabNotReadyError: an image, configuration or content cannot be provided.
        """
        with self._engine() as client:
            if self.url.startswith("unix://"):  # its kernel is this machine's
                self._check_congestion_control(ALLOWED.read_text().split() if ALLOWED.exists() else ())
            if build:
                ensure_base(client, self._base, self._say)
                self._say("images: building")
                chosen = tuple(dict.fromkeys((*self._with_net(), *further)))
                self._compose("build", "--parallel", *one_for_each_image(chosen), chosen=chosen)
            self._say("configurations and content: making what is not there yet")
            configuration = self.render(renew=renew)
            image = self.image("net")
            _require(client, image)
            fill_volumes(client, self.settings.project, image, configuration, self._say)
        return configuration

    def up(self, *, renew: bool = False, build: bool = True, remember: bool = True) -> list[ServiceState]:
        """Prepare and start the stack. When every service answers, return the states of all containers.

        Args:
            renew: see `prepare`.
            build: see `prepare`.
            remember: store the settings (`up_with`), so that a run that uses the stack can restore it afterwards.

        Raises:
            LabNotReadyError: the stack cannot be started, or a service does not answer within two minutes.
        """
        configuration = self.prepare(renew=renew, build=build)
        if not self.url.startswith("unix://"):
            with self._engine() as client:
                command = ["cat", str(ALLOWED)]
                output = client.containers.run(self.image("net"), command, remove=True, network_mode="none")
            self._check_congestion_control(output.decode().split())
        self._say("containers: starting")
        self._compose("up", "--detach", "--no-build", config=configuration.digest)
        if remember:
            earlier = self.up_with()
            also = earlier.profiles if earlier is not None else ()  # their services continue to run
            profiles_up = tuple(dict.fromkeys((*also, *self.settings.profiles)))
            write_private(self._up_file, json.dumps(asdict(replace(self.settings, profiles=profiles_up))))
        with self._engine() as client:
            return self._wait(client)

    def down(self, *, volumes: bool = False, forget: bool = True) -> None:
        """Stop and remove the containers and networks of the project.

        Args:
            volumes: also remove the volumes of the project.
            forget: delete the stored settings (`up_with`): runs then do not start the stack again afterwards.
        """
        if forget:
            self._up_file.unlink(missing_ok=True)
        with self._engine() as client:
            # Compose 1.29 parses a file with missing external volumes for 'down', but not for 'up'.
            self._compose("down", "--remove-orphans", *(["--volumes"] if volumes else []), chosen=profiles())
            if volumes:
                for name in volume_names(self.settings.project):
                    try:
                        client.volumes.get(name).remove()
                    except NotFound:
                        continue

    def status(self) -> list[ServiceState]:
        """Return the states of all containers of the project, sorted by service."""
        with self._engine() as client:
            return self._states(client)

    def logs(self, service: str = "", *, lines: int = 100) -> Iterator[tuple[str, str]]:
        """Yield pairs (service, line): the last `lines` lines of `service` or, for "", of each service."""
        with self._engine() as client:
            for container in self._containers(client):
                name = container.labels[SERVICE_LABEL]
                if service in {"", name}:
                    text = container.logs(tail=lines).decode(errors="replace")
                    yield from ((name, line) for line in text.splitlines())

    def _check_congestion_control(self, allowed: Sequence[str]) -> None:
        """Raise LabNotReadyError if `allowed` is known and does not contain the requested congestion control."""
        if allowed and (problem := not_allowed(self.settings.congestion_control, allowed)):
            raise LabNotReadyError(f"{problem}; or name another one by 'congestion_control'")

    @contextmanager
    def _engine(self) -> Iterator[DockerClient]:
        with connected(self.url) as client:
            yield client

    @property
    def _base(self) -> str:
        return self.settings.variables.get("MPLAB_BASE") or default_settings()["MPLAB_BASE"]

    def image(self, name: str) -> str:
        """Return the full name of mplab's image `name`: ``mplab/net:latest``."""
        return f"mplab/{name}:{self.settings.variables.get('MPLAB_TAG', 'latest')}"

    def _with_net(self) -> tuple[str, ...]:
        """Return the profiles to build images for: `proxy`, whose image fills the volumes, and those of the stack."""
        return tuple(dict.fromkeys(("proxy", *self.settings.profiles)))

    def _compose(self, *arguments: str, config: str = "", chosen: Sequence[str] = ()) -> None:
        settings = self.settings.environment() | ({"MPLAB_CONFIG": config} if config else {})
        run_compose(
            arguments, url=self.url, settings=settings, chosen=chosen or self.settings.profiles, say=self._detail
        )

    def _containers(self, client: DockerClient) -> list[Container]:
        containers = client.containers.list(
            all=True, filters={"label": [f"{PROJECT_LABEL}={self.settings.project}", SERVICE_LABEL]}
        )
        return sorted(containers, key=lambda container: str(container.labels[SERVICE_LABEL]))

    def _states(self, client: DockerClient) -> list[ServiceState]:
        return [state_of(container.labels[SERVICE_LABEL], container.attrs) for container in self._containers(client)]

    def _wait(self, client: DockerClient) -> list[ServiceState]:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            states = self._states(client)
            if all(state.well for state in states):
                return states
            bad = [state for state in states if state.restarts > 1 or state.health == "unhealthy"]
            if bad or time.monotonic() > deadline:
                raise LabNotReadyError(self._complaint(bad or [state for state in states if not state.well]))
            time.sleep(_POLL_S)

    def _complaint(self, bad: Sequence[ServiceState]) -> str:
        first = bad[0]
        why = "its memory was not enough" if first.out_of_memory else first.health or first.state
        lines = dict.fromkeys(line for _, line in self.logs(first.service, lines=_LOG_LINES))
        last = " | ".join(lines)
        return f"{first.service} does not start ({why}); last lines of its log: {last or 'none'}"


def not_allowed(wanted: str, allowed: Sequence[str]) -> str:
    """Return why containers cannot use the congestion control `wanted`, with a remedy; "" if they can use it."""
    if not wanted or wanted in allowed:
        return ""
    together = " ".join((*allowed, wanted))
    return (
        f"congestion control {wanted}: the kernel of the engine's host allows only {', '.join(allowed)}. Allow it "
        f"there: sysctl -w net.ipv4.tcp_allowed_congestion_control='{together}'"
    )


def state_of(service: str, attributes: Mapping[str, Any]) -> ServiceState:
    """Return the state of a container of `service`, parsed from the engine's description of the container."""
    state = attributes["State"]
    bound = attributes["NetworkSettings"]["Ports"] or {}
    ports = [f"{host['HostIp']}:{host['HostPort']}" for hosts in bound.values() for host in hosts or []]
    return ServiceState(
        service,
        attributes["Id"],
        state["Status"],
        state.get("Health", {}).get("Status", ""),
        attributes["Image"],
        attributes["RestartCount"],
        state["OOMKilled"],
        tuple(sorted(ports)),
    )


def _require(client: DockerClient, image: str) -> None:
    try:
        client.images.get(image)
    except ImageNotFound as error:
        raise LabNotReadyError(f"{image} is not in the engine; 'mplab proxy prepare' builds it") from error
