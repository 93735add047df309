"""Virtual phone: a node with two interfaces on this machine."""

import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.configs import write_private
from mplab.base.counters import parse_interfaces, parse_netstat
from mplab.base.machine import CommandResult
from mplab.base.nodes import Node, NodeProcess
from mplab.base.programs import Program
from mplab.drivers.phone.protocol import PhoneIdentity
from mplab.drivers.phone.routes import primary_command


class NetnsPhone:
    """`Phone` as a node of the virtual lab.

    Args:
        node: network and mount namespace of the phone.
        interfaces: interface name → IPv4 address.
        gateways: interface name → address of its router.
        directory: folder for the phone's private files; removed with the lab.
    """

    def __init__(
        self, node: Node, interfaces: Mapping[str, str], *, gateways: Mapping[str, str], directory: Path
    ) -> None:
        self.node = node
        self._interfaces = dict(interfaces)
        self._gateways = dict(gateways)
        self._directory = directory

    @property
    def name(self) -> str:
        """Name in messages."""
        return self.node.name

    @property
    def interfaces(self) -> Mapping[str, str]:
        """Interface name → IPv4 address."""
        return self._interfaces

    @property
    def devices(self) -> Mapping[str, str]:
        """Map each interface name to itself: the virtual phone uses mplab's names."""
        return {name: name for name in self._interfaces}

    def identity(self) -> PhoneIdentity:
        """Return model, system and kernel."""
        return PhoneIdentity(
            name=self.name, model="virtual phone", os=platform.freedesktop_os_release()["PRETTY_NAME"],
            kernel=platform.release(),
        )  # fmt: skip

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command on the phone and wait for it. Raises DeviceError as `Phone.shell` does."""
        return self.node.run(argv, timeout_s=timeout_s, check=check, stdin=stdin)

    def program(self, program: Program) -> str:
        """Return the path of a program; phone and host share their files."""
        return self.node.program(program)

    def spawn(self, argv: Sequence[str], *, log: Path) -> NodeProcess:
        """Start a program on the phone."""
        return self.node.spawn(argv, log=log)

    def keep(self, name: str, text: str) -> str:
        """Write a file that only its owner can read; return its path."""
        path = self._directory / name
        write_private(path, text)
        return str(path)

    def outbox(self, target: Path) -> str:
        """Return the path of the file itself: phone and host share their files."""
        return self.node.outbox(target)

    def bring(self, target: Path) -> None:
        """Do nothing to the content: the file already exists on the host."""
        self.node.bring(target)

    def push(self, source: Path, target: str) -> None:
        """Copy a host file to the phone; both share one file system."""
        shutil.copyfile(source, target)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from the phone to the host; both share one file system."""
        shutil.copyfile(source, target)

    def ip(self, *commands: str) -> None:
        """Run ``ip`` commands as one batch. Raises DeviceError with the first command that failed."""
        self.node.ip(*commands)

    def prefer(self, interface: str) -> None:
        """Make an interface the default route of the phone."""
        self.ip(primary_command(interface, self._gateways[interface]))

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set kernel parameters of the phone's network namespace."""
        self.node.sysctl(values)

    def counters(self) -> Mapping[str, int]:
        """Return kernel counters, ``"TcpExt.TCPTimeouts"`` …, and interface counters, ``"wlan0.rx_bytes"`` …"""
        protocols = parse_netstat(self.shell(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)
        return protocols | parse_interfaces(self.shell(["cat", "/proc/net/dev"]).stdout)
