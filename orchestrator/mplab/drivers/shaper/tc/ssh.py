"""Root shell over SSH, with a verified host key and login by key file or SSH agent; it never asks for a password."""

import base64
import hashlib
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm

from mplab.base.errors import LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.drivers.shaper.tc.shell import (
    COMMAND_TIMEOUT_S,
    ConnectionLostError,
    MachineError,
    check_result,
    whole_script,
)
from mplab.userfiles.labs.machine_fields import SshFile

CONNECT_TIMEOUT_S = 10.0
_KEEPALIVE_S = 5
_BLOCK = 65536
_NO_KEY = "No authentication methods available"
"""Text of paramiko's error when neither a key file nor the agent has a key."""
_AUTHORIZED = "~/.ssh/authorized_keys there (OpenWrt: /etc/dropbear/authorized_keys)"

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # our errors contain its messages


class SshConnection:
    """`Shell` over one SSH connection; several threads may use it at the same time.

    Args:
        name: name of the router or server in messages.
        settings: address and login.
        sudo: the login user is not root; scripts run by ``sudo -n``.
    """

    def __init__(self, name: str, settings: SshFile, *, sudo: bool = False) -> None:
        self.name = name
        self.settings = settings
        self._shell = "sudo -n sh -s" if sudo else "sh -s"
        self._client: paramiko.SSHClient | None = None
        self._lock = threading.Lock()

    @property
    def where(self) -> str:
        """Login and address of the machine: ``root@192.168.1.1:22``."""
        return f"{self.settings.user}@{self.settings.host}:{self.settings.port}"

    def connect(self) -> None:
        """Connect and log in.

        Raises:
            LabNotReadyError: no answer, a host key that is not the known one, or no accepted login key.
        """
        self.close()
        client = paramiko.SSHClient()
        settings = self.settings
        known = Path(settings.known_hosts).expanduser() if settings.known_hosts else None
        try:
            if settings.host_key:
                client.set_missing_host_key_policy(_Fingerprint(settings.host_key))
            else:
                client.load_system_host_keys(str(known) if known else None)
                client.set_missing_host_key_policy(_Unknown())
            client.connect(
                settings.host,
                port=settings.port,
                username=settings.user,
                pkey=_load_key(settings.key) if settings.key else None,
                allow_agent=not settings.key,
                look_for_keys=False,
                timeout=CONNECT_TIMEOUT_S,
                banner_timeout=CONNECT_TIMEOUT_S,
                auth_timeout=CONNECT_TIMEOUT_S,
            )
        except Exception as error:
            client.close()
            raise LabNotReadyError(f"{self.name} ({self.where}): {self._explain(error)}") from error
        transport = client.get_transport()
        if transport is not None:
            transport.set_keepalive(_KEEPALIVE_S)
        self._client = client

    def _explain(self, error: Exception) -> str:  # noqa: PLR0911 - one sentence for each cause
        """Return one sentence that explains why the connection failed, with a remedy."""
        settings = self.settings
        match error:
            case _HostKeyError() | _KeyError():
                return str(error)
            case paramiko.BadHostKeyException():
                expected, received = fingerprint(error.expected_key), fingerprint(error.key)
                return (
                    f"wrong host key: {received} found, {expected} known. If the router was installed again, remove "
                    f"its old key from {settings.known_hosts or '~/.ssh/known_hosts'}. Otherwise, another machine "
                    "answers in its place"
                )
            case paramiko.AuthenticationException() if settings.key:
                return (
                    f"login refused: {settings.user} does not accept the key {settings.key}. "
                    f"Add {settings.key}.pub to {_AUTHORIZED}"
                )
            case paramiko.AuthenticationException():
                return (
                    f"login refused: {settings.user} accepts no key of the SSH agent (ssh-add -l lists them). Add the "
                    f"public half of one to {_AUTHORIZED}, or name another with 'key' in the lab file"
                )
            case paramiko.ssh_exception.IncompatiblePeer():
                return f"its SSH server is too old: {error}. Use OpenWrt 21.02 or later"
            case FileNotFoundError():
                return f"no such file: {error.filename}"
            case paramiko.SSHException() if str(error) == _NO_KEY:
                agent = "the SSH agent has none" if os.environ.get("SSH_AUTH_SOCK") else "no SSH agent runs"
                return (
                    f"no key to log in with: the lab file names none, and {agent}. Make a key without a passphrase "
                    "('ssh-keygen -t ed25519 -f ~/.ssh/mplab'), name it as 'key' in the lab file, and add "
                    f"~/.ssh/mplab.pub to {_AUTHORIZED}"
                )
            case OSError() | EOFError() | paramiko.SSHException():
                return f"unreachable: {str(error) or type(error).__name__}; is it on, and is its SSH server running?"
            case _:
                return f"{type(error).__name__}: {error}"

    def run(
        self, command: str, *, stdin: str = "", timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a command line in the login shell of the user, who may not be root, and wait for it.

        Raises:
            ConnectionLostError: the connection is lost, or the command did not end within `timeout_s`.
            MachineError: not connected or, with `check`, the command failed.
        """
        client = self._client
        if client is None:
            raise MachineError(self.name, "not connected")
        try:
            transport = client.get_transport()
            if transport is None:
                raise MachineError(self.name, "not connected")
            channel = _open(transport, command, timeout_s)
            try:
                result = _exchange(channel, stdin.encode(), timeout_s)
            finally:
                channel.close()
        except TimeoutError as error:
            raise ConnectionLostError(self.name, f"no answer within {timeout_s:g} s", command=(command,)) from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionLostError(self.name, f"SSH connection lost: {error}", command=(command,)) from error
        return check_result(self.name, result, command) if check else result

    def script(
        self, text: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a script as root; it starts only when it has arrived completely.

        A script that has started runs to its end even if the connection is lost. Raises as `run` does.
        """
        full_script = whole_script(text, arguments)
        return self.run(self._shell, stdin=full_script, timeout_s=timeout_s, check=check)

    @property
    def alive(self) -> bool:
        """True unless the connection is known to be lost."""
        transport = self._client.get_transport() if self._client else None
        return transport is not None and transport.is_active()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None


def _open(transport: paramiko.Transport, command: str, timeout_s: float) -> paramiko.Channel:
    """Return an SSH channel in which `command` runs. If the server refuses, `command` has not started: retry once."""
    try:
        return _open_once(transport, command, timeout_s)
    except paramiko.SSHException:
        if not transport.is_active():
            raise
    return _open_once(transport, command, timeout_s)


def _open_once(transport: paramiko.Transport, command: str, timeout_s: float) -> paramiko.Channel:
    channel = transport.open_session(timeout=timeout_s)
    channel.settimeout(timeout_s)
    try:
        channel.exec_command(command)
    except BaseException:
        channel.close()
        raise
    return channel


def _exchange(channel: paramiko.Channel, stdin: bytes, timeout_s: float) -> CommandResult:
    """Send `stdin` to the command in the channel, read all its output, and wait for its exit code.

    Standard error is read after standard output, so more than 2 MB of error output would block.
    """
    if stdin:
        channel.sendall(stdin)
    channel.shutdown_write()
    output, errors = _read_all(channel.recv), _read_all(channel.recv_stderr)
    if not channel.status_event.wait(timeout_s):
        raise TimeoutError
    code = channel.recv_exit_status()
    if code < 0:
        raise EOFError("the connection has ended")
    return CommandResult(code, output, errors)


def _read_all(receive: Callable[[int], bytes]) -> str:
    data = bytearray()
    while block := receive(_BLOCK):
        data += block
    return data.decode(errors="replace")


class _KeyError(paramiko.SSHException):
    """The key file that the lab file names cannot be used; the message has a remedy."""


def _load_key(name: str) -> paramiko.PKey:
    """Read a private key and detect its type from the file.

    Trying several types instead would hide the reason why the server refused the key.

    Raises:
        _KeyError: the key has a passphrase, or the file is not a key of a supported type.
    """
    try:
        return paramiko.PKey.from_path(str(Path(name).expanduser()))
    except TypeError as error:  # from cryptography, for a key with a passphrase
        text = f"the key {name} has a passphrase. Add it to the SSH agent (ssh-add {name}) and leave out 'key'"
        raise _KeyError(text) from error
    except (ValueError, UnsupportedAlgorithm, paramiko.pkey.UnknownKeyType) as error:
        raise _KeyError(
            f"{name} is not a private key that mplab knows (RSA, ECDSA, Ed25519). Name the file that ssh-keygen made, "
            "without .pub"
        ) from error


class _HostKeyError(paramiko.SSHException):
    """The host key of the machine is not the known one; the message has a remedy."""


class _Fingerprint(paramiko.MissingHostKeyPolicy):
    """Policy of paramiko: accept a host key only if it has the fingerprint in the lab file."""

    def __init__(self, expected: str) -> None:
        self._expected = expected

    def missing_host_key(self, _client: paramiko.SSHClient, _hostname: str, key: paramiko.PKey) -> None:
        """Raise _HostKeyError when the machine's host key has another fingerprint than the lab file."""
        received = fingerprint(key)
        if received != self._expected:
            raise _HostKeyError(
                f"wrong host key: {received} ({key.get_name()}) found, host_key of the lab file is {self._expected}. "
                f"{_how_to_compare(key)}"
            )


class _Unknown(paramiko.MissingHostKeyPolicy):
    """Policy of paramiko: refuse each machine whose host key is unknown."""

    def missing_host_key(self, _client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise _HostKeyError; the message has the fingerprint of the machine's host key."""
        raise _HostKeyError(
            f"unknown host key: {hostname} shows {fingerprint(key)} ({key.get_name()}). {_how_to_compare(key)}. If it "
            "is the router's own, write it into the lab file: host_key"
        )


def _how_to_compare(key: paramiko.PKey) -> str:
    kind = key.get_name().removeprefix("ssh-").partition("-")[0]
    return (
        f"Compare it there: 'dropbearkey -y -f /etc/dropbear/dropbear_{kind}_host_key' on OpenWrt, "
        f"'ssh-keygen -l -f /etc/ssh/ssh_host_{kind}_key.pub' elsewhere"
    )


def fingerprint(key: paramiko.PKey) -> str:
    """Return the fingerprint of a key as OpenSSH prints it: ``SHA256:…``."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
