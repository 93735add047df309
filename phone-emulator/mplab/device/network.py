"""Manage the interfaces ``wlan0`` and ``rmnet0`` in the device's network namespace."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from mplab.base.errors import DeviceError
from mplab.base.programs import IP, NFT, NSENTER
from mplab.device.system import System

WLAN, RMNET = "wlan0", "rmnet0"

_PRIVATE = {
    # interface: (address of the phone, its router)
    WLAN: ("192.168.49.2/24", "192.168.49.1"),
    RMNET: ("10.176.0.2/30", "10.176.0.1"),
}
_TABLES = {WLAN: 1010, RMNET: 1011}
_METRICS = {WLAN: 100, RMNET: 200}
_SYSCTLS = (
    "net.ipv4.ip_forward",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.default.disable_ipv6",
    "net.mptcp.enabled",
    "net.mptcp.pm_type",
    "net.mptcp.checksum_enabled",
)
"""Kernel parameters that a reboot of the device resets, if the device uses the network namespace of a lab."""
_KERNELS_OWN = ("local", "broadcast", "multicast", "anycast", "unreachable")


@dataclass(frozen=True)
class _Configuration:
    """The configuration that an interface gets whenever it comes up.

    Attributes:
        addresses: IP addresses with prefix lengths.
        routes: routes as arguments of ``ip route``, without ``dev``.
        mtu: largest IP packet, bytes.
    """

    addresses: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    mtu: int = 1500


@dataclass
class DeviceNetwork:
    """The network interfaces of a device.

    Attributes:
        system: system of the device.
        private: True: the device has its own network namespace, whose interfaces and routers are made at every
            boot. False: it uses the namespace of a lab's node.
        configurations: name of an interface → its configuration at power-on.
    """

    system: System
    private: bool
    configurations: dict[str, _Configuration] = field(default_factory=dict)
    _rules: tuple[str, ...] = ()
    _sysctls: tuple[str, ...] = ()
    _nft: str = ""

    async def begin(self) -> None:
        """Prepare the network at each boot. If the device has its own network namespace, create its interfaces.

        The first call also stores the configuration that later reboots restore.
        """
        if self.private:
            await self._make_private()
        await self._namespace(["sysctl", "-q", "-w", "net.ipv4.ping_group_range=0 2147483647"], check=False)
        if not self.configurations:
            for interface in (WLAN, RMNET):
                if configuration := await self._configuration(interface):
                    self.configurations[interface] = configuration
            if not self.private:
                self._rules = tuple(await self._rule_list())
                _code, text, _err = await self._namespace(["sysctl", "-e", *_SYSCTLS], check=False)
                self._sysctls = tuple(line.replace(" = ", "=") for line in text.splitlines())
                self._nft = (await self._namespace([str(NFT.path()), "list", "ruleset"], check=False))[1]

    async def forget(self) -> None:
        """Undo the device's changes to a lab's network, as a reboot does, and take both interfaces down.

        This resets qdiscs, rules, nftables, MPTCP endpoints and `_SYSCTLS`. A private network is not changed.
        """
        if self.private:
            return
        for interface in self.configurations:
            await self.down(interface)
            for kind in ("root", "ingress"):
                await self._namespace(["tc", "qdisc", "del", "dev", interface, kind], check=False)
        added = [rule for rule in await self._rule_list() if rule not in self._rules]
        lost = [rule for rule in self._rules if rule not in await self._rule_list()]
        lines = [f"rule del {_rule(rule)}" for rule in added] + [f"rule add {_rule(rule)}" for rule in lost]
        await self._ip(lines, force=True)
        ruleset = f"flush ruleset\n{self._nft}"
        await self._namespace([str(NFT.path()), "-f", "-"], stdin=ruleset, check=False)
        await self._namespace([str(IP.path()), "mptcp", "endpoint", "flush"], check=False)
        await self._namespace(["sysctl", "-q", "-e", "-w", *self._sysctls], check=False)

    async def up(self, interface: str) -> None:
        """Bring an interface up with the addresses and routes that it had at power-on. Ignore missing interfaces."""
        if configuration := self.configurations.get(interface):
            await self._ip([f"link set {interface} mtu {configuration.mtu} up"])
            addresses = [f"addr replace {address} dev {interface}" for address in configuration.addresses]
            routes = [f"route replace {route} dev {interface}" for route in configuration.routes]
            await self._ip([*addresses, *routes], force=True)

    async def down(self, interface: str) -> None:
        """Take an interface down, and remove its addresses and routes."""
        if interface in self.configurations:
            await self._ip([f"addr flush dev {interface}", f"link set {interface} down"])

    async def restore(self) -> None:
        """Restore a lab's network to its state at power-on, with both interfaces up."""
        if not self.private and self.system.pid:
            await self.forget()
            for interface in self.configurations:
                await self.up(interface)

    def address(self, interface: str) -> str:
        """Return the IPv4 address of an interface at power-on, like ``10.64.1.2/24``; "" if it has none."""
        configuration = self.configurations.get(interface)
        return next((address for address in configuration.addresses if ":" not in address), "") if configuration else ""

    def gateway(self, interface: str) -> str:
        """Return the default gateway of an interface at power-on, like ``10.64.1.1``; "" if it has none."""
        configuration = self.configurations.get(interface)
        for route in configuration.routes if configuration else ():
            words = route.split()
            if words[0] == "default" and "via" in words:
                return words[words.index("via") + 1]
        return ""

    async def counters(self) -> dict[str, tuple[int, int, int, int]]:
        """Return a mapping: name of each interface → received bytes, received packets, sent bytes, sent packets."""
        _code, text, _err = await self._namespace([str(IP.path()), "-j", "-s", "link"], check=False)
        counters = {}
        for link in json.loads(text or "[]"):
            received, sent = link["stats64"]["rx"], link["stats64"]["tx"]
            counters[link["ifname"]] = (received["bytes"], received["packets"], sent["bytes"], sent["packets"])
        return counters

    async def _configuration(self, interface: str) -> _Configuration | None:
        shown = [str(IP.path()), "-j", "addr", "show", "dev", interface]
        code, infos_text, _err = await self._namespace(shown, check=False)
        if code:
            return None
        infos = [info for link in json.loads(infos_text) for info in link.get("addr_info", ())]
        addresses = [f"{info['local']}/{info['prefixlen']}" for info in infos if info.get("scope") == "global"]
        _code, text, _err = await self._namespace(
            [str(IP.path()), "route", "show", "table", "all", "dev", interface], check=False
        )
        routes = [line.strip() for line in text.splitlines() if not line.startswith(_KERNELS_OWN)]
        own = tuple(route for route in routes if "proto kernel" not in route)
        return _Configuration(tuple(addresses), own, json.loads(infos_text)[0]["mtu"])

    async def _rule_list(self) -> list[str]:
        _code, text, _err = await self._namespace([str(IP.path()), "rule", "show"], check=False)
        return [line.strip() for line in text.splitlines()]

    async def _make_private(self) -> None:
        """Make ``wlan0`` and ``rmnet0``, and their routers in a second network namespace; configure both ends."""
        holder = await self.system.spawn(
            ["/usr/bin/unshare", "--net", "/system/bin/sh", "-c", "echo ready; exec -a netd /system/bin/applet"],
            uid=0,
            env={"APPLET_APP": "1"},
        )
        assert holder.stdout is not None  # noqa: S101 - it has pipes
        if (await holder.stdout.readline()).strip() != b"ready":
            raise DeviceError("device", "no second network namespace could be made")
        air = psutil.Process(holder.pid).children()[0].pid
        lines = ["link set lo up"]
        for interface, (address, router) in _PRIVATE.items():
            lines += [
                f"link add {interface} type veth peer name {interface} netns {air}",
                f"addr add {address} dev {interface}",
                f"link set {interface} up",
                f"route add default via {router} dev {interface} metric {_METRICS[interface]}",
                f"route add default via {router} dev {interface} table {_TABLES[interface]}",
                f"rule add from {address.split('/')[0]} table {_TABLES[interface]} priority {_TABLES[interface]}",
            ]
        # A link whose other end is down has no routes: first configure the routers, then the phone.
        await self._ip([line for line in lines if line.startswith("link add")])
        routers = ["link set lo up"]
        for interface, (address, router) in _PRIVATE.items():
            routers += [f"addr add {router}/{address.split('/')[1]} dev {interface}", f"link set {interface} up"]
        await self._ip(routers, pid=air)
        await self._ip([line for line in lines if not line.startswith("link add")])

    async def _ip(self, lines: Sequence[str], *, force: bool = False, pid: int | None = None) -> None:
        if not lines:
            return
        argv = [str(IP.path()), *(["-force"] if force else []), "-batch", "-"]
        await self._namespace(argv, stdin="\n".join(lines) + "\n", check=not force, pid=pid)

    async def _namespace(
        self, argv: Sequence[str], *, stdin: str = "", check: bool = True, pid: int | None = None
    ) -> tuple[int, str, str]:
        """Run a program of this machine in a network namespace. Return exit code, output and error output.

        Args:
            argv: command line.
            stdin: text for the program's standard input.
            check: True: raise an error if the program fails.
            pid: process in the network namespace; None: the device's first process.

        Raises:
            DeviceError: the program failed, and `check` is True.
        """
        pid = pid or self.system.pid
        process = await asyncio.create_subprocess_exec(
            *[str(NSENTER.path()), f"--net=/proc/{pid}/ns/net", "--", *argv],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        code = process.returncode or 0
        if code and check:
            raise DeviceError(
                "device", "its network did not do this", command=tuple(argv), exit_code_found=code, stderr=err.decode()
            )
        return code, out.decode(), err.decode()


def _rule(line: str) -> str:
    """Convert a line of ``ip rule``, like ``101:\tfrom 10.64.1.2 lookup 101``, to arguments of ``ip rule add``."""
    priority, _, rule = line.partition(":")
    return f"{rule.strip().replace('[detached] ', '')} priority {priority}"
