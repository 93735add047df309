"""A failed login names the real cause and the next step."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.tc.ssh import SshConnection, fingerprint
from mplab.userfiles.labs.machine_fields import SshFile

pytestmark = pytest.mark.long

Connect = Callable[..., str]


class RefusingAll(paramiko.ServerInterface):
    """A server that accepts no key."""

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return int(paramiko.common.AUTH_FAILED)


def make_key(folder: Path, kind: str, passphrase: str = "") -> Path:
    path = folder / f"{kind}{'-locked' if passphrase else ''}"
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)], check=True)
    return path


@contextmanager
def serving(host_key: paramiko.PKey) -> Iterator[int]:
    """Run an SSH server that accepts no key; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError, EOFError, paramiko.SSHException):
                transport = paramiko.Transport(listener.accept()[0])
                transport.add_server_key(host_key)
                transport.start_server(server=RefusingAll())

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.fixture
def refusal(tmp_path: Path) -> Connect:
    """Connect to a server that refuses; return the message."""
    host_key = paramiko.PKey.from_path(str(make_key(tmp_path, "ed25519")))

    def connect(**entry: object) -> str:
        with serving(host_key) as port:
            settings = {"host": "127.0.0.1", "port": port, "host_key": fingerprint(host_key), **entry}
            with pytest.raises(LabNotReadyError) as caught:
                SshConnection("router wifi", SshFile.model_validate(settings)).connect()
        return str(caught.value).partition(": ")[2]

    return connect


ADD = "~/.ssh/authorized_keys there (OpenWrt: /etc/dropbear/authorized_keys)"


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_a_key_that_the_router_does_not_accept(refusal: Connect, tmp_path: Path, kind: str) -> None:
    key = make_key(tmp_path, kind)
    assert refusal(key=str(key)) == f"login refused: root does not accept the key {key}. Add {key}.pub to {ADD}"


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_a_key_with_a_passphrase(refusal: Connect, tmp_path: Path, kind: str) -> None:
    key = make_key(tmp_path, kind, "secret")
    assert refusal(key=str(key)) == (
        f"the key {key} has a passphrase. Add it to the SSH agent (ssh-add {key}) and leave out 'key'"
    )


def test_the_public_half_in_the_place_of_the_key(refusal: Connect, tmp_path: Path) -> None:
    key = Path(f"{make_key(tmp_path, 'rsa')}.pub")
    assert refusal(key=str(key)) == (
        f"{key} is not a private key that mplab knows (RSA, ECDSA, Ed25519). Name the file that ssh-keygen made, "
        "without .pub"
    )
    assert refusal(key=str(tmp_path / "none")) == f"no such file: {tmp_path / 'none'}"


MAKE = (
    "Make a key without a passphrase ('ssh-keygen -t ed25519 -f ~/.ssh/mplab'), name it as 'key' in the lab file, and "
    f"add ~/.ssh/mplab.pub to {ADD}"
)


def test_no_key_and_no_agent(refusal: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert refusal() == f"no key to log in with: the lab file names none, and no SSH agent runs. {MAKE}"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An SSH agent for this test."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL) as running:
        while not (tmp_path / "agent").exists():
            assert running.poll() is None
        yield
        running.terminate()


@pytest.mark.usefixtures("agent")
def test_an_agent_without_keys_and_one_whose_keys_are_not_accepted(refusal: Connect, tmp_path: Path) -> None:
    assert refusal() == f"no key to log in with: the lab file names none, and the SSH agent has none. {MAKE}"
    subprocess.run(["ssh-add", "-q", str(make_key(tmp_path, "rsa"))], check=True)
    assert refusal() == (
        "login refused: root accepts no key of the SSH agent (ssh-add -l lists them). Add the public half of one to "
        f"{ADD}, or name another with 'key' in the lab file"
    )


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_another_host_key_and_where_to_compare_it(tmp_path: Path, kind: str) -> None:
    host_key = paramiko.PKey.from_path(str(make_key(tmp_path, kind)))
    compare = (
        f"Compare it there: 'dropbearkey -y -f /etc/dropbear/dropbear_{kind}_host_key' on OpenWrt, "
        f"'ssh-keygen -l -f /etc/ssh/ssh_host_{kind}_key.pub' elsewhere"
    )
    (tmp_path / "known").write_text("")
    for known in ({"host_key": "SHA256:" + "A" * 43}, {"known_hosts": str(tmp_path / "known")}):
        with serving(host_key) as port:
            settings = SshFile.model_validate({"host": "127.0.0.1", "port": port, **known})
            with pytest.raises(LabNotReadyError) as caught:
                SshConnection("router wifi", settings).connect()
        assert compare in str(caught.value)
        assert fingerprint(host_key) in str(caught.value)
