"""An SSH server for the tests only, which runs one command for every login."""

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
    """dropbear on loopback, in its own mount and PID namespaces, where root has another home.

    Args:
        directory: for keys and logs.
        command: runs at every login, whatever the client requests.
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
        """Return why no server can run here; "" if one can."""
        missing = {package for program, package in _PROGRAMS.items() if shutil.which(program, path=_PATH) is None}
        return f"not installed: {', '.join(sorted(missing))}" if missing else ""

    @property
    def url(self) -> str:
        """URL of an engine behind this server."""
        return f"ssh://root@127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        ssh = self._home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        key, host = self._directory / "key", self._directory / "host"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        make = [_program("dropbearkey"), "-t", "ed25519", "-f", str(host)]
        output = subprocess.run(make, check=True, capture_output=True, text=True).stdout
        (public,) = (line for line in output.splitlines() if line.startswith("ssh-ed25519 "))
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
        """The client's known_hosts file, with only this server."""
        return self._directory / "known_hosts"

    def start(self) -> None:
        """Start the server, for the first time or after `drop`."""
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
        """Let `ssh` use only this key and this server, and ignore the user's configuration."""
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
        """End the server and all its connections at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _program(name: str) -> str:
    path = shutil.which(name, path=_PATH)
    assert path is not None
    return path
