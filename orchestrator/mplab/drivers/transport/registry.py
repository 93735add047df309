"""Every transport that an experiment file can name."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from mplab.base.paths import RMNET, WLAN
from mplab.drivers.transport.mpflex import transport as mpflex
from mplab.drivers.transport.mptcp import transport as mptcp
from mplab.drivers.transport.protocol import Transport
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.drivers.transport.sptcp.default_route import DefaultRouteTcp
from mplab.userfiles.resolve import TransportInfo

INFOS: Mapping[str, TransportInfo] = {
    info.name: info
    for info in (
        TransportInfo("sptcp", "TCP over the default route", "#332288", "p", None),
        TransportInfo("sptcp-wifi", "TCP over WiFi", "#0072B2", "o", None),
        TransportInfo("sptcp-lte", "TCP over LTE", "#E69F00", "s", None),
        TransportInfo("mptcp", "Multipath TCP", "#009E73", "D", mptcp.MptcpOptions),
        TransportInfo(
            *("mpflex", "MPFlex", "#D55E00", "^", mpflex.MpflexOptions, "scheduler", mpflex.LOOKS),
            files={"policy": mpflex.POLICIES_DIR},
        ),
    )
}
"""Name → title, colour (of Okabe and Ito's palette for all kinds of colour vision), marker, options."""

_Options = TypeVar("_Options", bound=BaseModel)
_DEVICE_OF = {"sptcp-wifi": WLAN, "sptcp-lte": RMNET}

NAMES: tuple[str, ...] = tuple(
    name for info in INFOS.values() for name in (info.name, *(f"{info.name}:{variant}" for variant in info.variants))
)
"""Every transport, with its variants: ``mptcp``, ``mpflex``, ``mpflex:minrtt``."""


def transport_named(text: str, interfaces: Mapping[str, str]) -> Transport:
    """The transport of one of `NAMES`, its other options left at their defaults."""
    name, _, variant = text.partition(":")
    info = INFOS[name]
    given = {info.variant_option: variant} if variant else {}
    return make_transport(name, info.options_model.model_validate(given) if info.options_model else None, interfaces)


def make_transport(
    name: str, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> Transport:
    """The transport `name` for a phone with `interfaces` (name → address); `files`: see `TransportUse.files`."""
    if device := _DEVICE_OF.get(name):
        return SinglePathTcp(device, interfaces[device])
    if name == "sptcp":
        return DefaultRouteTcp(interfaces)
    if name == "mpflex":
        return mpflex.Mpflex(_as(mpflex.MpflexOptions, options), interfaces, files)
    return mptcp.Mptcp(_as(mptcp.MptcpOptions, options), interfaces)


def _as(model: type[_Options], options: BaseModel | None) -> _Options:
    """The options as an instance of the transport's model; its defaults without any."""
    if isinstance(options, model):
        return options
    return model.model_validate(options.model_dump() if options else {})


def missing_reason(name: str) -> str:
    """Why this host cannot run the transport `name`, or ""."""
    return mptcp.missing_reason() if name == "mptcp" else ""
