"""Settings of proxy and origin as containers of a Docker engine in a lab file."""

import os
import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mplab.base.suggest import show
from mplab.userfiles.labs.proxyfile import Address, ProxyFile

DEFAULT_URL = "unix:///var/run/docker.sock"

PROFILES = (
    "proxy",
    "probe",
    "shadowsocks",
    "origin",
    "icecast",
    "xmpp",
    "turn",
    "dns",
    "names",
    "iperf",
    "collector",
    "capture",
)
"""Profiles of ``proxy-docker/compose.yaml``."""

LOCAL_ENGINE = "unix://"
"""URL prefix of an engine on this machine."""

_ENGINE = re.compile(r"unix:///\S+|ssh://[A-Za-z0-9._@:\[\]-]+|tcp://[A-Za-z0-9._:\[\]-]+:\d+")
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def _parse_engine(value: object) -> str:
    if isinstance(value, str) and _ENGINE.fullmatch(value):
        return value
    raise ValueError(f"engine {show(value)}: 'unix:///path', 'ssh://user@host' or 'tcp://host:port' is needed")


def _parse_project(value: object) -> str:
    if isinstance(value, str) and _PROJECT.fullmatch(value):
        return value
    raise ValueError(f"project {show(value)}: small letters, digits, '-' and '_' are needed, like 'mplab'")


class DockerProxyFile(ProxyFile):
    """Proxy and origin services as containers."""

    driver: Literal["docker"] = Field("docker", description="Containers of a Docker engine.")
    engine: Annotated[str, BeforeValidator(_parse_engine)] | None = Field(
        None, description="URL of the engine: unix:///…, ssh://user@host; default: DOCKER_HOST or this machine's."
    )
    project: Annotated[str, BeforeValidator(_parse_project)] = Field(
        "mplab", description="Name of the compose project."
    )
    profiles: list[Literal[PROFILES]] = Field(  # type: ignore[valid-type]
        ["proxy", "origin", "dns"], min_length=1, description="Profiles to start."
    )
    signal: list[Address] = Field(
        default_factory=list, max_length=8, description="Addresses that MPTCP advertises to phones."
    )
    congestion_control: Literal["cubic", "reno", "bbr", "system"] = Field(
        "cubic", description="Of the proxy's sockets towards phones; system: that of its kernel."
    )

    @model_validator(mode="after")
    def _nothing_twice(self) -> Self:
        for key in ("profiles", "listen", "signal"):
            entries = getattr(self, key)
            if len(set(entries)) < len(entries):
                raise ValueError(f"{key}: an entry is listed twice")
        return self

    def wiring_problem(self, phone: str, others: str) -> tuple[str, str]:
        """Return (key, problem) if the engine is on another machine, otherwise ("", ""); see `ProxyFile`.

        A veth pair connects only namespaces of one kernel.
        """
        if self.engine is None or self.engine.startswith(LOCAL_ENGINE):
            return "", ""
        return "engine", (
            f"engine '{self.engine}': the virtual phone {phone} uses the network namespaces of the containers, which "
            f"only an engine of this machine has: 'unix:///…'. A phone with {others} can use any engine"
        )

    @property
    def resource(self) -> str:
        """Name of the lock that a run holds on the containers; it names the compose project and the engine."""
        return resource_of(self.project, engine_url(self.engine or ""))


def engine_url(requested: str = "") -> str:
    """Return `requested`, or else ``DOCKER_HOST``, or else the URL of this machine's engine."""
    return requested or os.environ.get("DOCKER_HOST") or DEFAULT_URL


def resource_of(project: str, url: str) -> str:
    """Return the name of the lock on the containers of a compose project at an engine."""
    return f"docker {project} at {url}"
