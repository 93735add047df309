"""A shell over SSH: the host key is checked, a key or an agent logs in, nothing asks for a password."""

import base64
import hashlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import paramiko

from orchestrator.errors import LabNotReadyError
from orchestrator.phone import CommandResult
from orchestrator.shaper.tc.shell import COMMAND_TIMEOUT_S, ConnectionLostError, PlaceError, check_result, whole_script
from orchestrator.spec.lab import SshFile

CONNECT_TIMEOUT_S = 10.0
_KEEPALIVE_S = 5
_BLOCK = 65536

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # what it has to say is in our errors


class SshConnection:
    """One SSH connection; several threads may run commands over it.

    Args:
        name: of the router or server, for messages.
        settings: where it is, and how to log in.
        sudo: the user becomes root by ``sudo -n``.
    """

    def __init__(self, name: str, settings: SshFile, *, sudo: bool = False) -> None:
        self.name = name
        self.settings = settings
        self._shell = "sudo -n sh -s" if sudo else "sh -s"
        self._client: paramiko.SSHClient | None = None
        self._lock = threading.Lock()

    @property
    def where(self) -> str:
        """``root@192.168.1.1:22``."""
        return f"{self.settings.user}@{self.settings.host}:{self.settings.port}"

    def connect(self) -> None:
        """Connect and log in.

        Raises:
            LabNotReadyError: no answer, another host key than the known one, or no key that the router takes.
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
                key_filename=str(Path(settings.key).expanduser()) if settings.key else None,
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
        """What to say about a connection that was not made."""
        settings = self.settings
        match error:
            case _HostKeyError():
                return str(error)
            case paramiko.BadHostKeyException():
                expected, found = fingerprint(error.expected_key), fingerprint(error.key)
                return (
                    f"wrong host key: {found} found, {expected} known. If the router was installed anew, take its old "
                    f"key out of {settings.known_hosts or '~/.ssh/known_hosts'}; else somebody is in between"
                )
            case paramiko.PasswordRequiredException():
                return f"the key {settings.key} has a passphrase: add it to the agent (ssh-add) and leave out 'key'"
            case paramiko.AuthenticationException():
                how = f"the key {settings.key}" if settings.key else "no key of the SSH agent"
                return (
                    f"login refused: {how} is not accepted; add its public half to ~/.ssh/authorized_keys there "
                    "(OpenWrt: /etc/dropbear/authorized_keys)"
                )
            case paramiko.ssh_exception.IncompatiblePeer():
                return f"its SSH server is too old: {error}; OpenWrt's is new enough from 19.07 on"
            case FileNotFoundError():
                return f"no such file: {error.filename}"
            case OSError() | EOFError() | paramiko.SSHException():
                return f"unreachable: {str(error) or type(error).__name__}; is it on, and is its SSH server running?"
            case _:
                return f"{type(error).__name__}: {error}"

    def run(
        self, command: str, *, stdin: str = "", timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a command line in the login shell of the user, who may not be root, and wait.

        Raises:
            PlaceError: the connection is lost, the command did not end in time, or (with `check`) it failed.
        """
        client = self._client
        if client is None:
            raise PlaceError(self.name, "not connected")
        try:
            transport = client.get_transport()
            if transport is None:
                raise PlaceError(self.name, "not connected")
            channel = _open(transport, command, timeout_s)
            try:
                done = _exchange(channel, stdin.encode(), timeout_s)
            finally:
                channel.close()
        except TimeoutError as error:
            raise ConnectionLostError(self.name, f"no answer within {timeout_s:g} s", command=(command,)) from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionLostError(self.name, f"SSH connection lost: {error}", command=(command,)) from error
        return check_result(self.name, done, command) if check else done

    def script(
        self, text: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a script as root, which begins only when all of it has arrived.

        What has begun ends, too, when the connection is lost meanwhile.
        """
        whole = whole_script(text, arguments)
        return self.run(self._shell, stdin=whole, timeout_s=timeout_s, check=check)

    @property
    def alive(self) -> bool:
        """Whether the connection is there, as far as is known."""
        transport = self._client.get_transport() if self._client else None
        return transport is not None and transport.is_active()

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None


def _open(transport: paramiko.Transport, command: str, timeout_s: float) -> paramiko.Channel:
    """A channel on which a command runs. What the server refuses has not begun: a busy one is asked once more."""
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
    """Send `stdin`, collect all output, wait for the exit code; error output beyond 2 MB would block."""
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


class _HostKeyError(paramiko.SSHException):
    """The router's host key is not the known one; the message says what to do."""


class _Fingerprint(paramiko.MissingHostKeyPolicy):
    """Takes the key with the fingerprint of the lab file, and no other."""

    def __init__(self, expected: str) -> None:
        self._expected = expected

    def missing_host_key(self, _client: paramiko.SSHClient, _hostname: str, key: paramiko.PKey) -> None:
        """Called with the key that the router shows."""
        found = fingerprint(key)
        if found != self._expected:
            raise _HostKeyError(
                f"wrong host key: {found} ({key.get_name()}) found, host_key of the lab file is {self._expected}. "
                "Compare it there: 'dropbearkey -y -f /etc/dropbear/dropbear_ed25519_host_key' on OpenWrt, "
                "'ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub' elsewhere"
            )


class _Unknown(paramiko.MissingHostKeyPolicy):
    """Refuses a router that nobody has vouched for."""

    def missing_host_key(self, _client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Called with the key that the router shows."""
        raise _HostKeyError(
            f"unknown host key: {hostname} shows {fingerprint(key)} ({key.get_name()}). If that is the router's own "
            "(compare it there), write it into the lab file: host_key"
        )


def fingerprint(key: paramiko.PKey) -> str:
    """As OpenSSH shows it: ``SHA256:…``."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
