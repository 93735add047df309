"""Run a virtual router: user-mode Linux, an ordinary program that replaces the lab's node ``router``.

mplab controls the virtual router over SSH like a real one.
"""

import base64
import os
import shutil
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mplab.base.configs import write_private
from mplab.base.errors import DeviceError, LabNotReadyError, last_words
from mplab.base.nodes import Node, NodeProcess
from mplab.base.programs import ETHTOOL, UML, UML_XSTATE
from mplab.drivers.shaper.driver import Wiring
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.driver import DRIVER as OPENWRT
from mplab.drivers.shaper.openwrt.driver import RouterFile
from mplab.drivers.shaper.tc.ssh import SshConnection, fingerprint
from mplab.drivers.shaper.virtual.driver import VirtualRouterFile
from mplab.drivers.shaper.virtual.image import Port, build
from mplab.userfiles.labs.machines import ShapingMachine

MEMORY = "96M"
_FIRST = ("nice", "-n", "-15")
"""Command prefix that raises the priority, if permitted, so that other programs of the host do not delay the router."""
_SHORTEST_LIFE_S = 1.0
_MOST_SHORT_LIVES = 3
_STOP_S = 2.0


class VirtualMachine:
    """Virtual machine that is booted again whenever its process ends, because user-mode Linux ends on a reboot.

    Args:
        name: name in messages: ``router wifi``.
        node: node to whose interfaces the ports of the machine are connected.
        root: root file system.
        ports: interfaces of the machine, ``vec0`` first.
        log: file for the console output.
    """

    def __init__(self, name: str, node: Node, *, root: Path, ports: Sequence[Port], log: Path) -> None:
        self._name = name
        self._node = node
        self._argv = _argv(root, ports)
        self._log = log
        self._process: NodeProcess | None = None
        self._stopping = threading.Event()
        self._restarter = threading.Thread(target=self._restart, name=f"{name} power", daemon=True)
        self._given_up = False

    def start(self) -> None:
        """Boot the machine; from now on, it is booted again whenever its process ends."""
        self._process = self._boot()
        self._restarter.start()

    def _boot(self) -> NodeProcess:
        # Its memory is a file in this folder, in the lab's own tmpfs.
        env = {"TMPDIR": "/dev/shm"}  # noqa: S108
        if UML_XSTATE.exists():
            env["LD_PRELOAD"] = str(UML_XSTATE)
        return self._node.spawn(self._argv, log=self._log, env=env)

    def _restart(self) -> None:
        short_lives = 0
        while self._process is not None:
            booted = time.monotonic()
            while self._process.wait(1.0) is None:
                pass
            short_lives = short_lives + 1 if time.monotonic() - booted < _SHORTEST_LIFE_S else 0
            if short_lives == _MOST_SHORT_LIVES:
                self._given_up = True
            if self._given_up or self._stopping.is_set():
                return
            self._process = self._boot()

    def check_alive(self) -> None:
        """Raise DeviceError when the machine has ended three times in a row within 1 s after booting."""
        if self._given_up:
            raise DeviceError(self._name, "the virtual machine ends as soon as it boots", stderr=last_words(self._log))

    def stop(self) -> None:
        """Stop the machine; it is not booted again."""
        self._stopping.set()
        if self._process is not None:
            self._process.stop(_STOP_S)
            self._restarter.join()


def _argv(root: Path, ports: Sequence[Port]) -> list[str]:
    plugs = [f"vec{number}:{port.plug},depth=128,mac={port.mac}" for number, port in enumerate(ports)]
    return [
        *_FIRST,
        *(str(UML.path()), f"mem={MEMORY}", "umid=router", "uml_dir=/run/uml/", "root=/dev/root", "quiet", "noreboot"),
        *("rootfstype=hostfs", f"rootflags={root}", "rw", "init=/sbin/init", *plugs),
        *("con0=null,fd:1", "con=null", "ssl=null"),
    ]


_BOOT_TIMEOUT_S = 90.0
_POLL_S = 0.1
_MANAGEMENT, _MANAGEMENT_MAC = "management", "02:6d:70:00:01:01"
_GUARD_ORDER = "S96"
"""Start order of the dead-man's switch among the init scripts (``/etc/rc.d``)."""
_BPF_LD_BYTE, _BPF_JEQ, _BPF_RET = 0x30, 0x15, 0x06
_SKF_AD_OFF, _SKF_AD_PKTTYPE = 0xFFFFF000, 4
_PACKET_OUTGOING, _WHOLE_PACKET = 4, 0xFFFFFFFF
"""Constants from <linux/filter.h> and <linux/if_packet.h>."""
_RADIO = {"wireless.radio0": "wifi-device", "wireless.default_radio0": "wifi-iface"}


class VirtualRouter:
    """A virtual router (`BootedMachine`): `start` wires and boots it, `wait` returns when it answers over SSH.

    Args:
        entry: entry of the router in the lab file.
        node: node of the lab that the router replaces; the node's interfaces have no addresses.
        wiring: wires and routes of `node`.
        directory: private folder for the router's file system and the login key.
        log: file for the router's console output.
    """

    def __init__(
        self, entry: ShapingMachine[VirtualRouterFile], *, node: Node, wiring: Wiring, directory: Path, log: Path
    ) -> None:
        name = entry.name
        self._entry = entry
        self._node = node
        self._wiring = wiring
        self._root = directory / f"router-{name}"
        self._key = directory / f"router-{name}.key"
        self._log = log
        self._host_key = ""
        self._received = directory / "incoming.bpf"
        self._ports = _ports(wiring, self._received)
        self._machine = VirtualMachine(f"router {name}", node, root=self._root, ports=self._ports, log=log)

    def start(self) -> None:
        """Wire the router, build its file system, and boot it."""
        root = Node("lab", os.getpid())
        pid = self._node.pid
        root.ip(
            f"link add {_MANAGEMENT} type veth peer name {_MANAGEMENT} netns {pid}",
            f"addr add {self._wiring.management[0]} dev {_MANAGEMENT}",
            f"link set {_MANAGEMENT} up",
        )
        self._node.ip(*(f"link set {port.name} up" for port in self._ports))
        for node in (root, self._node):
            node.run([str(ETHTOOL.path()), "-K", _MANAGEMENT, "tso", "off", "gso", "off", "gro", "off"])
        self._root.mkdir()
        self._received.write_bytes(_incoming_alone())
        key, commands = self._make_key(), _commands(self._wiring)
        self._host_key = build(self._root, client_key=key, ports=self._ports, commands=commands, options=_RADIO)
        self._install_guard()
        self._machine.start()

    def _make_key(self) -> str:
        """Make a key pair for the login over SSH and save its private half; return its public half."""
        private = Ed25519PrivateKey.generate()
        text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
        write_private(self._key, text)
        return private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()

    def _install_guard(self) -> None:
        """Copy the files of the dead-man's switch into the router's file system, like ``mplab router install``."""
        for path, source in guard.INSTALLED.items():
            target = self._root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            target.chmod(0o755)
        (self._root / "etc/rc.d" / f"{_GUARD_ORDER}mplab-guard").symlink_to("/etc/init.d/mplab-guard")

    @property
    def machine(self) -> ShapingMachine[RouterFile]:
        """Entry that describes this router like a real OpenWrt router, so that mplab can hold it."""
        host_key = paramiko.Ed25519Key(data=base64.b64decode(self._host_key.split()[1]))
        towards = self._wiring.towards
        settings = RouterFile.model_validate(
            {
                "host": self._wiring.management[1].split("/")[0],
                "key": str(self._key),
                "host_key": fingerprint(host_key),
                "interface": next(iter(towards.values())),
                **self._entry.settings.model_dump(mode="json", exclude={"driver"}),
            }
        )
        paths = tuple(replace(path, at=towards[path.interface]) for path in self._entry.paths)
        return ShapingMachine(OPENWRT.name, self._entry.section, self._entry.name, settings, paths)

    def wait(self) -> dict[str, str]:
        """Wait until the router answers over SSH; return the versions of its kernel, tc and busybox.

        Raises:
            LabNotReadyError: the router does not boot within 90 s.
            DeviceError: the virtual machine ends whenever it boots.
        """
        ssh = SshConnection(self._entry.label, self.machine.settings)
        deadline = time.monotonic() + _BOOT_TIMEOUT_S
        while True:
            try:
                self._machine.check_alive()
                ssh.connect()
                break
            except LabNotReadyError as error:
                if time.monotonic() > deadline:
                    text = f"{error}. The virtual router did not boot within {_BOOT_TIMEOUT_S:g} s"
                    raise LabNotReadyError(f"{text}: {last_words(self._log)}") from error
                time.sleep(_POLL_S)
        try:
            lines = ssh.run("uname -srm; /sbin/tc -V; busybox | head -n 1 | cut -d' ' -f1,2").stdout.splitlines()
        finally:
            ssh.close()
        return dict(zip(("kernel", "tc", "busybox"), lines, strict=False))

    def check_alive(self) -> None:
        """Raise DeviceError when the virtual machine has ended and will not be booted again."""
        self._machine.check_alive()

    def stop(self) -> None:
        """Stop the router."""
        self._machine.stop()


def _ports(wiring: Wiring, received: Path) -> list[Port]:
    """Return the ports of the router. They receive the packets that the BPF program in the file `received` selects."""
    names = {**wiring.ports, _MANAGEMENT: (wiring.management[1], _MANAGEMENT_MAC)}
    return [
        Port(name, address, mac, f"transport=raw,ifname={name},bpffile={received}")
        for name, (address, mac) in names.items()
    ]


def _incoming_alone() -> bytes:
    """Return a BPF program (`struct sock_filter`) for the router's ports that drops outgoing packets.

    A packet socket also sees packets that other sockets send through its interface. Without the filter, the router
    would receive its own packets and shape them a second time.
    """
    load_type = (_BPF_LD_BYTE, 0, 0, _SKF_AD_OFF + _SKF_AD_PKTTYPE)
    instructions = [load_type, (_BPF_JEQ, 0, 1, _PACKET_OUTGOING), (_BPF_RET, 0, 0, 0), (_BPF_RET, 0, 0, _WHOLE_PACKET)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _commands(wiring: Wiring) -> list[str]:
    """Return the shell commands that set the routes and known neighbours of the router."""
    return [
        *(f"ip {route}" for route in wiring.routes),
        *(f"arp -i {interface} -s {address} {known}" for interface, address, known in wiring.neighbours),
    ]
