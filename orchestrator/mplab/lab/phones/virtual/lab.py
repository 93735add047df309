"""Run the virtual lab: phone, radio links, router, proxy and origin on this machine only.

Every part runs in the private namespaces of `mplab.base.enter`. No undo of the network is registered: when the lab's
first process ends, the kernel removes the namespaces with everything in them.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from mplab.base.counters import parse_netstat
from mplab.base.deferred import deferred
from mplab.base.errors import check_each
from mplab.base.nodes import Node
from mplab.base.programs import MPTCPIZE, NFT
from mplab.base.undo import UndoStack
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone import Phone
from mplab.drivers.phone.buffers import limit_receive_buffer
from mplab.drivers.phone.netns import NetnsPhone
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.proxy import ServerSettings, driver_of
from mplab.drivers.proxy.protocol import Servers
from mplab.drivers.shaper import Shaper
from mplab.drivers.shaper.driver import BootedMachine, EmulatedNetwork, emulator_driver, inside_driver_of
from mplab.drivers.shaper.protocol import Emulator
from mplab.drivers.transport import Transport
from mplab.drivers.transport.direct import Carrier, DirectRoute
from mplab.drivers.transport.redirect import direct_nft_rules, nft_rules
from mplab.drivers.ui import BrowserFactory
from mplab.drivers.ui.console import ConsoleLog
from mplab.format.captured import ORIGIN_CAPTURE
from mplab.format.sockets import SocketSettings
from mplab.lab import topology
from mplab.lab.base import BaseLab
from mplab.lab.driver import LabSettings
from mplab.lab.network import RESOLV_CONF, make_network, resolv_conf
from mplab.lab.topology import SCRATCH
from mplab.userfiles.labs.machines import ShapingMachine


def multipath_launcher() -> tuple[str, ...]:
    """Return the words before a command line that turn the program's TCP sockets into Multipath TCP sockets.

    Raises:
        LabNotReadyError: mptcpize is not installed.
    """
    return str(MPTCPIZE.path()), "run"


class VirtualLab(BaseLab):
    """The lab whose parts all run on this machine; see `Lab`.

    A lab file can replace the router by a virtual router, and proxy and origin by containers.
    """

    scratch = SCRATCH

    def __init__(self, settings: LabSettings) -> None:
        super().__init__(settings)
        self._direct_multipath = settings.direct_multipath
        self._router: BootedMachine | None = None
        self._facts: dict[str, dict[str, str]] = {}
        self._pinned = ""
        self.nodes: dict[str, Node] = {}
        self.endpoints = topology.endpoints()

    def _bring_up(self) -> None:
        self._prepare_scratch()
        self._make_network()
        self._start_services()

    def _prepare_scratch(self) -> None:
        SCRATCH.mkdir(mode=0o700)
        (SCRATCH / "tmp").mkdir()
        Path("/run/lock").mkdir(exist_ok=True)  # locks in here are this lab's own
        os.environ["TMPDIR"] = str(SCRATCH / "tmp")
        self._logs.mkdir(parents=True, exist_ok=True)
        self.servers = self._open_servers()

    def _open_servers(self) -> Servers:
        settings = ServerSettings(
            self._wanted,
            SCRATCH,
            self._logs,
            self.congestion_control,
            self.endpoints,
            interface=topology.PROXY_LAN,
            launcher=multipath_launcher() if self._direct_multipath else (),
        )
        return driver_of(self._use.proxy).open(self._use.proxy, settings)

    def _make_network(self) -> None:
        routers = self._use.inside()
        self.nodes = make_network(
            SCRATCH,
            replaced=[topology.ROUTER] if routers else [],
            networks=self.servers.networks,
            redirects=not self._use.android,
        )
        self.use_congestion_control(self.congestion_control)
        for machine in routers.values():
            self._boot_router(machine)

    def _boot_router(self, machine: ShapingMachine[BaseModel]) -> None:
        """Start to boot a virtual router. Other parts start in the meantime; `_make_shaper` waits for the router."""
        self._router = inside_driver_of(machine).open(
            machine,
            node=self.nodes[topology.ROUTER],
            wiring=topology.router_wiring(),
            directory=SCRATCH,
            log=self._logs / f"router-{machine.name}.log",
        )
        self._stack.callback(self._router.stop)
        self._router.start()

    def use_congestion_control(self, algorithm: str) -> None:
        """Set the default congestion control of all nodes, for programs that do not set their own (nginx, curl).

        If the host does not allow the algorithm in a namespace, use reno. Agent and proxy set the algorithm of their
        own sockets. Connections that a server accepts later use the new default.
        """
        if algorithm == self._pinned:
            return
        knob = "/proc/sys/net/ipv4/tcp_congestion_control"
        for node in self.nodes.values():
            node.run(["sh", "-c", f"echo {algorithm} > {knob} 2>/dev/null || echo reno > {knob}"])
        self._pinned = algorithm

    def _start_services(self) -> None:
        nodes = self.nodes
        servers = self.servers
        self._stack.callback(servers.stop)
        servers.start(nodes)
        self.phone = self._make_phone()
        emulator = emulator_driver().open(
            EmulatedNetwork(
                air=nodes["air"],
                phone=self.phone,
                proxy=nodes["proxy"],
                probe_server=self.endpoints.probe_server,
                directory=SCRATCH,
                wan_delay_ms=servers.delay_by_prefix(),
            )
        )
        self._emulator = emulator
        self._stack.callback(emulator.stop)
        emulator.start(seed=self._seed)
        servers.start_proxy()
        self.shaper = self._make_shaper(emulator)

    def _make_phone(self) -> Phone:
        node = self.nodes["phone"]
        return NetnsPhone(
            node.name,
            node.pid,
            node.holder,
            interfaces=topology.PHONE_INTERFACES,
            gateways=topology.GATEWAYS,
            directory=SCRATCH / "phone",
        )

    def _make_shaper(self, emulator: Emulator) -> Shaper:
        """Return the shaper of the lab: without a virtual router, the link emulator.

        With one, the shaper uses the router for the paths that the lab file assigns to it, and the emulator for others.
        """
        if self._router is None:
            return emulator
        with deferred("needed by few labs"):
            from mplab.drivers.shaper.split import held_inside
        self._facts = {self._router.machine.name: self._router.wait()}
        held = held_inside(self._use.phone, self._router, emulator, directory=SCRATCH, run_id=self._run_id)
        return self._stack.enter_context(held)

    def describe(self) -> Mapping[str, object]:
        """Return the node names; kernel, tc and busybox version of each virtual router; and facts about the servers."""
        return {"nodes": sorted(self.nodes), "routers": self._facts, **self.servers.describe()}

    def capture_points(self, *, direct: bool = False) -> list[CapturePoint]:
        """Return every capture point of a cell. On the direct route nothing passes the phone's loopback. See `Lab`."""
        interfaces = (*topology.PHONE_INTERFACES, *(() if direct else ("lo",)))
        origin = CapturePoint(self.nodes["origin"], "wan0", ORIGIN_CAPTURE)
        return [
            *(CapturePoint(self.phone, interface, f"phone-{interface}.pcapng") for interface in interfaces),
            origin if direct else self.proxy.capture_point,
        ]

    def prepare_apps(self, transport: Transport, undo: UndoStack) -> None:
        """Start the phone's apps with Multipath TCP sockets if the direct route of `transport` needs them. See `Lab`.

        Lookups leave the phone as datagrams, and lost ones are repeated as in `resolv_conf`.
        """
        resolv, phone = SCRATCH / RESOLV_CONF, self.phone
        if not transport.direct or not isinstance(phone, NetnsPhone):
            super().prepare_apps(transport, undo)
            return
        undo.register("phone: lookups by the agent", lambda: resolv.write_text(resolv_conf()))
        resolv.write_text(resolv_conf(direct=True))
        launcher = multipath_launcher() if transport.agent_settings().transport == "mptcp" else ()
        undo.register("phone: as before", lambda: setattr(self, "phone", phone))
        self.phone = replace(phone, launcher=launcher)

    def set_up_transport(
        self, transport: Transport, *, sockets: SocketSettings, logs: Path, undo: UndoStack
    ) -> Carrier:
        """Prepare the lab for a transport. On the direct route, the proxy's node only forwards packets. See `Lab`."""
        if not transport.direct:
            return super().set_up_transport(transport, sockets=sockets, logs=logs, undo=undo)
        if isinstance(self.phone, NetnsPhone):
            self.phone = replace(self.phone, congestion_control=sockets.congestion_control)
        phone, router, origin = self.phone, self.nodes[topology.ROUTER], self.nodes["origin"]
        plain, chosen = topology.sender_routes(), topology.sender_routes(sockets.congestion_control)
        undo.register("phone: congestion control of its routes", partial(phone.ip, *plain.phone))
        phone.ip(*chosen.phone)
        undo.register("origin: congestion control of its routes", partial(origin.ip, *plain.origin))
        origin.ip(*chosen.origin)
        transport.setup(phone, undo)
        if sockets.receive_buffer_bytes is not None:
            limit_receive_buffer(phone, sockets.receive_buffer_bytes, undo)
        device = transport.agent_settings().device
        for rule in topology.confine_rules(device) if device else ():
            undo.register(f"phone: no rule {rule}", partial(phone.ip, f"rule del {rule}"))
            phone.ip(f"rule add {rule}")
        undo.register("phone: redirect to the agent", lambda: self._filter(nft_rules(topology.PROXY)))
        self._filter(direct_nft_rules(topology.PROXY))
        undo.register("router: no route to the origin", lambda: router.ip(f"route del {topology.ROUTER_TO_ORIGIN}"))
        router.ip(f"route replace {topology.ROUTER_TO_ORIGIN}")
        return DirectRoute(phone, origin, logs)

    def _filter(self, rules: str) -> None:
        """Replace the phone's nft rules, in one transaction."""
        self.nodes["phone"].run([str(NFT.path()), "-f", "-"], stdin=f"delete table ip mplab\n{rules}")

    def origin_counters(self) -> Mapping[str, int]:
        """Return the kernel's network counters in the origin's node. See `Lab`."""
        return parse_netstat(self.nodes["origin"].run(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> BrowserFactory:
        """Return a factory of browsers on the phone or the desktop peer. The first call for Chromium starts Appium.

        Args:
            screenshots: folder for screenshots and page sources of failed steps.
            keys: file for the keys of the browsers' TLS connections, or None.
            node: ``phone`` or ``peer``.
            browser: ``chromium`` or ``firefox``, which needs no Appium.
            console: records what pages write to the console, or None.
        """
        if browser == "firefox":
            with deferred("slow to import"):
                from mplab.drivers.ui.firefox_factory import FirefoxUiFactory
            return FirefoxUiFactory(
                enter=self._prefix(node),
                network_pid=self.nodes[node].pid,
                home=self._home(),
                directory=SCRATCH / f"browser-{node}",
                screenshots=screenshots,
                keys=keys,
                console=console,
            )
        with deferred("slow to import"):
            from mplab.drivers.ui.factory import ChromiumUiFactory
        return ChromiumUiFactory(
            server_url=self._appium_url(),
            enter=self._prefix(node),
            home=self._home(),
            directory=SCRATCH / f"browser-{node}",
            screenshots=screenshots,
            keys=keys,
            console=console,
        )

    def open_sound(self, log: Path) -> SoundCard:
        """Return the phone's sound card, whose context is not yet entered; its programs log to `log`."""
        return SoundCard(enter=self._prefix("phone"), directory=SCRATCH / "sound", log=log)

    def _prefix(self, node: str) -> list[str]:
        """Return the words that precede the command line of an app on a node."""
        phone = self.phone
        return phone.prefix if node == phone.name and isinstance(phone, NetnsPhone) else self.nodes[node].prefix

    def _home(self) -> Path:
        home = SCRATCH / "home"
        return home if home.exists() else self.servers.make_home(home)

    def _checks(self) -> list[Callable[[], None]]:
        nodes = [node.check_alive for node in self.nodes.values()]
        router = [self._router.check_alive] if self._router is not None else []
        return [*nodes, *router, self.shaper.check_alive, *super()._checks()]

    def revive(self) -> list[str]:
        """Restart ended programs of the lab; return one sentence for each. See `Lab`.

        Nodes cannot be made again; a virtual router reboots by itself.
        """
        check_each(node.check_alive for node in self.nodes.values())
        return [*self._emulator.revive(), *super().revive()]
