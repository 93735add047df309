"""The server answers only allowed requests, with strict headers, and serves only reports, cells and logs of runs."""

import base64
import hashlib
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from lxml import html

from mplab.analysis.pipeline import analyze
from mplab.base.errors import InputError, LabNotReadyError
from mplab.dashboard.access import COOKIE, RUN_FILE_POLICY
from mplab.dashboard.serving import serve
from tests.unit.analysis.report.test_cell_pages import Links, add_evidence
from tests.unit.analysis.synthetic import Synthetic, toy_scenario
from tests.unit.dashboard.lab import EVIL, REPORT, Client, Folders, client, with_traps

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - of these tests
PAGES = ("/", "/runs", "/search", "/search?q=files", "/days/2026-09-22")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Return folders that no test changes, with two runs and a campaign."""
    folders = Folders(tmp_path_factory.mktemp("lab"))
    outside = tmp_path_factory.mktemp("outside") / "outside.html"
    outside.write_text("secret")
    with_traps(folders.runs / folders.ended(), outside)
    folders.ended(23)
    folders.night()
    return folders


@pytest.fixture(scope="module")
def run(lab: Folders) -> str:
    """Return the name of the run with traps."""
    return min(path.name for path in lab.runs.iterdir())


@pytest.fixture(scope="module")
def served(lab: Folders) -> Iterator[Client]:
    with client(lab.path) as answers:
        yield answers


@pytest.fixture(scope="module")
def guarded(lab: Folders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Serve with a token."""
    file = tmp_path_factory.mktemp("secrets") / "token"
    file.touch(mode=0o600)
    file.write_text(f"{TOKEN}\n")
    with client(lab.path, token_file=file) as answers:
        yield answers


def files_of(served: Client, run: str) -> str:
    """Return the URL of a run's files."""
    location: str = served.get(f"/runs/{run}/report/")[1]["location"]
    return location.removesuffix("/report/index.html")


def cookie_of(answers: Client, token: str = TOKEN) -> str:
    """Return the cookie of a first visit, NAME=VALUE."""
    return answers.get(f"/?token={token}")[1]["set-cookie"].partition(";")[0]


def test_every_page_has_strict_headers(served: Client, run: str) -> None:
    campaign = "/campaigns/20231114T221320Z-nightly-abcdef"
    for path in (*PAGES, f"/runs/{run}", campaign, "/status.json", "/metrics", "/none", "/grafana.json"):
        status, headers, text = served.get(path)
        assert status == (404 if path == "/none" else 200), path
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
        assert EVIL not in text or path == "/status.json"
        assert not any(word in text for word in (" style=", " onclick=", "javascript:"))


def test_files_of_a_run_are_sandboxed(served: Client, run: str) -> None:
    base = files_of(served, run)
    for path, kind in {
        "/report/index.html": "text/html; charset=utf-8",
        "/report/data/x.csv": "text/csv; charset=utf-8",
        "/cells/0001-a/logs/agent.log": "text/plain; charset=utf-8",
        "/cells/0001-a/phone.pcapng": "application/octet-stream",
    }.items():
        status, headers, _ = served.get(base + path)
        assert (status, headers["content-type"]) == (200, kind)
        assert headers["content-security-policy"] == RUN_FILE_POLICY
        assert headers["content-security-policy"].startswith("sandbox ")
        assert "allow-same-origin" not in headers["content-security-policy"]
        assert ("content-disposition" in headers) is (kind == "application/octet-stream")
    assert served.text(f"/runs/{run}/report/index.html") == REPORT
    head = served.get(f"{base}/report/index.html", "HEAD")
    assert (head[0], head[1]["content-length"], head[2]) == (200, str(len(REPORT)), "")


@pytest.mark.parametrize(
    "path",
    [
        "/manifest.json",
        "/lab.yaml",
        "/report/../manifest.json",
        "/report/%2e%2e/manifest.json",
        "/report/..%2fmanifest.json",
        "/report/%2e%2e%2f%2e%2e%2f%2e%2e%2foutside/outside.html",
        "/report//index.html",
        "/report/.hidden.html",
        "/report/program.exe",
        "/report/link.html",
        "/report/folder/outside.html",
        "/report/pipe.html",
        "/report/data",
        "/report/index.html/x.html",
        "/report/%00.html",
        "/report/%ff.html",
        "/cells/0001-a/page.html",
        "/cells/0001-a/logs/tls-keys.txt",
        "/cells/",
        "/cells//",
        "/cells/0001-a",
        "/cells/none/",
        "/cells/../cells/0001-a/",
        "/cells/%2e%2e/",
        "/cells/0001-a/outside/",
        "/cells/0001-a/phone.pcapng/",
        "/report/data/",
        "/logs/",
        "/logs/outside.html",
        "/logs/outside.log",
    ],
)
def test_no_other_file_of_a_run(served: Client, run: str, path: str) -> None:
    for url in (files_of(served, run) + path, f"/runs/{run}{path}"):
        status, headers, text = served.get(url)
        if status == 302:
            status, _, text = served.get(headers["location"])
        assert status == 404
        assert "secret" not in text


def test_the_files_of_a_cell_are_listed(served: Client, run: str) -> None:
    base = files_of(served, run)
    for url, names in {
        f"{base}/cells/0001-a/": ["logs/", "phone.pcapng"],
        f"{base}/cells/0001-a/logs/": ["agent.log"],
    }.items():
        status, headers, text = served.get(url)
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert headers["content-security-policy"] == RUN_FILE_POLICY
        assert html.fromstring(text).xpath("//a/@href") == names
        assert "secret" not in text
    assert served.get(f"/runs/{run}/cells/0001-a/")[1]["location"] == f"{base}/cells/0001-a/"


def test_no_link_of_a_served_report_is_dead(folders: Folders, tmp_path: Path) -> None:
    run = Synthetic(folders.runs, repetitions=1, labels=["1 MB"]).build()
    for cell in (run / "cells").iterdir():
        add_evidence(cell)
        (cell / "logs" / f"a b{EVIL.replace('/', '')}:?#.log").write_text("text")
    with toy_scenario(tmp_path / "toy"):
        analyze(run)
    with client(folders.path) as answers:
        base = files_of(answers, run.name)
        todo, seen = [f"{base}/report/index.html"], set()
        while todo:
            url = todo.pop()
            status, headers, text = answers.get(url)
            assert status == 200, url
            seen.add(url)
            if headers["content-type"].startswith("text/html"):
                links = {urldefrag(urljoin(url, target))[0] for target in Links(text).targets if "data:" not in target}
                assert all(link.startswith(f"{base}/") for link in links)
                todo += sorted(links - seen - set(todo))
    assert len(seen) > 20
    cells = [path.name for path in (run / "cells").iterdir()]
    assert {f"{base}/cells/{cell}/logs/" for cell in cells} <= seen
    assert sum("%3Cscript%3E" in url for url in seen) == len(cells)


def test_the_key_of_a_run_opens_only_this_run(served: Client, lab: Folders, run: str) -> None:
    other = max(path.name for path in lab.runs.iterdir())
    base = files_of(served, run)
    assert served.get(f"{base}/report/index.html")[0] == 200
    assert files_of(served, other) != base.replace(run, other)
    for url in (base.replace(run, other), base.replace("/files/", "/files/0"), f"/files/x/{run}", f"/files//{run}"):
        assert served.get(f"{url}/report/index.html")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/runs/",
        "/runs/..",
        "/runs/%2e%2e",
        "//runs",
        "/etc/passwd",
        "/../../etc/passwd",
        "/static/../render.py",
        "/static/%2e%2e%2frender.py",
        "/runs?page=0",
        "/runs?page=x",
        "/runs?page=-1",
        "/days/1",
        "/days/2026-13-01",
        "/campaigns/none",
        "/campaigns/20231114T221320Z-nightly-abcdef/logs/..%2fcampaign.json",
        "/events/",
    ],
)
def test_nothing_else(served: Client, path: str) -> None:
    status, _, text = served.get(path)
    assert status == 404
    assert "root:" not in text


def test_logs_of_failed_jobs_are_text(served: Client) -> None:
    status, headers, text = served.get("/campaigns/20231114T221320Z-nightly-abcdef/logs/03-calls-1.log")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert text == f"phone-3: no answer {EVIL}\n"
    assert "/logs/03-calls-1.log" in served.text("/")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1", "localhost@evil", "::1:80:", "[::1", "[::1]x"]
)
def test_other_names_are_refused(served: Client, host: str) -> None:
    assert served.get("/", host=host)[0] == (421 if host else 400)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:8080", "[::1]:8080"])
def test_names_of_this_machine(served: Client, host: str) -> None:
    assert served.get("/", host=host)[0] == 200


def test_a_server_for_other_machines_has_a_token_and_accepts_addresses_and_given_names(folders: Folders) -> None:
    with client(folders.path, host="0.0.0.0", names=["lab.example"]) as answers:  # noqa: S104 - the case
        first, token = answers.served.first_url.split("?token=")
        assert first == answers.served.url
        assert len(token) >= 32
        statuses = {
            host: answers.get("/", host=host, Authorization=f"Bearer {token}")[0]
            for host in ("10.1.2.3:8080", "lab.example", "LAB.example:80", "evil.example")
        }
        assert statuses == {"10.1.2.3:8080": 200, "lab.example": 200, "LAB.example:80": 200, "evil.example": 421}
        assert answers.get("/")[0] == 401


def test_only_get_and_head(served: Client) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
        status, headers, _ = served.get("/", method)
        assert (status, headers["allow"]) == (405, "GET, HEAD")
    status, headers, text = served.get("/", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["content-length"]) > 1000


def test_without_the_token_nothing_is_shown(guarded: Client, run: str) -> None:
    paths = (*PAGES, f"/runs/{run}", "/status.json", "/metrics", "/events", "/static/dashboard.css", "/none")
    for path in (*paths, "/?token=", "/?token=wrong", f"/?token={TOKEN}x", f"/runs/{run}/report/index.html"):
        status, _, text = guarded.get(path)
        assert status == 401, path
        assert TOKEN not in text
    for header in (f"Basic {TOKEN}", "Bearer", "Bearer wrong", "Bearer é"):
        assert guarded.get("/", Authorization=header)[0] == 401
    name = cookie_of(guarded).partition("=")[0]
    for cookie in (f"{name}=wrong", f"{name}={TOKEN}", "x", f"{name}=", "a=\x01", "a/b=1", "=", ";;", '"'):
        assert Client(guarded.served, cookie).get("/")[0] == 401


def test_the_first_visit_gives_a_cookie(guarded: Client, run: str) -> None:
    status, headers, _ = guarded.get(f"/search?q=a+b&token={TOKEN}")
    assert (status, headers["location"]) == (303, "/search?q=a+b")
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert cookie.startswith(COOKIE)
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)
    assert TOKEN not in headers["set-cookie"]
    known = Client(guarded.served, f"a/b=1; {cookie}; c")  # with cookies of other servers on this host
    assert known.get("/")[0] == 200
    # A report has a separate origin, so that its requests have no cookie: the URL has a key instead.
    assert guarded.get(files_of(known, run) + "/report/index.html")[0] == 200
    assert guarded.get(f"//evil.example/?token={TOKEN}")[1]["location"] == "/evil.example/"


def test_dashboards_on_one_host_have_cookies_of_their_own(guarded: Client, folders: Folders, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("another-token-of-these-tests")
    with client(folders.path, token_file=file) as other:
        first, second = cookie_of(guarded), cookie_of(other, file.read_text())
        assert first.partition("=")[0] != second.partition("=")[0]
        for answers in (guarded, other):
            assert Client(answers.served, f"{first}; {second}").get("/")[0] == 200
        assert Client(guarded.served, second).get("/")[0] == 401


def test_programs_send_the_token_in_a_header(guarded: Client) -> None:
    assert "mplab_runs" in guarded.get("/metrics", Authorization=f"Bearer {TOKEN}")[2]


def test_a_token_must_be_private_and_long(folders: Folders, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short")
    file.chmod(0o644)
    with pytest.raises(InputError, match="others may read"), serve([folders.path], port=0, token_file=file):
        pass
    file.chmod(0o600)
    with pytest.raises(InputError, match="at least 16") as found, serve([folders.path], port=0, token_file=file):
        pass
    assert "short" not in str(found.value)


def test_a_port_that_is_taken_and_an_address_of_another_machine(folders: Folders) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LabNotReadyError, match="choose another port"), serve([folders.path], port=port):
            pass
    no_remedy = r"192\.0\.2\.1 port 0: [^:]*$"
    with pytest.raises(LabNotReadyError, match=no_remedy), serve([folders.path], host="192.0.2.1", port=0):
        pass
    with pytest.raises(InputError, match="no address"), serve([folders.path], host="no such host", port=0):
        pass


def test_it_ends_although_browsers_are_connected(folders: Folders) -> None:
    with client(folders.path) as answers, ExitStack() as stack:
        port = answers.port
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(2)]
        held[0].sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert held[0].recv(12) == b"HTTP/1.1 200"
        kept = stack.pop_all()
    with kept, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.parametrize("before", [b"", b"GET /static/dashboard.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_a_request_of_a_byte_now_and_then_is_hung_up_on(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    monkeypatch.setattr("mplab.dashboard.serving._SILENCE_S", 0.5)
    with client(folders.path) as answers, socket.create_connection(("127.0.0.1", answers.port), timeout=60) as sender:
        sender.sendall(before + b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        sender.settimeout(0.1)
        for _ in range(600):
            try:
                sender.sendall(b"a")
                if sender.recv(1 << 20) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("it waited for 60 s")


def test_many_half_open_requests_keep_nobody_out(served: Client) -> None:
    with ExitStack() as stack:
        for _ in range(100):
            sender = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=20))
            sender.sendall(b"GET / HT")
        assert served.get("/")[0] == 200


def test_a_trend_page_links_to_reports(served: Client, run: str) -> None:
    status, headers, page = served.get("/runs/trend-demo.html")
    assert status == 200
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in headers["content-security-policy"]
    assert f'href="{run}/report/index.html"' in page
    assert served.get("/runs/trend-none.html")[0] == 404


def test_the_comparison_of_a_run_is_linked_and_runs_no_script_of_its_own(folders: Folders) -> None:
    run, other = folders.ended(), folders.ended(23)
    (folders.runs / f"compare-{run}.html").write_text(f"<p>Changes {EVIL}</p>")
    with client(folders.path) as served:
        link = f'href="/runs/compare-{run}.html"'
        assert [link in served.get(f"/runs/{name}")[2] for name in (run, other)] == [True, False]
        status, headers, page = served.get(f"/runs/compare-{run}.html")
        assert (status, page) == (200, f"<p>Changes {EVIL}</p>")
        scripts = headers["content-security-policy"].partition("script-src")[2].partition(";")[0]
        assert scripts.strip().startswith("'sha256-")
        assert "unsafe-inline" not in scripts
        assert served.get(f"/runs/compare-{other}.html")[0] == 404


def test_the_dashboard_does_not_load_matplotlib() -> None:
    code = "import sys, mplab.dashboard.app; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_status_is_for_programs(served: Client, run: str) -> None:
    status = json.loads(served.text("/status.json"))
    runs = [(entry["run"], entry["state"], entry["report"]) for entry in status["runs"]]
    assert runs == [(run.replace("20260922", "20260923"), "finished", True), (run, "finished", True)]
    assert status["campaigns"][0]["jobs"][2]["state"] == "failed"
    assert {entry["name"]: entry["quarantined"] for entry in status["resources"]}["phone-3"] is True
