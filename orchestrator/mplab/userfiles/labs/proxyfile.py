"""Proxy section of a lab file: the part that all kinds of proxy share."""

from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Address
from typing import Annotated, ClassVar, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag

from mplab.base.drivers import Drivers
from mplab.base.plugins import PROXIES
from mplab.base.suggest import show, unknown
from mplab.format.names import FileModel
from mplab.userfiles.labs.internet import InternetFile
from mplab.userfiles.strict.check import tag_of


def _parse_address(value: object) -> str:
    try:
        return str(IPv4Address(value)) if isinstance(value, str) else _refuse(value)
    except ValueError:
        return _refuse(value)


def _refuse(value: object) -> str:
    raise ValueError(f"address {show(value)}: an IPv4 address is needed, like '203.0.113.5'")


Address = Annotated[str, BeforeValidator(_parse_address)]


class ProxyFile(FileModel):
    """Entry of the proxy in a lab file: the keys of all kinds of proxy. The model of each kind adds its own keys."""

    driver: str
    listen: list[Address] = Field(
        default_factory=list, max_length=2, description="Addresses of the server for phones; without any, loopback."
    )
    internet: InternetFile | None = Field(
        None, description="Destinations outside of the lab that phones reach through the proxy; without it, none."
    )

    @property
    def upstream_names(self) -> bool:
        """Return whether the lab's name server also resolves names outside the lab."""
        return self.internet is not None and self.internet.names == "upstream"

    def wiring_problem(self, phone: str, others: str) -> tuple[str, str]:
        """Return why a virtual phone cannot be connected to this proxy: (key of this entry, problem).

        Both texts are empty if it can be connected.

        Args:
            phone: name of the phone in the lab file.
            others: kinds of phone that need no such connection: ``'driver: adb'``.
        """
        return "", ""


class ProxyKind:
    """The part of a proxy's driver that is needed to read lab files; `mplab.drivers.proxy.driver` adds the rest."""

    name: ClassVar[str] = ""
    """Name under which the kind is registered, the value of `driver` in a lab file."""
    settings: ClassVar[type[ProxyFile] | None] = None
    """Model of ``proxy`` in a lab file; None: lab files cannot name it."""


_KINDS = Drivers(PROXIES, ProxyKind)


@cache
def models() -> Mapping[str, type[ProxyFile]]:
    """Return name → model for the kinds of proxy that a lab file can name; only those that can be imported."""
    return {name: kind.settings for name, kind in _KINDS.importable().items() if kind.settings is not None}


def entry_type() -> object:
    """Return the type, for pydantic, of ``proxy`` in a lab file: the model of the kind that its `driver` names.

    A proxy without `driver` is validated by the model whose `driver` has a default.
    """
    known = models()
    if len(known) < 2:
        return next(iter(known.values()), ProxyFile)
    default = next(model for model in known.values() if not model.model_fields["driver"].is_required())

    def check(value: object) -> object:
        driver = value.get("driver") if isinstance(value, dict) else None
        if isinstance(driver, str) and driver not in known:
            if driver in _KINDS:
                _KINDS.load(driver)  # raises the reason, unless the kind has no model for lab files
            raise ValueError(unknown("driver", driver, known))
        return value

    def tag(value: object) -> str:
        driver = (
            value.get("driver") if isinstance(value, dict) else value.driver if isinstance(value, ProxyFile) else ""
        )
        return tag_of(known.get(driver, default) if isinstance(driver, str) else default)

    tagged = tuple(Annotated[model, Tag(tag_of(model))] for model in known.values())
    return Annotated[Union[tagged], Discriminator(tag), BeforeValidator(check)]  # noqa: UP007 - made at run time
