"""The server serves only the page and its runs' reports, and only to this machine."""

import http.client
import json
import os
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mplab.base.errors import InputError, LabNotReadyError
from mplab.campaign.page import Night, read_night, serve
from tests.unit.campaign.nights import night_state, run_name
from tests.unit.campaign.test_page import NOW, make_runs

APPS = f"/runs/{run_name('apps')}"


@dataclass
class Served:
    runs: Path
    port: int

    def get(self, path: str, method: str = "GET", host: str = "127.0.0.1") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            if host:
                connection.putheader("Host", host)
            connection.endheaders()
            answer = connection.getresponse()
            answer.text = answer.read().decode()  # type: ignore[attr-defined]
            return answer
        finally:
            connection.close()

    def text(self, path: str) -> str:
        return str(self.get(path).text)  # type: ignore[attr-defined]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    runs = make_runs(tmp_path / "runs")
    (runs / "20990101T000000Z-other-abcdef" / "report").mkdir(parents=True)
    (runs / "20990101T000000Z-other-abcdef" / "report" / "index.html").write_text("another's", encoding="utf-8")
    (runs / "trend-other.html").write_text("another's", encoding="utf-8")
    (runs / run_name("apps") / "manifest.json").write_text("secret", encoding="utf-8")
    (tmp_path / "outside.html").write_text("secret", encoding="utf-8")
    report = runs / run_name("apps") / "report"
    (report / "data").mkdir()
    (report / "data" / "x.csv").write_text("a,b\n", encoding="utf-8")
    (report / ".hidden").write_text("secret", encoding="utf-8")
    (report / "link.html").symlink_to(tmp_path / "outside.html")
    (report / "folder").symlink_to(tmp_path)
    os.mkfifo(report / "pipe")
    with serve("127.0.0.1", 0, lambda: read_night(night_state(), runs, live=True, now=NOW), runs=runs) as url:
        yield Served(runs, int(urlsplit(url).port or 0))


def test_page_status_and_reports(served: Served) -> None:
    assert "The night&#39;s" in served.text("/")
    status = json.loads(served.text("/status.json"))
    assert status["jobs"][3]["state"] == "running"
    assert status["at_work"]["04-video"]["step"] == "scenario"
    assert "report" in served.text(f"{APPS}/report/index.html")
    assert served.text(f"{APPS}/report/data/x.csv") == "a,b\n"
    assert served.text("/runs/trend-web.html") == "trend"
    for path in (f"{APPS}/report", f"{APPS}/report/"):
        assert served.get(path).headers["Location"] == f"{APPS}/report/index.html"


def test_headers(served: Served) -> None:
    for path in ("/", "/status.json", f"{APPS}/report/index.html", "/none"):
        headers = served.get(path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Python" not in headers["Server"]
    assert "unsafe-inline" not in served.get("/").headers["Content-Security-Policy"]


def test_the_style_sheet_is_the_one_that_the_policy_allows(served: Served) -> None:
    style = served.text("/").partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in served.get("/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        f"{APPS}/manifest.json",
        f"{APPS}/report/../manifest.json",
        f"{APPS}/report/%2e%2e/manifest.json",
        f"{APPS}/report/..%2fmanifest.json",
        f"{APPS}/report/.hidden",
        f"{APPS}/report/link.html",
        f"{APPS}/report/folder/outside.html",
        f"{APPS}/report/pipe",
        f"{APPS}/report/data",
        f"{APPS}/report/index.html/x",
        f"{APPS}/report/%00",
        f"{APPS}/report/%ff",
        f"{APPS}/report//index.html",
        "/runs/20990101T000000Z-other-abcdef/report/index.html",
        "/runs/trend-other.html",
        "/runs/",
        "/runs/..",
        "//runs",
        "/etc/passwd",
        "/../../etc/passwd",
    ],
)
def test_nothing_else(served: Served, path: str) -> None:
    answer = served.get(path)
    assert answer.status == 404
    assert answer.text == "no such page\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1", "localhost@evil", "::1:80:"]
)
def test_names_that_are_not_ours(served: Served, host: str) -> None:
    assert served.get("/", host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:8080", "[::1]:8080"])
def test_names_that_are_ours(served: Served, host: str) -> None:
    assert served.get("/", host=host).status == 200


def test_it_is_only_read(served: Served) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = served.get("/", method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    head = served.get("/", "HEAD")
    assert (head.status, head.text) == (200, "")  # type: ignore[attr-defined]
    assert int(head.headers["Content-Length"]) > 1000


def test_it_ends_though_a_browser_holds_on(tmp_path: Path) -> None:
    with serve("localhost", 0, lambda: read_night(night_state(), tmp_path, live=True), runs=tmp_path) as url:
        port = int(urlsplit(url).port or 0)
        held = socket.create_connection(("127.0.0.1", port))
    with held, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_state_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    def broken() -> Night:
        raise InputError("events.jsonl: the file is damaged")

    with serve("127.0.0.1", 0, broken, runs=tmp_path) as url:
        answer = Served(tmp_path, int(urlsplit(url).port or 0)).get("/")
    assert answer.status == 500
    assert "damaged" in answer.text  # type: ignore[attr-defined]


def unread() -> Night:
    raise AssertionError("nobody has asked")


def test_where_it_may_listen(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="served only on this machine"), serve("10.0.0.1", 0, unread, runs=tmp_path):
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(LabNotReadyError, match="choose another port"),
            serve("127.0.0.1", port, unread, runs=tmp_path),
        ):
            pass


def test_a_request_of_a_byte_now_and_then_is_hung_up_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.campaign.page.server._REQUEST_S", 1.0)
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\nX: ")
        client.settimeout(0.1)
        for _ in range(600):
            try:
                client.sendall(b"a")
                if client.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("it waited for 60 s")


def test_many_half_open_requests_keep_nobody_out(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=20))
            client.sendall(b"GET / HT")
        assert served.get("/").status == 200
