"""Take an interface of the virtual phone down and up, as Android does when a network is lost and returns.

When Android loses a network, it removes the interface's address, routes and rules and closes the sockets bound to the
address. When the network returns, Android configures all of it again, possibly with another address. MPTCP endpoints
are removed and added with the address, as by a path manager.

Connections of apps are not closed. They end at the agent on the phone, as with a VPN, and survive while the agent's
connections change. In the virtual phone, apps use the interface's address too, so the address is kept on ``lo``.
"""

import re
from dataclasses import dataclass, field, replace

from mplab.base.errors import DeviceError
from mplab.base.programs import IP, SS
from mplab.drivers.phone.protocol import Phone

_COMMAND_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Endpoint:
    """An MPTCP endpoint of an interface."""

    address: str
    flags: tuple[str, ...]
    """Flags such as ``subflow`` and ``backup``."""
    number: int = field(compare=False)
    """Endpoint id; the kernel assigns a new id whenever the endpoint is added."""


@dataclass(frozen=True)
class InterfaceState:
    """Configuration of an interface in the phone's kernel."""

    device: str
    up: bool
    address: str
    """Address such as ``10.64.1.2/24``, or ""."""
    neighbours: tuple[str, ...]
    """Permanent neighbours as printed by `ip neigh`."""
    routes: tuple[str, ...]
    """Unicast routes in all tables as printed by `ip route`, without those that the kernel adds for the address."""
    rules: tuple[str, ...]
    """Rules for the address: ``priority 101 from 10.64.1.2 lookup 101``."""
    endpoints: tuple[Endpoint, ...]

    @property
    def host(self) -> str:
        """Address without its prefix length."""
        return self.address.partition("/")[0]

    def moved(self, address: str) -> "InterfaceState":
        """Return a copy with another address in the same network; `address` has no prefix length."""
        old, new = re.compile(rf"\b{re.escape(self.host)}\b"), address
        return replace(
            self,
            address=f"{address}/{self.address.partition('/')[2]}",
            routes=tuple(old.sub(new, route) for route in self.routes),
            rules=tuple(old.sub(new, rule) for rule in self.rules),
            endpoints=tuple(replace(e, address=old.sub(new, e.address)) for e in self.endpoints),
        )

    def going(self) -> list[str]:
        """Return `ip` commands that take the interface down.

        MPTCP endpoints are removed first, because their removal sends packets.
        """
        return [
            *(f"mptcp endpoint delete id {endpoint.number}" for endpoint in self.endpoints),
            *(f"rule del {rule}" for rule in self.rules),
            *([f"addr del {self.address} dev {self.device}"] if self.address else []),
            f"link set {self.device} down",
        ]

    def coming(self) -> list[str]:
        """Return `ip` commands that configure an interface that is down and has no configuration.

        MPTCP endpoints are added last, because the kernel then sends packets from them.
        """
        return [
            *([f"addr add {self.address} dev {self.device}"] if self.address else []),
            f"link set {self.device} up",
            *(f"neigh replace {neighbour} dev {self.device}" for neighbour in self.neighbours),
            *(f"route replace {route} dev {self.device}" for route in self.routes),
            *(f"rule add {rule}" for rule in self.rules),
            *(f"mptcp endpoint add {e.address} {' '.join((*e.flags, f'dev {self.device}'))}" for e in self.endpoints),
        ]


class PhoneInterface:
    """Interface of a phone, read and changed by `ip`.

    The configuration is read before a change. The change itself is one command, so it happens at its planned time.

    Args:
        phone: the phone.
        device: name of the interface: ``wlan0``.
        peer: address or network of the destination of all connections that leave the phone: the proxy, or the origin.
    """

    def __init__(self, phone: Phone, device: str, *, peer: str) -> None:
        self._phone = phone
        self._device = device
        self._peer = peer
        self._kept: list[str] = []
        self._original = self._now = self.read()
        self._gone: InterfaceState | None = None

    def read(self) -> InterfaceState:
        """Read and return the current configuration; the next change starts from it."""
        device = self._device
        link = self._ip("-o", "link", "show", "dev", device)
        addresses = re.findall(r"inet (\S+)", self._ip("-o", "-4", "addr", "show", "dev", device))
        address = addresses[0] if addresses else ""
        host = address.partition("/")[0]
        shown = self._phone.shell([self._phone.program(IP), "mptcp", "endpoint", "show"], check=False)
        self._now = InterfaceState(
            device=device,
            up="UP" in re.split(r"[<,>]", link),
            address=address,
            neighbours=parse_neighbours(self._ip("neigh", "show", "dev", device, "nud", "permanent")),
            routes=parse_routes(self._ip("-4", "route", "show", "table", "all", "type", "unicast", "dev", device)),
            rules=parse_rules(self._ip("-4", "rule", "show"), host) if host else (),
            endpoints=parse_endpoints(shown.stdout, device),
        )
        return self._now

    def take_down(self) -> None:
        """Simulate the loss of the network: remove routes, rules and endpoints, close the address's sockets.

        Does nothing when the interface is down.
        """
        state = self._now
        if not state.up:
            return
        self._gone = state
        if not state.host:
            self._phone.ip(*state.going())
            return
        self._kept.append(state.host)
        batch = [f"addr replace {state.host}/32 dev lo", *state.going()]
        # Android's netd also closes the sockets (SOCK_DESTROY); otherwise connections would hang for minutes.
        ip, ss = self._phone.program(IP), self._phone.program(SS)
        script = f"{ip} -batch - && {{ {ss} -K -t src {state.host} dst {self._peer} >/dev/null; true; }}"
        self._phone.shell(["sh", "-c", script], stdin="\n".join(batch) + "\n", timeout_s=_COMMAND_TIMEOUT_S)
        self._now = replace(state, up=False)

    def bring_up(self, address: str = "") -> None:
        """Restore the network with its previous address, or with another one. Does nothing when the interface is up."""
        if self._gone is None:
            return
        state, self._gone = self._gone, None
        self._now = state.moved(address) if address else state
        self._phone.ip(*self._now.coming())

    def set_multipath(self, use: str) -> bool:
        """Set the use of the interface by kernel MPTCP: ``on``, ``off``, or ``backup`` (only when no other path works).

        Returns:
            False when the transport has no MPTCP endpoints, so that there is nothing to set.
        """
        if not self._original.endpoints:
            return False
        self._phone.ip(*(f"mptcp endpoint delete id {endpoint.number}" for endpoint in self._now.endpoints))
        for endpoint in self._original.endpoints if use != "off" else ():
            flags = [flag for flag in endpoint.flags if flag != "backup"] + (["backup"] if use == "backup" else [])
            self._phone.ip(f"mptcp endpoint add {self._now.host} {' '.join(flags)} dev {self._device}")
        return True

    def restore(self) -> None:
        """Restore the configuration that the interface had when this object was made.

        Raises:
            DeviceError: the configuration still differs.
        """
        if self.read() != self._original:
            self.take_down()
            self._gone = self._original
            self.bring_up()
        for host in dict.fromkeys(self._kept):
            self._phone.ip(f"addr del {host}/32 dev lo")
        self._kept.clear()
        state = self.read()
        if state != self._original:
            raise DeviceError(
                self._phone.name, f"{self._device} was not restored: it is {state}, and was {self._original}"
            )

    def _ip(self, *arguments: str) -> str:
        return self._phone.shell([self._phone.program(IP), *arguments], timeout_s=_COMMAND_TIMEOUT_S).stdout


def parse_neighbours(text: str) -> tuple[str, ...]:
    """Parse lines of `ip neigh`: ``10.64.1.1 lladdr 02:… PERMANENT`` → ``10.64.1.1 lladdr 02:… nud permanent``."""
    return tuple(
        re.sub(r"\s+PERMANENT.*$", " nud permanent", line.strip()) for line in text.splitlines() if "lladdr" in line
    )


def parse_routes(text: str) -> tuple[str, ...]:
    """Parse ``ip route show table all dev X``; return the routes, sorted, without those that the kernel adds itself."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return tuple(sorted(re.sub(r" linkdown| dead", "", line) for line in lines if line and "proto kernel" not in line))


def parse_rules(text: str, host: str) -> tuple[str, ...]:
    """Parse the rules for the address `host`: ``101: from HOST lookup 101`` → ``priority 101 from HOST lookup 101``."""
    rules = re.findall(r"^(\d+):\s+(from (\S+) .*?)\s*$", text, re.MULTILINE)
    return tuple(f"priority {priority} {rule}" for priority, rule, source in rules if source == host)


def parse_endpoints(text: str, device: str) -> tuple[Endpoint, ...]:
    """Parse lines ``10.64.1.2 id 1 subflow backup dev wlan0``; return the endpoints of `device`."""
    matches = (re.fullmatch(r"\s*(\S+) id (\d+) (.*?)\s*dev (\S+)\s*", line) for line in text.splitlines())
    return tuple(Endpoint(m[1], tuple(m[3].split()), int(m[2])) for m in matches if m and m[4] == device)
