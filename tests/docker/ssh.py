"""An SSH server of the tests' own, which does one thing for whoever has its key."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_READY_TIMEOUT_S = 15.0
_PROGRAMS = {"dropbear": "dropbear-bin", "dropbearkey": "dropbear-bin", "ssh": "openssh-client", "docker": "docker.io"}
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class SshServer:
    """dropbear on loopback, in mount and PID namespaces of its own: it sees another home of root's.

    Args:
        directory: for keys and logs.
        command: what a login runs, whatever it asks for.
    """

    def __init__(self, directory: Path, command: str) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._command = command
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]

    @staticmethod
    def why_not() -> str:
        """Why there can be none here; "" when there can."""
        missing = {package for program, package in _PROGRAMS.items() if shutil.which(program, path=_PATH) is None}
        return f"not installed: {', '.join(sorted(missing))}" if missing else ""

    @property
    def url(self) -> str:
        """For an engine."""
        return f"ssh://root@127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        ssh = self._home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        key, host = self._directory / "key", self._directory / "host"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        make = [_program("dropbearkey"), "-t", "ed25519", "-f", str(host)]
        said = subprocess.run(make, check=True, capture_output=True, text=True).stdout
        (public,) = (line for line in said.splitlines() if line.startswith("ssh-ed25519 "))
        self.known_hosts.write_text(f"[127.0.0.1]:{self._port} {public}\n")
        allowed = ssh / "authorized_keys"
        allowed.write_text(f'command="{self._command}" {key.with_suffix(".pub").read_text()}')
        allowed.chmod(0o600)
        self._stack.callback(self.drop)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def _home(self) -> Path:
        return self._directory / "home"

    @property
    def known_hosts(self) -> Path:
        """What the client knows of it."""
        return self._directory / "known_hosts"

    def start(self) -> None:
        """Also again, when it was dropped."""
        script = 'mount --bind "$0" /root && exec "$@"'
        listen = [_program("dropbear"), "-F", "-E", "-s", "-p", f"127.0.0.1:{self._port}"]
        listen += ["-r", str(self._directory / "host")]
        with (self._directory / "dropbear.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, str(self._home), *listen],
                stdout=log,
                stderr=log,
            )
        self._wait(self._process)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have `ssh` know key and server, and no other one; the user's own configuration is not asked."""
        folder = self._directory / "bin"
        folder.mkdir()
        wrapper = folder / "ssh"
        known = f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={self.known_hosts}"
        others = "-o GlobalKnownHostsFile=none -o BatchMode=yes -o IdentitiesOnly=yes"
        key = self._directory / "key"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F none -i {key} {known} {others} "$@"\n')
        wrapper.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def drop(self) -> None:
        """End the server and everybody's connection, at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None
    return found
