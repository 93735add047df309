"""The part of a lab file that names the proxy."""

import re
from ipaddress import IPv4Address
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mplab.base.suggest import show
from mplab.userfiles.internet import InternetFile

PROFILES = (
    *(
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
    ),
)
"""Those of ``proxy-docker/compose.yaml``."""

LOCAL_ENGINE = "unix://"
"""How the URL of an engine of this machine begins."""

_ENGINE = re.compile(r"unix:///\S+|ssh://[A-Za-z0-9._@:\[\]-]+|tcp://[A-Za-z0-9._:\[\]-]+:\d+")
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def _parse_engine(found: object) -> str:
    if isinstance(found, str) and _ENGINE.fullmatch(found):
        return found
    raise ValueError(f"engine {show(found)}: 'unix:///path', 'ssh://user@host' or 'tcp://host:port' is needed")


def _parse_project(found: object) -> str:
    if isinstance(found, str) and _PROJECT.fullmatch(found):
        return found
    raise ValueError(f"project {show(found)}: small letters, digits, '-' and '_' are needed, like 'mplab'")


def _parse_address(found: object) -> str:
    try:
        return str(IPv4Address(found)) if isinstance(found, str) else _refuse(found)
    except ValueError:
        return _refuse(found)


def _refuse(found: object) -> str:
    raise ValueError(f"address {show(found)}: an IPv4 address is needed, like '203.0.113.5'")


Address = Annotated[str, BeforeValidator(_parse_address)]


class ProxyFile(BaseModel):
    """Proxy and origin services as containers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver: Literal["docker"] = Field("docker", description="Containers of a Docker engine.")
    engine: Annotated[str, BeforeValidator(_parse_engine)] | None = Field(
        None, description="Of which engine: unix:///…, ssh://user@host; without it, DOCKER_HOST or this machine's."
    )
    project: Annotated[str, BeforeValidator(_parse_project)] = Field(
        "mplab", description="Name of the compose project."
    )
    profiles: list[Literal[PROFILES]] = Field(["proxy", "origin", "dns"], min_length=1, description="What is started.")  # type: ignore[valid-type]
    listen: list[Address] = Field(
        default_factory=list, max_length=2, description="Addresses of the server for phones; without any, loopback."
    )
    signal: list[Address] = Field(default_factory=list, max_length=8, description="What MPTCP advertises to phones.")
    congestion_control: Literal["cubic", "reno", "bbr", "system"] = Field(
        "cubic", description="Of the proxy's sockets towards phones; system: what its kernel has."
    )

    internet: InternetFile | None = Field(
        None, description="Destinations outside of the lab that phones reach through the proxy; without it, none."
    )

    @model_validator(mode="after")
    def _nothing_twice(self) -> Self:
        for what in ("profiles", "listen", "signal"):
            given = getattr(self, what)
            if len(set(given)) < len(given):
                raise ValueError(f"{what}: something stands there twice")
        return self

    @property
    def upstream_names(self) -> bool:
        """Whether names outside of the lab are resolved."""
        return self.internet is not None and self.internet.names == "upstream"
