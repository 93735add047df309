"""A stand-in for an OpenWrt router: a whole Linux with netem in user mode, reached over SSH as a real one is."""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mplab.base.enter import IN_LAB_VARIABLE, unshare_argv
from mplab.base.nodes import Node
from mplab.drivers.shaper.virtual import image
from mplab.lab.find import enter_argv, find_node
from tests.router.inside import ROOT

_PACKAGES = {
    "linux.uml": "user-mode-linux",
    "dropbear": "dropbear-bin",
    "busybox": "busybox-static",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "ssh": "openssh-client",
}
_BOOT_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 10.0


def why_not() -> str:
    """Return why there can be no stand-in router on this machine; "" if there can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [package for command, package in _PACKAGES.items() if not shutil.which(command, path=path)]
    if missing:
        return f"the test router needs packages: apt-get install {' '.join(missing)}"
    if not os.access("/dev/net/tun", os.W_OK):
        return "the test router needs /dev/net/tun, which this user may not open"
    return ""


class StandInRouter:
    """One router with its phones and a server; it runs until the end of its context.

    Attributes:
        port: port of 127.0.0.1 that is forwarded to the router's SSH port.
        key: file of the private key that may log in.
        host_key: key of the router, ``ssh-ed25519 AAAA…``.
        root: the router's file system, as a path of this host.
    """

    def __init__(self, directory: Path) -> None:
        """Take the folder for the client key."""
        self._directory = directory
        self._lab = secrets.token_hex(4)
        self._relay: subprocess.Popen[bytes] | None = None
        self.key = directory / "client-key"

    def __enter__(self) -> "StandInRouter":
        """Boot the router and wait for SSH.

        Raises:
            AssertionError: the router does not answer.
        """
        private = Ed25519PrivateKey.generate()
        self.key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        self.key.chmod(0o600)
        public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        read_end, self._lifeline = os.pipe()
        command = [sys.executable, "-m", "tests.router.inside", json.dumps({"client_key": public})]
        self._process = subprocess.Popen(
            [*unshare_argv(), "--", sys.executable, "-m", "mplab.lab.init", str(read_end), "--", *command],
            pass_fds=(read_end,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            env={**os.environ, IN_LAB_VARIABLE: self._lab},
        )
        os.close(read_end)
        assert self._process.stdout is not None
        try:
            self.host_key = json.loads(self._process.stdout.readline())["host_key"]
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port = self._listener.getsockname()[1]
            self.root = Path(f"/proc/{self._pid('router')}/root{ROOT}")
            self.plug_in()
            self.wait_for_ssh()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the router, its phones and its server."""
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        for process in (self._process, self._relay):
            if process is None:
                continue
            try:
                process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:  # the host is busy, or the start was interrupted
                process.kill()
                process.wait()
        if hasattr(self, "_listener"):
            self._listener.close()
        if self._process.stdout:
            self._process.stdout.close()

    def _pid(self, node: str) -> int:
        return find_node(node, lab=self._lab).pid

    def node(self, name: str) -> Node:
        """Return the node ``phone``, ``phone2`` to ``phone7`` or ``server``."""
        return Node(name, self._pid(name))

    def plug_in(self) -> None:
        """Forward SSH connections to the router."""
        server = find_node("server", lab=self._lab)
        descriptor = self._listener.fileno()
        argv = enter_argv(server, [sys.executable, str(Path(__file__).with_name("relay.py")), str(descriptor)])
        self._relay = subprocess.Popen(argv, pass_fds=(descriptor,))

    def unplug(self) -> None:
        """Break every SSH connection and forward no further ones."""
        assert self._relay is not None
        for process in psutil.Process(self._relay.pid).children(recursive=True):
            process.kill()
        self._relay.wait(10)

    def wait_for_ssh(self, timeout_s: float = _BOOT_TIMEOUT_S) -> None:
        """Wait until the router answers.

        Raises:
            AssertionError: it does not answer within `timeout_s`, or has ended.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.settimeout(1)
                if probe.recv(4) == b"SSH-":
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        log = Path(f"/proc/{self._pid('router')}/root/run/router.log")
        raise AssertionError(f"the test router does not answer: {log.read_text(errors='replace')[-3000:]}")

    def change_host_key(self) -> None:
        """Give the router another host key, as a new installation does; dropbear uses it after its next start."""
        image.new_host_key(self.root)
