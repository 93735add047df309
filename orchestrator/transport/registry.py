"""Every transport that an experiment file can name."""

from collections.abc import Mapping

from pydantic import BaseModel

from orchestrator.lab import topology
from orchestrator.spec.resolve import TransportInfo
from orchestrator.transport import mptcp
from orchestrator.transport.protocol import Transport
from orchestrator.transport.sptcp import SinglePathTcp

INFOS: Mapping[str, TransportInfo] = {
    info.name: info
    for info in (
        TransportInfo("sptcp-wifi", "TCP over WiFi", "#0072B2", "o", None),
        TransportInfo("sptcp-lte", "TCP over LTE", "#E69F00", "s", None),
        TransportInfo("mptcp", "Multipath TCP", "#009E73", "D", mptcp.MptcpOptions),
    )
}
"""Name → title, colour (of Okabe and Ito's palette for all kinds of colour vision), marker, options."""

_DEVICE_OF = {"sptcp-wifi": topology.WLAN, "sptcp-lte": topology.RMNET}


def make_transport(name: str, options: BaseModel | None, interfaces: Mapping[str, str]) -> Transport:
    """The transport `name` for a phone with `interfaces` (name → address)."""
    if device := _DEVICE_OF.get(name):
        return SinglePathTcp(device, interfaces[device])
    if not isinstance(options, mptcp.MptcpOptions):
        options = mptcp.MptcpOptions.model_validate(options.model_dump() if options else {})
    return mptcp.Mptcp(options, interfaces)


def missing_reason(name: str) -> str:
    """Why this host cannot run the transport `name`, or ""."""
    return mptcp.missing_reason() if name == "mptcp" else ""
