"""Errors of compose and of engines become one sentence each."""

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.base import debian_sources, split_name
from mplab.drivers.proxy.docker.compose import why_failed
from mplab.drivers.proxy.docker.engine import connected
from mplab.drivers.proxy.docker.settings import engine_url

SAID = (
    (
        "ERROR: for mplab_proxy-net_1  Cannot start service proxy-net: driver failed programming external connectivity "
        "on endpoint mplab_proxy-net_1 (52bd): Bind for 127.0.0.1:7001 failed: port is already allocated",
        "port 127.0.0.1:7001 is taken by another program",
    ),
    (
        "Error starting userland proxy: listen tcp4 127.0.0.1:7002: bind: address already in use",
        "port 127.0.0.1:7002 is taken by another program",
    ),
    (
        "Error starting userland proxy: listen tcp4 203.0.113.9:7001: bind: cannot assign requested address",
        "203.0.113.9 is no address of the engine's host",
    ),
    ("ERROR: Pool overlaps with other one on this address space", "a network of the lab is taken"),
    (
        "ERROR: Volume mplab_content declared as external, but could not be found.",
        "the volume mplab_content is not there",
    ),
    ('external volume "mplab_origin" not found', "the volume mplab_origin is not there"),
    (
        "pull access denied for mplab/web, repository does not exist or may require 'docker login'",
        "an image is missing and no registry gave it",
    ),
    (
        "Service 'proxy-net' needs to be built, but --no-build was passed.",
        "an image is missing and no registry gave it: Service 'proxy-net' needs to be built",
    ),
    (
        "Error response from daemon: No such image: mplab/net:1",
        "an image is missing and no registry gave it: Error response from daemon: No such image: mplab/net:1",
    ),
    (
        "Step 3/4 : RUN false\nERROR: Service 'dns' failed to build: exit code 100\n",
        "compose: ERROR: Service 'dns' failed",
    ),
)


@pytest.mark.parametrize(("said", "sentence"), SAID)
def test_one_sentence_says_why_compose_failed(said: str, sentence: str) -> None:
    reason = why_failed(f"Creating mplab_x ...\n{said}")
    assert reason.startswith(sentence)
    assert "\n" not in reason


def test_an_engine_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(LabNotReadyError, match="does not run; start it"), connected(f"unix://{tmp_path}/none.sock"):
        pass


def test_a_socket_that_nobody_answers(tmp_path: Path) -> None:
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(LabNotReadyError, match="does not run"), connected(f"unix://{path}"):
        pass


def test_a_socket_that_one_may_not_use() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as other:
        path = Path(folder) / "docker.sock"
        other.bind(str(path))
        other.listen()
        path.chmod(0)
        Path(folder).chmod(0o755)
        with (
            ordinary_user(),
            pytest.raises(LabNotReadyError, match="no permission; join the group 'docker'"),
            connected(f"unix://{path}"),
        ):
            pass


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Run as a user without root's permissions, to whom files can be forbidden."""
    user_id = os.geteuid()
    if user_id == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user_id)


def test_a_server_without_ssh() -> None:
    if shutil.which("ssh") is None:
        pytest.skip("not installed: openssh-client")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # no process listens here, and no other socket gets this port
        url = f"ssh://lab@127.0.0.1:{closed.getsockname()[1]}"
        refused = rf"Docker at {url} cannot be reached over SSH: .*refused; try: ssh {url} docker info"
        with pytest.raises(LabNotReadyError, match=refused), connected(url):
            pass


def test_something_that_is_no_engine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LabNotReadyError, match=f"Docker at {url}"), connected(url):
            pass
        thread.join(5)


def test_no_url_at_all() -> None:
    with pytest.raises(LabNotReadyError, match="Docker at nonsense"), connected("nonsense"):
        pass


def test_which_engine_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///other.sock")
    assert engine_url() == "unix:///other.sock"
    assert engine_url("ssh://lab@server") == "ssh://lab@server"
    monkeypatch.delenv("DOCKER_HOST")
    assert engine_url() == "unix:///var/run/docker.sock"


def test_names_of_images() -> None:
    assert split_name("debian:bookworm-slim") == ("debian", "bookworm-slim")
    assert split_name("somewhere:5000/debian") == ("somewhere:5000/debian", "")


def test_package_sources_of_other_releases_are_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "debian.sources").write_text(
        "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm\nComponents: main\n"
    )
    (folder / "next.sources").write_text("Types: deb\nURIs: http://mirror/debian\nSuites: trixie\nComponents: main\n")
    (folder / "off.list").write_text("# deb http://mirror/debian bookworm main\n")
    assert [path.name for path in debian_sources(tmp_path)] == ["debian.sources"]
