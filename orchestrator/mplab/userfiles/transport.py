"""What an experiment file needs to know of a transport: its name, its look, its options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from mplab.base.paths import RMNET, WLAN


@dataclass(frozen=True)
class TransportStyle:
    """How figures draw a transport."""

    title: str
    colour: str
    marker: str


@dataclass(frozen=True)
class TransportInfo:
    """A transport that is installed.

    Attributes:
        name: what experiment files call it.
        title, colour, marker: how figures draw it.
        options_model: its options, with defaults; strict. None: it has no options.
        variant_option: the option whose value may follow the name after a colon (``mpflex:minrtt``); "": none may.
        variants: each value of that option, and how it is drawn.
        files: an option that names a YAML file → the folder of such files, whose name is part of `TransportUse.files`.
        paths: interfaces of the phone that one connection uses while no path fails; the first one begins it.
        sessions: application connections share lasting connections to the proxy, one per interface.
        default: verbs use it over its paths when no transport is named.
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
        """Return how the transport is drawn with `options`."""
        own = TransportStyle(self.title, self.colour, self.marker)
        variant = options.model_dump().get(self.variant_option) if options is not None and self.variants else None
        return self.variants.get(variant, own) if isinstance(variant, str) else own
