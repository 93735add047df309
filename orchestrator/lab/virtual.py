"""The virtual lab: phone, radio links, router, proxy and origin on this machine alone.

Everything here runs inside the private namespaces of `orchestrator.lab.enter`, so nothing of it is registered
for undo: when the lab's first process ends, the kernel takes all of it away.
"""

import os
import platform
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.capture import CapturePoint
from orchestrator.configs import write_private
from orchestrator.errors import DeviceError
from orchestrator.lab import topology
from orchestrator.lab.nodes import Node, start_node
from orchestrator.origin import Origin
from orchestrator.phone.netns import NetnsPhone
from orchestrator.phone.sound import SoundCard
from orchestrator.programs import ETHTOOL, NFT
from orchestrator.proxy.process import ProcessProxy
from orchestrator.services import RunningServices, Service
from orchestrator.shaper.linkem import LinkemShaper
from orchestrator.transport import Transport
from orchestrator.transport.agent import Agent
from orchestrator.ui import UiFactory
from orchestrator.ui.appium import AppiumServer
from orchestrator.ui.console import ConsoleLog
from orchestrator.ui.factory import ChromiumUiFactory
from orchestrator.ui.firefox_factory import FirefoxUiFactory
from orchestrator.undo import UndoStack

SCRATCH = Path("/run/mplab")
"""Where the lab keeps what must not outlive it: a tmpfs of its own mount namespace."""

_SECRET_BYTES = 32


class VirtualLab:
    """A lab that is up for as long as its context.

    Args:
        seed: of the link emulator.
        congestion_control: pinned on every socket between agent and proxy.
        logs: host folder for the logs of the lab's programs.
        services: what the origin has beside web sites and files.
    """

    def __init__(self, *, seed: int, congestion_control: str, logs: Path, services: Sequence[Service] = ()) -> None:
        self._seed = seed
        self.congestion_control = congestion_control
        self._logs = logs
        self._wanted = tuple(services)
        self._stack = ExitStack()
        self.nodes: dict[str, Node] = {}
        self.secret_file = SCRATCH / "secret"
        self._appium: AppiumServer | None = None

    def __enter__(self) -> Self:
        """Bring everything up; what has been started is stopped again when a part fails."""
        try:
            self._prepare_scratch()
            self._make_network()
            self._start_services()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything, in reverse order."""
        self._stack.__exit__(kind, error, trace)

    def _prepare_scratch(self) -> None:
        SCRATCH.mkdir(mode=0o700)
        (SCRATCH / "tmp").mkdir()
        os.environ["TMPDIR"] = str(SCRATCH / "tmp")
        write_private(self.secret_file, secrets.token_hex(_SECRET_BYTES))
        self._logs.mkdir(parents=True, exist_ok=True)

    def _make_network(self) -> None:
        resolv = SCRATCH / "resolv.conf"
        resolv.write_text(f"nameserver {topology.DNS}\noptions timeout:5 attempts:1\n")
        nsswitch = SCRATCH / "nsswitch.conf"
        nsswitch.write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        hosts = SCRATCH / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {platform.node()}\n")
        target = Path("/etc/resolv.conf").resolve()
        if target.is_relative_to("/run"):  # the host's is in /run, which the lab has emptied
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        for name in topology.NODES:
            files = {resolv: target, nsswitch: Path("/etc/nsswitch.conf"), hosts: Path("/etc/hosts")}
            self.nodes[name] = start_node(name, binds=files if name in {"phone", "peer"} else {})
        root = Node("lab", os.getpid())
        root.ip("link set lo up", *topology.wire_commands({name: node.pid for name, node in self.nodes.items()}))
        for name, node in self.nodes.items():
            self._configure(name, node)

    def _configure(self, name: str, node: Node) -> None:
        node.sysctl(_sysctls(name))
        for interface in topology.interfaces_of(name):
            node.run([str(ETHTOOL.path()), "-K", interface, "tso", "off", "gso", "off", "gro", "off"])
        node.ip(*topology.address_commands(name))
        if name == "phone":
            node.ip(*topology.phone_route_commands(topology.WLAN))
            node.run([str(NFT.path()), "-f", "-"], stdin=topology.REDIRECT_RULES)
        elif routes := topology.ROUTES.get(name):
            node.ip(*routes)
        if name == "proxy" and Path("/proc/sys/net/mptcp/enabled").exists():
            node.ip("mptcp limits set subflow 4 add_addr_accepted 0")
        self._pin_congestion_control(node)

    def _pin_congestion_control(self, node: Node) -> None:
        """Pin the default of the node's own sockets (nginx, curl) too.

        A namespace may choose only what the host lists as allowed, or reno; agent and proxy pin their own sockets.
        """
        knob = "/proc/sys/net/ipv4/tcp_congestion_control"
        node.run(["sh", "-c", f"echo {self.congestion_control} > {knob} 2>/dev/null || echo reno > {knob}"])

    def _start_services(self) -> None:
        nodes = self.nodes
        self.services = RunningServices(self._wanted, directory=SCRATCH / "services", host=nodes["origin"])
        self.origin = Origin(SCRATCH / "origin", additions=self.services)
        self.origin.prepare()
        self.origin.start(nodes["origin"], logs=self._logs)
        self._stack.callback(self.origin.stop)
        self._stack.callback(self.services.stop)
        self.services.start(self._logs)
        self.shaper = LinkemShaper(
            air=nodes["air"],
            phone=nodes["phone"],
            proxy=nodes["proxy"],
            directory=SCRATCH,
            wan_delay_ms={**self.origin.delay_by_prefix(), **self.services.delay_by_prefix()},
        )
        self._stack.callback(self.shaper.stop)
        self.shaper.start(seed=self._seed)
        self.proxy = ProcessProxy(
            nodes["proxy"],
            directory=SCRATCH,
            logs=self._logs,
            secret_file=self.secret_file,
            congestion_control=self.congestion_control,
            ports=self.services.ports,
        )
        self._stack.callback(self.proxy.stop)
        self.proxy.start()
        self.phone = NetnsPhone(nodes["phone"], topology.PHONE_INTERFACES, directory=SCRATCH / "phone")

    def capture_points(self) -> list[CapturePoint]:
        """Every place where a cell's packets are captured."""
        interfaces = (*topology.PHONE_INTERFACES, "lo")
        return [
            *(CapturePoint(self.phone, interface, f"phone-{interface}.pcapng") for interface in interfaces),
            self.proxy.capture_point,
        ]

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> UiFactory:
        """Opens browsers on the phone, or on the desktop peer; Appium starts when this is first called.

        Args:
            screenshots: where steps that fail leave screenshot and page source.
            keys: file for the keys of the browsers' TLS connections, or None.
            node: ``phone`` or ``peer``.
            browser: ``chromium`` or ``firefox``, which needs no Appium.
            console: keeps what pages write to the console, or None.
        """
        if browser == "firefox":
            return FirefoxUiFactory(
                enter=self.nodes[node].prefix,
                network_pid=self.nodes[node].pid,
                home=self._home(),
                directory=SCRATCH / f"browser-{node}",
                screenshots=screenshots,
                keys=keys,
                console=console,
            )
        if self._appium is None:
            self._appium = self._stack.enter_context(AppiumServer(self._logs / "appium.log"))
        return ChromiumUiFactory(
            server_url=self._appium.url,
            enter=self.nodes[node].prefix,
            home=self._home(),
            directory=SCRATCH / f"browser-{node}",
            screenshots=screenshots,
            keys=keys,
            console=console,
        )

    def open_sound(self, log: Path) -> SoundCard:
        """The phone's sound card, for as long as its context; its programs write to `log`."""
        return SoundCard(enter=self.nodes["phone"].prefix, directory=SCRATCH / "sound", log=log)

    def _home(self) -> Path:
        home = SCRATCH / "home"
        return home if home.exists() else self.origin.make_home(home)

    def set_up_transport(self, transport: Transport, *, logs: Path, undo: UndoStack) -> Agent:
        """Prepare phone and proxy for a transport, and the agent, which is not started yet; `undo` takes all back.

        Args:
            transport: how the phone's TCP travels.
            logs: folder for the agent's logs.
            undo: where every change registers its undo before it is made.
        """
        transport.setup(self.phone, undo)
        settings = transport.agent_settings()
        self.proxy.use(settings.session)
        agent = Agent(
            phone=self.phone,
            settings=settings,
            secret_file=self.secret_file,
            congestion_control=self.congestion_control,
            logs=logs,
        )
        undo.register("agent", agent.stop)
        return agent

    def origin_congestion_control(self) -> str:
        """What the origin's own sockets use (agent and proxy pin theirs)."""
        return self.nodes["origin"].run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout.strip()

    def check_alive(self) -> None:
        """Raise DeviceError when a program of the lab has died."""
        if not self.proxy.status()["running"]:
            raise DeviceError("proxy", "mpflex proxy has ended by itself; see logs/proxy.log")
        self.origin.check_alive()


def _sysctls(name: str) -> dict[str, object]:
    values: dict[str, object] = {
        # Nothing learnt in one cell (ssthresh, RTT) carries over to the next.
        "net.ipv4.tcp_no_metrics_save": 1,
        # Two interfaces on one host: answers leave by the route table, not by where the question came in.
        "net.ipv4.conf.all.rp_filter": 0,
        "net.ipv4.conf.default.rp_filter": 0,
        "net.ipv4.ip_forward": int(name in {"router", "proxy"}),
    }
    if Path("/proc/sys/net/ipv6").exists():
        values |= {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1}
    if name in {"phone", "proxy"} and Path("/proc/sys/net/mptcp/enabled").exists():
        values["net.mptcp.enabled"] = 1
    return values
