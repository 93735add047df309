"""A shell over SSH, with a real server that refuses some requests."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mplab.drivers.shaper.tc.shell import ConnectionLostError
from mplab.drivers.shaper.tc.ssh import SshConnection, fingerprint
from mplab.userfiles.labs.machine_fields import SshFile


class Refusing(paramiko.ServerInterface):
    """Refuses the first commands; answers each later one with the number of commands until then."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.asked = 0

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return int(paramiko.common.AUTH_SUCCESSFUL)

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.common.OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.asked += 1
        if self.asked <= self.refusals:
            return False
        threading.Thread(target=self._answer, args=(channel,), daemon=True).start()
        return True

    def _answer(self, channel: paramiko.Channel) -> None:
        channel.makefile("rb").read()  # the client must see that the command was accepted before it sees the answer
        channel.sendall(str(self.asked).encode())
        channel.send_exit_status(0)
        channel.close()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Refusing, SshConnection]]:
    key = tmp_path / "key"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    host_key = paramiko.Ed25519Key.from_private_key_file(str(key))
    refusing = Refusing(request.param)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                transport = paramiko.Transport(listener.accept()[0])
                transport.add_server_key(host_key)
                transport.start_server(server=refusing)

        threading.Thread(target=serve, daemon=True).start()
        entry = {"host": "127.0.0.1", "port": listener.getsockname()[1], "key": str(key)}
        settings = SshFile.model_validate({**entry, "host_key": fingerprint(host_key)})
        connection = SshConnection("router", settings)
        connection.connect()
        yield refusing, connection
        connection.close()


@pytest.mark.parametrize("server", [1], indirect=True)
def test_a_busy_server_is_asked_once_more(server: tuple[Refusing, SshConnection]) -> None:
    refusing, connection = server
    assert connection.run("true").stdout == "2"
    assert connection.run("true").stdout == "3"
    assert refusing.asked == 3


@pytest.mark.parametrize("server", [2], indirect=True)
def test_what_is_refused_again_is_an_error(server: tuple[Refusing, SshConnection]) -> None:
    refusing, connection = server
    with pytest.raises(ConnectionLostError, match=r"router: SSH connection lost: Channel closed\."):
        connection.run("true")
    assert refusing.asked == 2
    assert connection.alive
