"""Define `EmulatedDevice`, which combines adbd, system, network and Android into a device."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from mplab.base.errors import DeviceError
from mplab.base.kernel import socket_in
from mplab.device.adbd import Channel, EmulatedAdbd, find_adbd
from mplab.device.android.android import Android
from mplab.device.android.commands import COMMANDS, NEED_SERVICES
from mplab.device.android.defaults import kernel_files
from mplab.device.android.model import PhoneModel
from mplab.device.android.state import State
from mplab.device.calls import CallServer, CommandCall, Handler
from mplab.device.network import DeviceNetwork
from mplab.device.screen import ScriptedScreen
from mplab.device.screen.protocol import Agents
from mplab.device.settings import DeviceSettings
from mplab.device.system import System, SystemSettings
from mplab.device.system.system import SHELL_UID

Result = TypeVar("Result")

_FEATURES = ("shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "apex", "fixed_push_symlink_timestamp")
_ADBD_RETURNS_S = 0.3
_SERVICES_LATER = 0.3
"""Share of a boot during which adbd already answers, but Android's services do not."""


class EmulatedDevice:
    """An emulated device. It implements `mplab.device.adbd.Backend`, the interface that its adbd uses.

    Args:
        settings: address, network, serial number and trusted hosts of the device.
        model: phone that the device emulates.
        screen: screen of the phone.
        agents: programs of UI test frameworks that can be started on the device.
        runtime: empty folder in a file system that disappears with this process.
    """

    def __init__(
        self, settings: DeviceSettings, model: PhoneModel, screen: ScriptedScreen, agents: Agents, runtime: Path
    ) -> None:
        self._settings = settings
        self.state = State(model, screen)
        if settings.serial:
            self.state.serial = settings.serial
            self.state.begin_boot()
        resolv = Path(f"/proc/{settings.network_pid or 'self'}/root/etc/resolv.conf")
        self.system = System(
            SystemSettings(
                name=self.state.serial,
                commands=sorted(COMMANDS),
                storage_bytes=model.storage,
                network_pid=settings.network_pid,
                mptcp=model.mptcp_kind,
                mptcp_files=kernel_files(model.mptcp),
                resolv_conf=resolv.read_text() if resolv.exists() else "",
            ),
            runtime,
        )
        self.network = DeviceNetwork(self.system, private=settings.network_pid is None)
        self.android = Android(
            self.state,
            self.system,
            self.network,
            agents=agents,
            listen=self.listen,
            reboot=self.reboot,
        )
        debian = find_adbd()
        if debian:
            (runtime / "adbd").symlink_to(debian.folder)
        command = debian.command if debian else ""
        self.adbd = EmulatedAdbd(self, host=settings.host, port=settings.port, command=command)
        self._calls: CallServer | None = None
        self._keys = list(settings.keys)
        self.trust = settings.trust
        self.delay_s = 0.0
        self._works: set[asyncio.Task[None]] = set()

    # --- its life

    async def start(self) -> None:
        """Switch the device on. Raises DeviceError, OSError."""
        await self.system.prepare()
        await self._boot()
        await self._put_files()
        self.android.start()
        await self.adbd.start()

    async def stop(self) -> None:
        """Switch the device off. If it uses the network of a lab, restore that network."""
        for task in self._works:
            task.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)
        await self.adbd.stop()
        await self._halt()
        with contextlib.suppress(DeviceError):
            await self.network.restore()
        await self.system.shut_down()

    async def _boot(self) -> None:
        await self.system.boot()
        await self.network.begin()
        self._calls = CallServer(self.system.sockets / "mplab", self._handlers())
        self._calls.start()

    async def _halt(self) -> None:
        await self.android.stop()
        if self._calls is not None:
            await self._calls.stop()
            self._calls = None

    async def _put_files(self) -> None:
        def put(path: str, text: str) -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - nothing may be imported here
            with open(path, "w") as file:  # noqa: PTH123
                file.write(text)

        for path, text in self.state.model.files.items():
            await self.system.files(root=True).run(partial(put, path, text))

    def reboot(self, reason: str = "", *, seconds: float | None = None) -> None:
        """Start a reboot in the background.

        Args:
            reason: argument of ``adb reboot``; ``poweroff``: the device stays off.
            seconds: duration of the reboot, s; None: the duration in the phone file.
        """
        self._work(self._reboot(reason, self.state.model.boot_s if seconds is None else seconds))

    async def _reboot(self, reason: str, seconds: float) -> None:
        await asyncio.sleep(0.05)  # the caller gets an answer first
        await self.adbd.stop()
        await self._halt()
        await self.network.forget()
        await self.system.shut_down()
        if reason == "poweroff":
            return
        await asyncio.sleep(seconds * (1 - _SERVICES_LATER))
        await self._boot()
        self.state.begin_boot()
        del self.state.properties["sys.boot_completed"]
        await self.adbd.start()
        await asyncio.sleep(seconds * _SERVICES_LATER)
        self.state.properties["sys.boot_completed"] = "1"
        self.android.start()

    def restart_adbd(self, *, seconds: float = _ADBD_RETURNS_S, port: int | None = None) -> None:
        """Stop adbd now, and start it again after `seconds`; with `port`, at this TCP port."""

        async def work() -> None:
            await asyncio.sleep(0.05)
            await self.adbd.stop()
            await asyncio.sleep(seconds)
            if port is not None:
                self.adbd.port = port
            await self.adbd.start()

        self._work(work())

    def _work(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    # --- what adbd asks

    @property
    def banner(self) -> bytes:
        """Return the payload of the CNXN message that adbd sends: the phone's names and adbd's features."""
        product = self.state.model.product
        parts = [
            f"ro.product.name={product}",
            f"ro.product.model={self.state.model.model}",
            f"ro.product.device={product}",
            f"features={','.join(_FEATURES)}",
        ]
        return f"device::{';'.join(parts)}".encode()

    @property
    def trusted_keys(self) -> Sequence[str] | None:
        """Return the public keys of the hosts that the device trusts."""
        return [] if self.trust == "nobody" else self._keys

    def offer_key(self, key: str) -> bool:
        """Return whether the device's user accepts the public key of a new host. An accepted key is stored."""
        if self.trust == "any":
            self._keys.append(key)
            return True
        return False

    def distrust(self) -> None:
        """Forget all trusted hosts."""
        self._keys.clear()

    async def spawn(
        self, command: str, *, terminal: bool, merged: bool, env: Mapping[str, str] | None = None
    ) -> Channel:
        """Start a command line in the device's shell, as `Backend.spawn`. Raises DeviceError if the device is down."""
        uid = 0 if self.state.adb_root else SHELL_UID
        argv = ["/system/bin/sh", "-c", command] if command else ["/system/bin/sh", "-"]
        if not terminal:
            return Channel(await self.system.spawn(argv, uid=uid, env=env, merged=merged))
        ours, theirs = await self.on_files(os.openpty)
        try:
            process = await self.system.spawn(argv, uid=uid, env=env, streams=(theirs, theirs, theirs), terminal=True)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return Channel(process, ours)

    async def on_files(self, action: Callable[[], Result]) -> Result:
        """Call `action` in a thread that sees the device's files, with the rights of adb's user. Return its result.

        Raises:
            DeviceError: the device is down.
        """
        return await self.system.files(root=self.state.adb_root).run(action)

    async def dial(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a socket at an address inside the device, as `Backend.dial`. Raises OSError, ValueError."""
        kind, _, name = address.partition(":")
        if kind == "tcp":
            port = _port(name)
            sock = socket_in(self.system.pid, socket.AF_INET)
            target: str | bytes | tuple[str, int] = ("127.0.0.1", port)
        else:
            sock = socket_in(self.system.pid, socket.AF_UNIX)
            target = _unix_address(kind, name)
        try:
            if isinstance(target, str):  # a path: of the device
                path = target
                await self.system.files(root=True).run(lambda: sock.connect(path))
                sock.setblocking(False)
            else:
                sock.setblocking(False)
                await asyncio.get_running_loop().sock_connect(sock, target)
            open_connection = asyncio.open_connection if kind == "tcp" else asyncio.open_unix_connection
            return await open_connection(sock=sock)
        except BaseException:
            sock.close()
            raise

    def listen(self, address: str) -> socket.socket:
        """Return a socket that listens inside the device, at ``tcp:PORT`` or ``localabstract:NAME``.

        Raises:
            OSError: the address is in use.
            ValueError: the kind of address is unknown.
        """
        kind, _, name = address.partition(":")
        if kind == "tcp":
            sock = socket_in(self.system.pid, socket.AF_INET)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            target: bytes | tuple[str, int] = ("127.0.0.1", _port(name))
        elif kind == "localabstract":
            sock = socket_in(self.system.pid, socket.AF_UNIX)
            target = b"\0" + name.encode()
        else:
            raise ValueError(f"unsupported socket: {address}")
        try:
            sock.bind(target)
            sock.listen(64)
        except OSError:
            sock.close()
            raise
        sock.setblocking(False)
        return sock

    def request(self, service: str) -> str:
        """Handle a host's request to adbd itself: ``reboot:``, ``root:``, …. Return the answer. Raises ValueError."""
        kind, _, argument = service.partition(":")
        if kind == "reboot":
            self.reboot(argument)
            return ""
        if kind == "root":
            return self._as_root()
        if kind == "unroot":
            return self._as_shell()
        if kind == "tcpip":
            port = _port(argument)
            self.restart_adbd(port=port)
            return f"restarting in TCP mode port: {port}\n"
        if kind == "usb":
            return "restarting in USB mode\n"
        raise ValueError(f"unknown service {service!r}")

    def _as_root(self) -> str:
        if self.state.model.root != "adb" or not self.state.rooted:
            return "adbd cannot run as root in production builds\n"
        if self.state.adb_root:
            return "adbd is already running as root\n"
        self.state.adb_root = True
        self.restart_adbd()
        return "restarting adbd as root\n"

    def _as_shell(self) -> str:
        if not self.state.adb_root:
            return "adbd not running as root\n"
        self.state.adb_root = False
        self.restart_adbd()
        return "restarting adbd as non root\n"

    async def delay(self) -> None:
        """Wait for `delay_s` before a message is handled; the fault ``slow`` sets this time."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)

    # --- what its commands ask

    def _handlers(self) -> dict[str, Handler]:
        return {name: partial(self._answer, name) for name in COMMANDS}

    async def _answer(self, name: str, call: CommandCall) -> int:
        if name in NEED_SERVICES and not self.android.booted:
            service = {"am": "activity", "pm": "package"}.get(name, name)
            await call.err(f"cmd: Can't find service: {service}\n")
            return 20
        return await COMMANDS[name](self.android, call)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise ValueError(f"bad port number {text!r}")
    return int(text)


def _unix_address(kind: str, name: str) -> str | bytes:
    if kind == "localabstract":
        return b"\0" + name.encode()
    if kind in {"localfilesystem", "local"}:
        return name
    if kind == "localreserved":
        return f"/dev/socket/{name}"
    raise ValueError(f"unknown kind of socket {kind!r}")
