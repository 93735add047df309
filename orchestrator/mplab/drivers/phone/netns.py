"""Virtual phone: a network namespace (node) on this machine, with two interfaces."""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mplab.base.configs import write_private
from mplab.base.counters import parse_interfaces, parse_netstat
from mplab.base.nodes import Node
from mplab.drivers.phone.protocol import PhoneIdentity
from mplab.drivers.phone.routes import primary_command


@dataclass(frozen=True, eq=False, kw_only=True)
class NetnsPhone(Node):
    """`Phone` as a node of the virtual lab: phone and host share their files.

    Attributes:
        interfaces: interface name → IPv4 address.
        gateways: interface name → address of its router.
        directory: folder for the phone's private files; removed with the lab.
        congestion_control: algorithm of the connections that use the default route; "": that of each socket.
    """

    interfaces: Mapping[str, str]
    gateways: Mapping[str, str]
    directory: Path
    congestion_control: str = ""

    @property
    def devices(self) -> Mapping[str, str]:
        """Map each interface name to itself: the virtual phone uses mplab's names."""
        return {name: name for name in self.interfaces}

    def identity(self) -> PhoneIdentity:
        """Return name, model, system and kernel of the phone."""
        return PhoneIdentity(
            name=self.name, model="virtual phone", os=platform.freedesktop_os_release()["PRETTY_NAME"],
            kernel=platform.release(),
        )  # fmt: skip

    shell = Node.run
    """See `Phone`."""

    def keep(self, name: str, text: str) -> str:
        """Write a file that only its owner can read; return its path."""
        path = self.directory / name
        write_private(path, text)
        return str(path)

    def push(self, source: Path, target: str) -> None:
        """Copy a host file to the phone; both share one file system."""
        shutil.copyfile(source, target)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from the phone to the host; both share one file system."""
        shutil.copyfile(source, target)

    def prefer(self, interface: str) -> None:
        """Make an interface the default route of the phone."""
        self.ip(primary_command(interface, self.gateways[interface], self.congestion_control))

    def counters(self) -> Mapping[str, int]:
        """Return kernel counters, ``"TcpExt.TCPTimeouts"`` …, and interface counters, ``"wlan0.rx_bytes"`` …"""
        protocols = parse_netstat(self.shell(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)
        return protocols | parse_interfaces(self.shell(["cat", "/proc/net/dev"]).stdout)
