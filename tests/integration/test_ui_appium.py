"""Appium and Chromium against the origin, all real, in a private network.

Run from outside, this file runs itself again inside new namespaces, where 10.65.0.0/16 is local and the origin's
dnsmasq is the name server. All started programs end with the namespaces.
"""

import dataclasses
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from mplab.base.errors import StepError
from mplab.base.machine import CommandResult
from mplab.base.programs import (
    APPIUM_DIR,
    CERTUTIL,
    CHROMEDRIVER,
    CHROMIUM,
    CURL,
    DNSMASQ,
    IP,
    NGINX,
    NODE,
    UNSHARE,
    Program,
)
from mplab.drivers.origin.origin import Origin
from mplab.drivers.ui.appium import CODE_DIR, AppiumServer
from mplab.drivers.ui.chromium import ChromiumUi
from mplab.drivers.ui.console import ConsoleLog
from mplab.drivers.ui.factory import ChromiumUiFactory
from mplab.drivers.ui.state import prove_clean
from mplab.format.selector import Selector
from mplab.format.sites import DNS_ADDRESS, NETWORK, SiteVariant
from mplab.lab.catalog import load_scenario
from mplab.scenarios.base import Context
from mplab.scenarios.base.protocol import Tools

INSIDE = "MPLAB_TEST_UI_INSIDE"
MARKER = "MPLAB_TEST_UI_MARKER"
NEEDED = (NODE, UNSHARE, IP, NGINX, DNSMASQ, CERTUTIL, CURL, CHROMIUM, CHROMEDRIVER)
ENTER_NETWORK = f"""
set -e
ip link set lo up
ip route add local {NETWORK} dev lo
echo 'nameserver {DNS_ADDRESS}' > "$1/resolv.conf"
mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
shift
exec "$@"
"""


def private_network_argv(folder: Path, command: Sequence[str]) -> list[str]:
    argv = [str(UNSHARE.path()), *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    argv += ["--net", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child=SIGKILL"]
    return [*argv, "--", "sh", "-c", ENTER_NETWORK, "sh", str(folder), *command]


class LocalProcess:
    """A child process of the test."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self, timeout_s: float = 5.0) -> int:
        self._process.terminate()
        return self._process.wait(timeout_s)


class LocalHost:
    """This namespace, which is both the origin's host and the phone."""

    def program(self, program: Program) -> str:
        return str(program.path())

    def spawn(self, argv: Sequence[str], *, log: Path) -> LocalProcess:
        with log.open("ab") as output:
            return LocalProcess(subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT))

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=check, input=stdin)
        return CommandResult(result.returncode, result.stdout, result.stderr)


if INSIDE not in os.environ:

    def with_marker(marker: str) -> list[int]:
        pids = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARKER) == marker:
                    pids.append(process.pid)
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return pids

    def test_in_a_private_network(tmp_path: Path) -> None:
        missing = [program.name for program in NEEDED if program.find() is None]
        if missing or not (APPIUM_DIR / "node_modules" / "appium").exists():
            pytest.skip(f"missing: {', '.join(missing) or 'appium'}")
        inside = tmp_path / "inside"
        marker = str(tmp_path)
        result = subprocess.run(
            private_network_argv(
                tmp_path,
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={inside}", __file__],
            ),
            env={**os.environ, INSIDE: "1", MARKER: marker},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
        assert " passed" in result.stdout
        assert with_marker(marker) == []

else:

    @pytest.fixture(scope="module")
    def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
        folder = tmp_path_factory.mktemp("origin")
        served = Origin(folder / "lab")
        served.prepare()
        served.start(LocalHost(), logs=folder)
        yield served
        served.check_alive()
        served.stop()

    @pytest.fixture(scope="module")
    def appium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppiumServer]:
        with AppiumServer(tmp_path_factory.mktemp("appium") / "appium.log") as server:
            yield server
        assert any(CODE_DIR.iterdir()), "Node has kept the code that it compiled"

    @pytest.fixture
    def open_ui(origin: Origin, appium: AppiumServer, tmp_path: Path) -> ChromiumUiFactory:
        home = origin.directory / "home"
        if not home.exists():
            origin.make_home(home)
        return ChromiumUiFactory(
            server_url=appium.url,
            enter=["nsenter", "--target", str(os.getpid()), "--net", "--mount", "--"],
            home=home,
            directory=tmp_path / "browsers",
            screenshots=tmp_path / "screenshots",
        )

    @pytest.fixture
    def run_scenario(open_ui: ChromiumUiFactory, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
        observations: list[dict[str, Any]] = []

        def observe(event: str, **fields: Any) -> None:
            observations.append({"event": event, **fields})

        def run(name: str, **given: Any) -> list[dict[str, Any]]:
            phone: Any = LocalHost()
            tools = Tools(node=NODE.path(), node_modules=APPIUM_DIR / "node_modules")
            rng = Random(1)  # noqa: S311
            context = Context(phone, open_ui, observe, rng, tmp_path, tmp_path, 100.0, tools)
            scenario = load_scenario(name)
            with scenario.open(context, scenario.parameters.model_validate(given)) as session:
                session.run()
            return observations

        return run

    @pytest.mark.parametrize(("http", "protocol"), [("h2", "h2"), ("h1", "http/1.1")])
    def test_pages(
        run_scenario: Callable[..., list[dict[str, Any]]],
        origin: Origin,
        tmp_path: Path,
        http: str,
        protocol: str,
    ) -> None:
        pages = run_scenario("web", sites=["wiki", "news-2"], http=http)
        assert {page["site"] for page in pages} == {"wiki", "news-2"}
        for page in pages:
            site = origin.index.site(page["site"])
            assert page["protocol"] == protocol
            assert page["objects"] == len(site.objects)
            assert page["body_bytes"] == site.size_bytes
            assert page["hosts"] == len(site.hosts)
            assert page["objects_after_load"] == 0
            assert 0 < page["time_to_first_byte_s"] < page["page_load_time_s"]
            assert page["first_contentful_paint_s"] > 0
            assert page["largest_contentful_paint_s"] >= page["first_contentful_paint_s"]
        assert sorted(path.name for path in (tmp_path / "har").iterdir()) == ["news-2-1.har", "wiki-1.har"]

    def test_har_has_every_object(
        run_scenario: Callable[..., list[dict[str, Any]]], origin: Origin, tmp_path: Path
    ) -> None:
        run_scenario("web", sites=["wiki"])
        entries = json.loads((tmp_path / "har" / "wiki-1.har").read_text())["log"]["entries"]
        assert len(entries) == len(origin.index.site("wiki").objects)

    def test_downloads(run_scenario: Callable[..., list[dict[str, Any]]]) -> None:
        bundle = {"flows": 20, "concurrent": 4, "size": "10 kB"}
        observations = run_scenario("download", sizes=["10 kB", "1 MB", "12345 B"], bundles=[bundle], pause="0 s")
        assert [item.get("bytes") for item in observations[:3]] == [10_000, 1_000_000, 12_345]
        assert len({result["local_port"] for result in observations[3]["results"]}) == 20

    def test_steps(open_ui: ChromiumUiFactory, origin: Origin, tmp_path: Path) -> None:
        with open_ui() as ui:
            ui.open(SiteVariant().url("search"))
            assert ui.read(Selector("css", "h1")) == "Search"
            ui.wait(Selector("text", "Search"))
            ui.evaluate("document.body.insertAdjacentHTML('afterbegin', '<input id=i><a id=a href=\"data:,x\">go</a>')")
            ui.type(Selector("id", "i"), "hello")
            assert ui.evaluate("return document.getElementById('i').value") == "hello"
            ui.swipe(200, 600, 200, 200)
            ui.screenshot(tmp_path / "screen.png")
            assert (tmp_path / "screen.png").read_bytes().startswith(b"\x89PNG")
            assert "mplab-objects" in ui.hierarchy()
            ui.open("about:blank")
            ui.back()
            assert ui.read(Selector("css", "h1")) == "Search"
            with pytest.raises(StepError, match=r"tapping css '#none': not there after 0\.1 s"):
                ui.tap(Selector("css", "#none"), timeout_s=0.1)
            assert len(list((tmp_path / "screenshots").iterdir())) == 2

    def test_the_console_is_kept_and_a_secret_comes_into_no_log(
        open_ui: ChromiumUiFactory, origin: Origin, appium: AppiumServer, tmp_path: Path
    ) -> None:
        path = tmp_path / "console.jsonl"
        with dataclasses.replace(open_ui, console=ConsoleLog(path))() as ui:
            ui.open(SiteVariant().url("search"))
            ui.evaluate("document.body.insertAdjacentHTML('afterbegin', '<input id=i>')")
            ui.type(Selector("id", "i"), "open-sesame", secret=True)
            assert ui.evaluate("return document.getElementById('i').value.length") == len("open-sesame")
            ui.type(Selector("id", "i"), "no-secret")
            ui.evaluate("console.warn('careful'); setTimeout(() => nowhere()); return fetch('/none').then(() => 1)")
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        assert {entry["browser"] for entry in entries} == {1}
        texts = {(entry["level"], entry["source"]): entry["text"] for entry in entries}
        assert "careful" in texts["warning", "console-api"]
        assert "nowhere is not defined" in texts["error", "javascript"]
        assert "404" in texts["error", "network"]
        assert all(abs(entry["t"] - time.time()) < 60 for entry in entries)
        log = appium.log.read_text()
        assert "no-secret" in log, "what is no secret is logged: else this test could not fail"
        assert "open-sesame" not in log

    def test_names_that_are_not_of_the_lab(open_ui: ChromiumUiFactory) -> None:
        with open_ui() as ui, pytest.raises(StepError, match="net::ERR"):
            ui.open("https://www.example.com/")

    def test_certificates_of_others_are_not_trusted(open_ui: ChromiumUiFactory, tmp_path: Path) -> None:
        with dataclasses.replace(open_ui, home=tmp_path)() as ui, pytest.raises(StepError, match="ERR_CERT"):
            ui.open("https://www.search.lab/")

    def test_each_session_has_a_new_profile_and_leaves_none(open_ui: ChromiumUiFactory, origin: Origin) -> None:
        pids = []
        for _ in range(2):
            with open_ui() as ui:
                ui.open(SiteVariant().url("search"))
                assert ui.evaluate("const old = localStorage.x; localStorage.x = 1; return old ?? null") is None
                pids.append(ui.browser_pid)
        assert pids[0] != pids[1]
        assert not any(_alive(pid) for pid in pids)
        assert list(open_ui.directory.iterdir()) == []

    class Cacheable(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in (
                ("Content-Type", "text/html"),
                ("Content-Length", "9"),
                ("Cache-Control", "max-age=999"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"<h1>x</h1")

        def log_message(self, *_arguments: Any) -> None:
            pass

    def test_a_browser_that_has_kept_something_is_not_clean(open_ui: ChromiumUiFactory) -> None:
        keep = """
            document.cookie = 'a=1; max-age=9999';
            localStorage.x = 1;
            return caches.open('c').then(cache => cache.put('/x', new Response('y'.repeat(5000)))).then(() => 1);
        """
        seen: list[dict[str, Any]] = []

        def observe(event: str, **fields: Any) -> None:
            seen.append({"event": event, **fields})

        with (
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cacheable) as server,
            open_ui() as ui,
        ):
            prove_clean(ui, device="phone", observe=observe)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ui.open(f"http://127.0.0.1:{server.server_port}/")
            ui.evaluate(keep)
            for _ in range(100):
                if (state := ui.state()).storage_origins and state.cached_objects:
                    break
                time.sleep(0.2)
            server.shutdown()
            assert state.cookies == 1
            assert state.cached_objects >= 1
            assert state.storage_bytes >= 5000
            with pytest.raises(StepError, match=r"phone: the app does not begin clean: it has 1 cookies, \d+ cached"):
                prove_clean(ui, device="phone", observe=observe)
        assert [item["clean"] for item in seen] == [True, False]
        assert seen[0]["cookies"] == seen[0]["cached_objects"] == seen[0]["storage_origins"] == 0

    def test_a_browser_killed_in_the_middle_of_a_page_is_a_failed_step(
        open_ui: ChromiumUiFactory, origin: Origin
    ) -> None:
        started = time.monotonic()
        with open_ui() as ui:
            killer = threading.Thread(target=_kill_during_load, args=(ui, origin.access_log))
            killer.start()
            with pytest.raises(StepError, match="the browser has ended"):
                _load_for_ever(ui, SiteVariant("h1").url("news-1"))
            killer.join()
        assert time.monotonic() - started < 60  # The step ends before the time limits of further pages.
        assert list(open_ui.directory.iterdir()) == []
        with open_ui() as ui:
            ui.open(SiteVariant().url("search"))

    def test_the_browser_asks_for_nothing_but_the_page(open_ui: ChromiumUiFactory, origin: Origin) -> None:
        before = len(origin.access_log.read_text().splitlines())
        with open_ui() as ui:
            ui.open(SiteVariant("h1").url("wiki"))
        after = len(origin.access_log.read_text().splitlines())
        assert after - before == len(origin.index.site("wiki").objects)

    def _load_for_ever(ui: ChromiumUi, url: str) -> None:
        while True:
            ui.open(url, timeout_s=60)

    def _kill_during_load(ui: ChromiumUi, access_log: Path) -> None:
        """Kill the browser once the server has answered the first request of a page."""
        size = access_log.stat().st_size if access_log.exists() else 0
        while not access_log.exists() or access_log.stat().st_size == size:
            time.sleep(0.002)
        pid = ui.browser_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def _alive(pid: int | None) -> bool:
        return pid is not None and psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
