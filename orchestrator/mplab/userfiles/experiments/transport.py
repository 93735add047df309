"""Properties of transports that are needed to read experiment files: name, style, options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, field_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mplab.base.paths import RMNET, WLAN
from mplab.format.experiment import CongestionControl
from mplab.format.names import FileModel
from mplab.format.units import SizeBytes, between, format_size

LEAST_RECEIVE_BUFFER, MOST_RECEIVE_BUFFER = 4_000, 64_000_000
"""Bytes. A smaller buffer holds no full packet: half of it is the window."""

ReceiveBuffer = Annotated[
    SizeBytes, between("receive_buffer", LEAST_RECEIVE_BUFFER, MOST_RECEIVE_BUFFER, write=format_size)
]


class SocketsFile(FileModel):
    """Options that every transport has, in addition to its own. A missing one is that of the experiment."""

    congestion_control: CongestionControl | None = Field(
        None, description="congestion control of agent and proxy, in place of the experiment's"
    )
    receive_buffer: ReceiveBuffer | None = Field(
        None, description="maximum receive buffer of the phone's TCP sockets, in place of the experiment's"
    )


Via = Literal["proxy", "direct"]
ROUTES: Mapping[Via, str] = {
    "proxy": "application, agent on the phone, link condition, proxy, core and origin round trip, origin; the "
    "transport ends at the proxy",
    "direct": "application, link condition, core and origin round trip, origin; the transport ends at the origin, and "
    "the proxy's machine only forwards packets",
}
"""Route of the applications' connections, for manifest.json. Every part adds its round trip."""


class ViaOptions(BaseModel):
    """The option that all transports have: the route of the applications' connections to the origin."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    not_direct: ClassVar[str] = ""
    """Why the transport has no direct route; "": it has."""

    via: Via = Field(
        default="proxy",
        description="proxy: an agent on the phone carries the connections to the proxy; direct: the applications' own "
        "sockets use the transport to the origin, without agent and proxy",
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema, without ``direct`` if the transport has no direct route."""
        shown = handler(core_schema)
        if cls.not_direct:
            handler.resolve_ref_schema(shown)["properties"]["via"]["enum"] = ["proxy"]
        return shown

    @field_validator("via")
    @classmethod
    def _has_route(cls, via: Via) -> Via:
        if via == "direct" and cls.not_direct:
            raise ValueError(f"'direct' is not possible: {cls.not_direct}. Allowed: proxy")
        return via


@dataclass(frozen=True)
class TransportStyle:
    """Style of a transport in figures."""

    title: str
    colour: str
    marker: str


@dataclass(frozen=True)
class TransportInfo:
    """An installed transport.

    Attributes:
        name: name in experiment files.
        title, colour, marker: style in figures.
        options_model: strict model of its options, with defaults; None: it has no options.
        variant_option: option whose value may follow the name after a colon (``mpflex:minrtt``); "": no option may.
        variants: each value of that option → its style.
        files: option that names a YAML file → folder of such files. The folder's name is part of `TransportUse.files`.
        paths: interfaces of the phone that one connection uses while no path fails, starting with the interface that
            opens it.
        sessions: True: application connections share long-lived connections to the proxy, one per interface.
        default: True: verbs without a named transport use this one, if they need exactly the interfaces in `paths`.
    """

    name: str
    title: str
    colour: str
    marker: str
    options_model: type[BaseModel] | None = None
    variant_option: str = ""
    variants: Mapping[str, TransportStyle] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    paths: tuple[str, ...] = (WLAN, RMNET)
    sessions: bool = False
    default: bool = False

    def look(self, options: BaseModel | None) -> TransportStyle:
        """Return the style, in figures, of the transport with `options`, which may choose a variant or a route."""
        direct = isinstance(options, ViaOptions) and options.via == "direct"
        own = TransportStyle(f"{self.title}, direct" if direct else self.title, self.colour, self.marker)
        variant = options.model_dump().get(self.variant_option) if options is not None and self.variants else None
        return self.variants.get(variant, own) if isinstance(variant, str) else own
