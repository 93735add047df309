"""Detect containers of a stack that have ended or were replaced since the start of a cell."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypedDict, cast

from docker import DockerClient
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from mplab.base.errors import DeviceError

SERVICE_LABEL, PROJECT_LABEL = "com.docker.compose.service", "com.docker.compose.project"
_POLL_S = 0.1
_BACK_TIMEOUT_S = 60.0
_KILLED = 137


@dataclass(frozen=True)
class _Seen:
    id: str
    started: str


class _Actor(TypedDict):
    Attributes: dict[str, str]


class _Event(TypedDict):
    """Fields of an event of a container that this module reads; the engine reports the event."""

    Action: str
    Actor: _Actor


class ContainerWatch:
    """Detects containers that have ended since `begin`, even if the engine has started them again.

    Args:
        client: client of the engine.
        project: name of the compose project.
    """

    def __init__(self, client: DockerClient, project: str) -> None:
        self._client = client
        self._project = project
        self._before: dict[str, _Seen] = {}
        self._since = 0.0

    def containers(self) -> dict[str, Container]:
        """Return service → container for all containers of the project.

        Raises:
            DeviceError: the engine does not answer.
        """
        labels = [f"{PROJECT_LABEL}={self._project}", SERVICE_LABEL]
        try:
            containers = self._client.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
        except (DockerException, RequestException) as error:
            raise DeviceError("engine", f"it does not answer any more: {error}") from error
        return {str(container.labels[SERVICE_LABEL]): container for container in containers}

    def begin(self) -> None:
        """Start every container that does not run, and record the state of all containers for `problems`.

        Raises:
            DeviceError: a container is missing or does not start, or a network namespace is lost.
        """
        containers = self.containers()
        if gone := sorted(set(self._before) - set(containers)):
            raise DeviceError("engine", f"the container of {', '.join(gone)} is gone; was the stack taken down?")
        lost = [name for name in self._before if _holds(name) and _seen(containers[name]) != self._before[name]]
        if lost:
            raise DeviceError(
                "engine", f"{lost[0]} has ended, and with it the network namespace that it held. Start a new run"
            )
        ended = {name: container for name, container in containers.items() if not _runs(container)}
        for name, container in ended.items():
            try:
                container.start()
            except (DockerException, RequestException) as error:
                raise DeviceError(name, f"its container cannot be started again: {error}") from error
        for name, container in containers.items():
            self._wait(name, container, healthy=name in ended)
        self._before = {name: _seen(container) for name, container in containers.items()}
        self._since = time.time()

    def _wait(self, name: str, container: Container, *, healthy: bool) -> None:
        deadline = time.monotonic() + _BACK_TIMEOUT_S
        while not _runs(container) or (healthy and _health(container) == "starting"):
            if time.monotonic() > deadline:
                raise DeviceError(name, f"its container is {container.status}, not running: mplab proxy logs {name}")
            time.sleep(_POLL_S)
            with suppress(NotFound):
                container.reload()

    def forget(self) -> None:
        """Discard the recorded containers, so that the next `begin` behaves like the first one."""
        self._before = {}

    def check(self) -> None:
        """Raise DeviceError when a container has ended, was removed or is unhealthy since `begin`, with the reason."""
        if problems := self.problems():
            raise DeviceError("engine", "; ".join(problems))

    def problems(self) -> list[str]:
        """Return one sentence for each container that ended, was removed or is unhealthy since `begin`.

        Containers that hold the network namespaces of other containers come first.
        """
        containers = self.containers()
        names = sorted(self._before, key=lambda name: (not _holds(name), name))
        return [text for name in names if (text := self._problem(name, containers.get(name)))]

    def _problem(self, name: str, container: Container | None) -> str:
        before = self._before[name]
        if container is None or container.id != before.id:
            return f"the container of {name} was removed"
        if _runs(container) and _started(container) == before.started:
            return "" if _health(container) != "unhealthy" else f"{name} does not answer any more"
        return f"the container of {name} ended by itself ({self._why(before.id, container)})"

    def _why(self, id_: str, container: Container) -> str:
        """Return the reason why a container ended, from the engine's events.

        The state of a container that was started again no longer shows the reason.
        """
        events = self._events(id_)
        limit = int(container.attrs["HostConfig"]["Memory"]) >> 20
        if "oom" in (event["Action"] for event in events) or container.attrs["State"]["OOMKilled"]:
            return f"out of memory: its {limit} MiB were not enough"
        codes = [event["Actor"]["Attributes"].get("exitCode", "") for event in events if event["Action"] == "die"]
        code = codes[-1] if codes else str(container.attrs["State"]["ExitCode"])
        return "killed" if code == str(_KILLED) else f"exit code {code}"

    def _events(self, id_: str) -> list[_Event]:
        filters: dict[str, str | list[str]] = {"container": id_, "event": ["die", "oom"]}
        # The engine answers only after the time `until`, that is, within a second.
        times = {"since": int(self._since) - 1, "until": int(time.time()) + 1}
        events: list[_Event] = []
        with suppress(DockerException, RequestException):
            events += cast("Iterable[_Event]", self._client.events(**times, decode=True, filters=filters))
        return events


def _holds(service: str) -> bool:
    """Return True for a service whose container holds the network namespace that other containers share."""
    return service.endswith("-net")


def _seen(container: Container) -> _Seen:
    return _Seen(str(container.id), _started(container))


def _runs(container: Container) -> bool:
    return str(container.attrs["State"]["Status"]) == "running"


def _started(container: Container) -> str:
    return str(container.attrs["State"]["StartedAt"])


def _health(container: Container) -> str:
    return str(container.attrs["State"].get("Health", {}).get("Status", ""))
