"""Hand running containers over to a lab: they are started outside of the lab, and its process inside uses them."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self, cast

from mplab.base.enter import Inherited
from mplab.base.errors import LabNotReadyError

if TYPE_CHECKING:
    from mplab.drivers.proxy.docker.stack import StackFacts

VARIABLE = "MPLAB_CONTAINERS"
"""Environment variable that carries a `HostedStack` into the lab, as JSON."""

HOLDERS = {"proxy": "proxy-net", "origin": "origin-net"}
"""Node → service whose container holds the network namespace that replaces the node's."""


@dataclass(frozen=True)
class HostedStack:
    """`HostedResources` for a running stack.

    Attributes:
        url: URL of the engine, valid inside the lab.
        project: name of the compose project.
        directory: folder of configurations and secrets of the containers.
        holder: id of the container that holds the proxy's network namespace.
        images: ``net``, ``capture`` → name and tag of the image that cells use: ``mplab/net:latest``.
        facts: result of `DockerStack.describe`.
        socket: file descriptor of the engine's socket, if `url` refers to it; -1: none.
        networks: node → file descriptor of the network namespace for the node; see `Servers.networks`.
    """

    url: str
    project: str
    directory: str
    holder: str
    images: Mapping[str, str]
    facts: "StackFacts"
    socket: int = -1
    networks: Mapping[str, int] = field(default_factory=dict)

    def changed_since(self, prepared: Mapping[str, object]) -> str:
        """See `HostedResources`: compares the ids of mplab's images."""
        before, now = cast("StackFacts", prepared["containers"])["images"], self.facts["images"]
        changed = sorted(name for name, image in before.items() if now.get(name) != image)
        return f"the images {', '.join(changed)}" if changed else ""

    def inherited(self) -> Inherited:
        """See `HostedResources`."""
        descriptors = tuple(number for number in (self.socket, *self.networks.values()) if number >= 0)
        return Inherited({VARIABLE: json.dumps(asdict(self))}, descriptors)

    @classmethod
    def received(cls) -> Self:
        """Return the stack handed to this process. Raises LabNotReadyError when no stack was handed over."""
        text = os.environ.get(VARIABLE)
        if text is None:
            raise LabNotReadyError("the lab has no running containers: they must be started before it, outside of it")
        return cls(**json.loads(text))
