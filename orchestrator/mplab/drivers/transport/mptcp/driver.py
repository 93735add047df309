"""Driver of ``mptcp``: Multipath TCP of the kernel, and checks of its requirements on the host and the phone."""

import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from mplab.base.findings import Finding
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.transport import Transport, TransportDriver, options_as
from mplab.drivers.transport.mptcp.transport import (
    NO_SECOND_SUBFLOW,
    Mptcp,
    MptcpOptions,
    cell_problem_of,
    note_of,
    problem_of,
)
from mplab.format.palette import GREEN

_ENABLED = Path("/proc/sys/net/mptcp/enabled")


class MptcpDriver(TransportDriver):
    """Driver that opens `Mptcp`, the transport over kernel Multipath TCP."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return an `Mptcp` for one phone; see `TransportDriver`."""
        return Mptcp(options_as(MptcpOptions, options), interfaces)

    def missing_reason(self) -> str:
        """Return why this host's kernel has no Multipath TCP; "" if it has."""
        if _ENABLED.exists():
            return ""
        return "this kernel has no Multipath TCP (no net.mptcp.enabled; it needs Linux 5.6 or later with CONFIG_MPTCP)"

    def missing_on_phone(self, phone: PhoneFacts) -> str:
        """Return why a phone cannot use the transport: no root, or a kernel without RFC 8684; "" if it can."""
        if not phone.rooted:
            return f"is used without root: {NO_SECOND_SUBFLOW}"
        kernel = phone.kernel
        if kernel is None or kernel.kind == "upstream":
            return ""
        patched = f"{kernel.kind} {kernel.version}"
        other = f", only the {patched} one, which proxies do not support" if kernel.kind != "none" else ""
        return f"has no Multipath TCP of Linux 5.6 or later{other}"

    def check(self) -> Iterator[Finding]:
        """Yield findings about whether this host's kernel has Multipath TCP and can open an MPTCP socket."""
        if reason := self.missing_reason():
            yield Finding(self.name, "warning", reason, f"cells with {self.title} will be skipped; use a newer kernel")
        else:
            enabled = _ENABLED.read_text().strip()
            state = f"the kernel has it (net.mptcp.enabled = {enabled}; the lab has its own)"
            yield Finding(self.name, "ok", state)
        yield _check_socket(f"{self.name}-sockets")

    def check_phone(self, read_kernel: Callable[[], KernelMptcp]) -> str:
        """Return why cells cannot use Multipath TCP of a connected, rooted phone; "" if they can."""
        return cell_problem_of(read_kernel())

    def problem_on(self, phone: PhoneFacts) -> str:
        """Return why Multipath TCP with two subflows is not possible with a phone's kernel; "" if it is."""
        return problem_of(phone.kernel, rooted=phone.rooted) if phone.kernel is not None else ""

    def note_on(self, phone: PhoneFacts) -> str:
        """Return a note if a phone's kernel has the patches of multipath-tcp.org, otherwise ""."""
        return note_of(phone.kernel) if phone.kernel is not None else ""


def _check_socket(name: str) -> Finding:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()  # type: ignore[attr-defined,unused-ignore]
    except AttributeError:
        return Finding(name, "ok", "not checked: this Python has no name for them")
    except OSError as error:
        return Finding(name, "warning", f"a socket cannot be opened: {error}", "sysctl net.mptcp.enabled=1")
    return Finding(name, "ok", "can be opened")


DRIVER = MptcpDriver("mptcp", "Multipath TCP", GREEN, "D", MptcpOptions, default=True)
