"""A test bench: an emulated phone wired to an engine's host, with or without a router. mplab did not build it.

The router is a virtual one and is reached over SSH, as a real one is. Its kernel has netem; the host's may lack it.
"""

import contextlib
import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mplab.base.nodes import Node
from mplab.base.paths import RMNET, WLAN
from mplab.base.programs import ADB, ETHTOOL, OF_VIRTUAL_ROUTER
from mplab.device import Device, DeviceSettings
from mplab.device.system.toolbox import NEEDED as DEVICE_PROGRAMS
from mplab.drivers.phone.adb.link import Link
from mplab.drivers.phone.adb.root import Root
from mplab.drivers.phone.adb.server import AdbServer
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.drivers.shaper.virtual.driver import VirtualRouterFile
from mplab.drivers.shaper.virtual.router import VirtualRouter
from mplab.lab import topology
from mplab.userfiles.labs.machines import ShapingMachine
from tests.docker.engine import Engine

SERVER = topology.PROXY
"""Address of the engine's host, towards the phone."""
CELLULAR = "rmnet_data0"
"""Name of the cellular interface on this phone."""

_DEVICES = {WLAN: WLAN, RMNET: CELLULAR}
_HOLD = """
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
echo ready
exec sleep infinity
"""
_SEEN_ON_PHONE = """
ip rule; ip mptcp endpoint; ip mptcp limits; cat /proc/sys/net/mptcp/enabled
iptables-save | grep '^-A'; ip6tables-save | grep '^-A'
grep . /proc/sys/net/ipv6/conf/*/disable_ipv6; ls /data/local/tmp/mplab | grep run-
settings get global stay_on_while_plugged_in
true
"""
_SEEN_ON_ROUTER = """
/sbin/tc qdisc show; ip link show | sed 's/^[0-9]*: //' | grep -v link/ether
ls -d /tmp/mplab 2>/dev/null
true
"""


def why_not() -> str:
    """Return why there can be no bench on this machine; "" if there can."""
    missing = [program for program in (*DEVICE_PROGRAMS, ADB) if program.find() is None]
    return f"a test bench needs {'; '.join(program.remedy for program in missing)}" if missing else ""


def why_no_router() -> str:
    """Return why the paths of a bench cannot pass a router on this machine; "" if they can."""
    missing = [program for program in OF_VIRTUAL_ROUTER if program.find() is None]
    if missing:
        return f"a router needs {'; '.join(program.remedy for program in missing)}"
    return ""


class Bench:
    """The bench; it exists until the end of its context.

    Args:
        directory: for the router's file system, keys and logs.
        engine: the phone reaches its host.
        routed: both paths pass a router, which can shape them.
    """

    def __init__(self, directory: Path, engine: Engine, *, routed: bool = False) -> None:
        self._directory = directory
        self._engine = engine
        self._router: VirtualRouter | None = None
        self._routed = routed
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._bring_up()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _bring_up(self) -> None:
        self._directory.mkdir(parents=True)
        phone, engine = self._node("phone"), self._engine.node
        if self._routed:
            router = self._node("router")
            self._wire(router, "lan", engine, "to-bench")
            engine.ip(
                f"link set to-bench address {topology.mac('proxy', topology.PROXY_LAN)}",
                f"addr add {SERVER}/24 dev to-bench",
                "link set to-bench up",
                f"route add 10.64.0.0/16 via {topology.ROUTER_LAN}",
            )
            self._wire(phone, WLAN, router, "wlan")
            self._wire(phone, CELLULAR, router, "rmnet")
        else:
            engine.ip(f"addr add {SERVER}/32 dev lo")
            self._stack.callback(engine.run, ["ip", "addr", "del", f"{SERVER}/32", "dev", "lo"], check=False)
            for role, device in _DEVICES.items():
                self._wire(phone, device, engine, f"to-{role}")
                engine.ip(f"addr add {topology.GATEWAYS[role]}/24 dev to-{role}", f"link set to-{role} up")
        phone.ip(*_phone_commands())
        phone.sysctl({"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.tcp_no_metrics_save": 1})
        if self._routed:
            self._boot_router(router)
        self.device = self._stack.enter_context(Device(DeviceSettings(), phone))
        if self._router is not None:
            self._router.wait()

    def _boot_router(self, node: Node) -> None:
        entry = ShapingMachine("virtual", "routers", "wifi", VirtualRouterFile.model_validate({"driver": "virtual"}))
        log, wiring = self._directory / "router.log", topology.router_wiring()
        self._router = VirtualRouter(entry, node=node, wiring=wiring, directory=self._directory, log=log)
        self._stack.callback(self._router.stop)
        self._router.start()

    def _node(self, name: str) -> Node:
        holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--", "sh", "-c", _HOLD],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._stack.callback(_end, holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        return Node(name, holder.pid)

    def _wire(self, one: Node, here: str, other: Node, there: str) -> None:
        Node("host", os.getpid()).ip(f"link add {here} netns {one.pid} type veth peer name {there} netns {other.pid}")
        for node, interface in ((one, here), (other, there)):
            node.run([str(ETHTOOL.path()), "-K", interface, "tso", "off", "gso", "off", "gro", "off"])
        self._stack.callback(other.run, ["ip", "link", "del", there], check=False)

    def seen(self) -> list[str]:
        """Return all state of phone and router that a run could have changed."""
        with AdbServer(self._directory / "adb") as server:
            link = Link(server, self.device.address)
            link.connect()
            phone = link.run(Root.SU_C.line(_SEEN_ON_PHONE)).stdout.decode()
        return [*phone.splitlines(), *(self._seen_on_router() if self._router is not None else [])]

    def _seen_on_router(self) -> list[str]:
        assert self._router is not None
        ssh = SshConnection("router wifi", self._router.machine.settings)
        ssh.connect()
        try:
            return ssh.run(_SEEN_ON_ROUTER).stdout.splitlines()
        finally:
            ssh.close()

    def lab(self, **phone: object) -> dict[str, Any]:
        """Return the content of the lab file; `phone` overrides keys of the phone's entry."""
        entry: dict[str, Any] = {"driver": "adb", "serial": self.device.address, "ready": {"idle_for": "0 s"}}
        content: dict[str, Any] = {
            "mplab": 1,
            "name": "bench",
            "phones": {"bench-1": entry},
            "proxy": {"driver": "docker", "engine": self._engine.url, "listen": [SERVER]},
        }
        if self._router is not None:
            router = self._router.machine.settings.model_dump(mode="json", exclude_defaults=True)
            content["routers"] = {"wifi": {**router, "dead_man": "60 s"}}
            entry["wifi"] = {"router": "wifi", "ip": topology.PHONE_WLAN}
            entry["lte"] = {"router": "wifi", "interface": "rmnet"}
        entry.update(phone)
        return content


def _phone_commands() -> list[str]:
    """Return commands for addresses and for policy routing like Android's: one table for each interface."""
    commands = []
    for number, (role, address) in enumerate(topology.PHONE_INTERFACES.items()):
        device, gateway, table = _DEVICES[role], topology.GATEWAYS[role], topology.ROUTE_TABLES[role]
        commands += [
            f"link set {device} address {topology.mac('phone', role)}",
            f"addr add {address}/24 dev {device}",
            f"link set {device} up",
            f"route add default via {gateway} dev {device} table {table}",
            f"route add default via {gateway} dev {device} metric {100 + number}",
            f"rule add from {address} table {table} priority {table}",
            f"rule add oif {device} table {table} priority {table + 100}",
        ]
    return commands


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all others in its network: a killed user-mode Linux leaves stopped processes behind."""
    network = Path(f"/proc/{process.pid}/ns/net").readlink()
    for other in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (other / "ns" / "net").readlink() == network:
                os.kill(int(other.name), signal.SIGKILL)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
