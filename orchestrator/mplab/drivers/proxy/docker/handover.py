"""What a lab is handed over of containers that were started outside of it."""

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
"""Environment variable that hands a stack over to what runs inside a lab."""

HOLDERS = {"proxy": "proxy-net", "origin": "origin-net"}
"""Node → the service whose container holds that network."""


@dataclass(frozen=True)
class HandedStack:
    """`HandedOver`: a stack that is up, as a lab gets it.

    Attributes:
        url: of the engine, as the lab can reach it.
        project: name of the compose project.
        directory: its configurations and secrets.
        holder: id of the container that holds the proxy's network.
        images: name → id of the images that cells use.
        facts: what `DockerStack.describe` says of it.
        socket: descriptor of the engine's socket, when `url` needs it; -1: none.
        networks: node → descriptor of a network namespace.
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
        """See `HandedOver`: images of the engine."""
        before, now = cast("StackFacts", prepared["containers"])["images"], self.facts["images"]
        changed = sorted(name for name, image in before.items() if now.get(name) != image)
        return f"the images {', '.join(changed)}" if changed else ""

    def inherited(self) -> Inherited:
        """See `HandedOver`."""
        descriptors = tuple(number for number in (self.socket, *self.networks.values()) if number >= 0)
        return Inherited({VARIABLE: json.dumps(asdict(self))}, descriptors)

    @classmethod
    def received(cls) -> Self:
        """What this process was handed over. Raises LabNotReadyError."""
        text = os.environ.get(VARIABLE)
        if text is None:
            raise LabNotReadyError("a lab with containers was handed none: they are started outside of it")
        return cls(**json.loads(text))
