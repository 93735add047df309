"""The feed's server, on loopback."""

import hashlib
import http.client
import importlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.drivers.services import load_service

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def feed() -> SimpleNamespace:
    """The folder ``proxy-docker/mplab/services/feed``."""
    load_service("feed")
    names = ("server", "service")
    return SimpleNamespace(**{name: importlib.import_module(f"mplab.services.feed.{name}") for name in names})


@pytest.fixture(scope="module")
def pictures(feed: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    feed.service.make_pictures(folder)
    return folder


class Client:
    """Sends requests to the server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, target: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, target, body)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        return answer.status, content

    def post(self, account: str, **fields: str) -> tuple[int, dict[str, Any]]:
        return self.ask("POST", f"/api/posts?account={account}", json.dumps(fields).encode())


@pytest.fixture
def client(feed: SimpleNamespace, pictures: Path) -> Iterator[Client]:
    with feed.server.make_server(0, pictures / "index.json") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Client(server.server_address[1])
        server.shutdown()
        thread.join()


def test_pictures_are_always_the_same_and_as_large_as_said(
    feed: SimpleNamespace, pictures: Path, tmp_path: Path
) -> None:
    feed.service.make_pictures(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    for kind, mean in (("avatars", feed.service.AVATAR_BYTES), ("pictures", feed.service.PICTURE_BYTES)):
        for path, size in index[kind].items():
            assert (tmp_path / path).read_bytes() == (pictures / path).read_bytes()
            assert (tmp_path / path).stat().st_size == size
        assert sum(index[kind].values()) / len(index[kind]) == pytest.approx(mean, rel=0.01)
    assert not list(tmp_path.glob("index.*[0-9]"))


def test_stories_depend_on_the_refresh_alone(client: Client) -> None:
    first, again, next_one = (
        client.ask("GET", f"/api/feed?account={account}&refresh={refresh}&stories=10")[1]["stories"]
        for account, refresh in (("ann", 1), ("bob", 1), ("ann", 2))
    )
    assert first == again
    assert not {story["text"] for story in first} & {story["text"] for story in next_one}
    assert sum(story["picture"] is not None for story in first) == 6
    files = [story[part]["path"] for story in first for part in ("avatar", "picture") if story[part]]
    assert len(set(files)) == len(files) == 16


def test_more_stories_than_there_are_avatars(client: Client) -> None:
    stories = client.ask("GET", "/api/feed?account=a&refresh=1&stories=50")[1]["stories"]
    assert len(stories) == 50


def test_a_photo_is_told_by_its_hash_and_belongs_to_its_account(client: Client) -> None:
    picture = bytes(range(256)) * 500
    status, photo = client.ask("PUT", "/api/photos?account=ann", picture)
    assert status == 200
    assert photo["bytes"] == len(picture)
    assert photo["sha256"] == hashlib.sha256(picture).hexdigest()
    status, post = client.post("ann", kind="photo", text="look", photo=photo["id"])
    assert (status, post["photo"], post["text"]) == (200, photo, "look")
    status, problem = client.post("bob", kind="photo", text="mine", photo=photo["id"])
    assert (status, problem["error"]) == (400, "there is no photo 'photo-1'")


def test_posts_are_numbered_by_account(client: Client) -> None:
    ids = [client.post(account, kind="status", text="é")[1]["id"] for account in ("ann", "ann", "bob")]
    assert ids == ["post-1", "post-2", "post-1"]


@pytest.mark.parametrize(
    ("request_line", "body", "status", "message"),
    [
        ("GET /api/feed?account=a&refresh=1&stories=51", None, 400, "stories (1 to 50) are needed"),
        ("GET /api/feed?account=a&refresh=x&stories=1", None, 400, "refresh and stories"),
        ("GET /api/news", None, 404, "there is no /api/news"),
        ("PUT /api/photos", b"x", 404, "there is no /api/photos"),
        ("POST /api/posts?account=a", b"{", 400, "Expecting property name"),
        ("POST /api/posts?account=a", b"[]", 400, "no attribute"),
        ("POST /api/posts?account=a", b'{"kind": "song", "text": ""}', 400, "a post has a kind"),
        ("POST /api/posts?account=a", b'{"kind": "status"}', 400, "a post has a kind"),
    ],
)
def test_what_is_not_understood(
    client: Client, request_line: str, body: bytes | None, status: int, message: str
) -> None:
    method, target = request_line.split()
    code, content = client.ask(method, target, body)
    assert code == status
    assert message in content["error"]


def test_a_photo_without_a_length_is_refused(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as sender:
        sender.sendall(b"PUT /api/photos?account=a HTTP/1.1\r\nHost: feed.lab\r\n\r\n")
        assert b" 413 " in sender.recv(100)


def test_a_photo_that_is_cut_is_not_taken(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as sender:
        sender.sendall(b"PUT /api/photos?account=a HTTP/1.1\r\nHost: feed.lab\r\nContent-Length: 9\r\n\r\nabc")
        sender.shutdown(socket.SHUT_WR)
        assert sender.recv(100) == b""
    assert client.ask("PUT", "/api/photos?account=a", b"x")[1]["id"] == "photo-1"
