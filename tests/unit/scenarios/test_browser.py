"""The browser's wrapper, capabilities and error handling, without a browser."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from appium.webdriver.client_config import AppiumClientConfig
from selenium.common.exceptions import WebDriverException

from mplab.base.browser.chromium import Wrapper, switches
from mplab.base.errors import DeviceError, LabNotReadyError, StepError
from mplab.base.programs import APPIUM_DIR, CHROMEDRIVER, CHROMIUM, NODE
from mplab.cell.context import open_browsers
from mplab.drivers.ui import AppState
from mplab.drivers.ui import factory as factory_module
from mplab.drivers.ui.appium import AppiumServer
from mplab.drivers.ui.chromium import ChromiumUi
from mplab.drivers.ui.devtools import har_from_events
from mplab.drivers.ui.evidence import OpenApps
from mplab.drivers.ui.factory import ChromiumUiFactory, capabilities
from mplab.format.selector import Selector

needs_browser = pytest.mark.skipif(
    CHROMIUM.find() is None or CHROMEDRIVER.find() is None, reason="chromium or chromedriver is missing"
)


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrapper:
    """A wrapper around `env` that prints the browser's environment."""
    program = tmp_path / "browser"
    program.write_text('#!/bin/sh\necho "$HOME" "${http_proxy-none}" "$$" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("MPLAB_CHROMIUM", str(program))
    monkeypatch.setenv("http_proxy", "http://elsewhere")
    return Wrapper.write(tmp_path, enter=["env", "A=it's"], home=tmp_path / "my home")


def test_the_wrapper_becomes_the_browser(wrapper: Wrapper, tmp_path: Path) -> None:
    result = subprocess.run([str(wrapper.path), "--x", "a b"], capture_output=True, text=True, check=True)
    pid = wrapper.pid_file.read_text().strip()
    assert result.stdout == f"{tmp_path}/my home none {pid} --x a b\n"
    assert wrapper.browser_pid() is None


def test_the_wrapper_answers_the_version_itself(wrapper: Wrapper) -> None:
    result = subprocess.run([str(wrapper.path), "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Chromium ")
    assert not wrapper.pid_file.exists()


def test_a_running_browser_has_a_pid(wrapper: Wrapper) -> None:
    wrapper.pid_file.write_text(f"{os.getpid()}\n")
    assert wrapper.browser_pid() == os.getpid()


def test_a_browser_is_muted_unless_there_is_a_sound_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "browser"
    program.write_text('#!/bin/sh\necho "${PULSE_SERVER-none}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("MPLAB_CHROMIUM", str(program))
    monkeypatch.setenv("PULSE_SERVER", "unix:/that/of/the/user")
    for sound, seen in (("", "none"), ("unix:/phone/socket", "unix:/phone/socket")):
        started = Wrapper.write(tmp_path, enter=["env"], home=tmp_path, sound=sound)
        result = subprocess.run([str(started.path)], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == seen
        wanted = capabilities(started.path, tmp_path, muted=not sound)["goog:chromeOptions"]["args"]
        assert ("--mute-audio" in wanted) == (not sound)


def test_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--no-sandbox" in switches(Path("/p"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in switches(Path("/p"))
    for switch in ("--remote-debugging-pipe", "--disable-quic", "--user-data-dir=/p"):
        assert switch in switches(Path("/p"))


@needs_browser
def test_capabilities() -> None:
    first, second = capabilities(Path("/w"), Path("/p")), capabilities(Path("/w"), Path("/p"))
    assert first["goog:chromeOptions"]["binary"] == "/w"
    assert first["appium:autodownloadEnabled"] is False
    assert "appium:executableDir" not in first
    assert first["appium:chromedriverPort"] != second["appium:chromedriverPort"]


class BrokenDriver:
    """A driver whose commands all fail, except screenshot and page source."""

    page_source = "<p>here</p>"

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked: list[tuple[str, str]] = []

    def get_screenshot_as_png(self) -> bytes:
        return b"PNG"

    def find_elements(self, by: str, value: str) -> list[Any]:
        self.asked.append((by, value))
        return []

    def get(self, _url: str) -> None:
        raise self._error

    def set_page_load_timeout(self, _seconds: float) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def _chromedriver_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.drivers.ui.chromium._listens", lambda port: port != NOBODY)


NOBODY = 1
"""A port at which no ChromeDriver listens."""


def broken_ui(
    wrapper: Any, screenshots: Path, error: Exception | None = None, port: int = 9515
) -> tuple[ChromiumUi, BrokenDriver]:
    driver: Any = BrokenDriver(error or WebDriverException("unknown error: net::ERR_FAILED\n  (Session info)"))
    config = AppiumClientConfig(remote_server_addr="http://127.0.0.1:1")
    return ChromiumUi(
        driver, config=config, wrapper=wrapper, profile=screenshots.parent, screenshots=screenshots, driver_port=port
    ), driver


def test_a_failed_step_leaves_screenshot_and_source(wrapper: Wrapper, tmp_path: Path) -> None:
    wrapper.pid_file.write_text(f"{os.getpid()}")
    ui, _ = broken_ui(wrapper, tmp_path / "screenshots")
    message = "browser: opening https://x/: unknown error: net::ERR_FAILED (see screenshots/step-01.png)"
    with pytest.raises(StepError, match=f"^{re.escape(message)}$"):
        ui.open("https://x/")
    assert (tmp_path / "screenshots" / "step-01.png").read_bytes() == b"PNG"
    assert (tmp_path / "screenshots" / "step-01.html").read_text() == "<p>here</p>"


class CleanUi:
    """A browser that starts clean; everything else is delegated."""

    def __init__(self, ui: ChromiumUi) -> None:
        self.open = ui.open

    def state(self) -> AppState:
        return AppState(0, 0, 0, 0, 0)


def test_phone_and_peer_leave_what_they_saw_in_folders_of_their_own(wrapper: Wrapper, tmp_path: Path) -> None:
    wrapper.pid_file.write_text(f"{os.getpid()}")

    def opener(screenshots: Path, _keys: Path | None, **_where: Any) -> Any:
        return lambda **_options: nullcontext(CleanUi(broken_ui(wrapper, screenshots)[0]))

    job = SimpleNamespace(
        directory=tmp_path,
        experiment=SimpleNamespace(capture="headers"),
        scenario=SimpleNamespace(browser_of=lambda _parameters: "chromium"),
        use=SimpleNamespace(parameters=None),
    )
    attempt: Any = SimpleNamespace(
        lab=SimpleNamespace(open_ui=opener), job=job, apps=OpenApps(), observe=lambda _event, **_fields: None
    )
    for node, folder in (("phone", "screenshots"), ("peer", "screenshots-peer")):
        with (
            open_browsers(attempt, node)() as ui,
            pytest.raises(StepError, match=rf"\(see {folder}/step-01\.png\)$"),
        ):
            ui.open("https://x/")
    images = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("screenshots*/*.png"))
    assert images == ["screenshots-peer/step-01.png", "screenshots/step-01.png"]


def test_a_browser_that_has_ended_is_not_asked_again(wrapper: Wrapper, tmp_path: Path) -> None:
    ui, _ = broken_ui(wrapper, tmp_path / "screenshots", ConnectionRefusedError())
    with pytest.raises(StepError, match="browser: opening https://x/: the browser has ended"):
        ui.open("https://x/")
    assert not (tmp_path / "screenshots").exists()


def test_a_chromedriver_that_has_ended_is_named(wrapper: Wrapper, tmp_path: Path) -> None:
    ui, _ = broken_ui(wrapper, tmp_path / "screenshots", WebDriverException("socket hang up"), NOBODY)
    with pytest.raises(StepError, match="browser: opening https://x/: chromedriver has ended"):
        ui.open("https://x/")


def test_an_appium_that_has_ended_is_named_and_started_again(tmp_path: Path) -> None:
    main = tmp_path / "node_modules" / "appium" / "index.js"
    main.parent.mkdir(parents=True)
    main.write_text(READY_SERVER)
    with AppiumServer(tmp_path / "log", appium_dir=tmp_path, node=Path(sys.executable)) as server:
        server.check_alive()
        assert server.revive() == []
        assert server._process is not None
        server._process.kill()
        server._process.wait()
        with pytest.raises(DeviceError, match=r"appium: has ended by itself \(-9\); see .*log"):
            server.check_alive()
        assert server.revive() == ["appium had ended and was started again"]
        server.check_alive()


READY_SERVER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"value": {"ready": true}}')

http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""
"""A server that answers as Appium does when it is ready."""


@pytest.mark.parametrize(
    ("selector", "asked"),
    [
        (Selector("css", "p.a"), ("css selector", "p.a")),
        (Selector("xpath", "//p"), ("xpath", "//p")),
        (Selector("id", "a"), ("css selector", '[id="a"]')),
        (Selector("text", "Send"), ("xpath", '//*[normalize-space(text())="Send"]')),
        (Selector("text", 'a"b'), ("xpath", '//*[normalize-space(text())=concat("a", \'"\', "b")]')),
    ],
)
def test_selectors(wrapper: Wrapper, tmp_path: Path, selector: Selector, asked: tuple[str, str]) -> None:
    wrapper.pid_file.write_text(f"{os.getpid()}")
    ui, driver = broken_ui(wrapper, tmp_path / "screenshots")
    with pytest.raises(StepError, match="not there after 0 s"):
        ui.wait(selector, timeout_s=0)
    assert driver.asked[0] == asked


@needs_browser
def test_a_session_is_tried_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[Any] = []

    def refuse(**options: Any) -> None:
        attempts.append(options)
        raise WebDriverException("session not created")

    monkeypatch.setattr(factory_module, "Remote", refuse)
    open_ui = ChromiumUiFactory(
        server_url="http://127.0.0.1:1", enter=(), home=tmp_path, directory=tmp_path / "browsers"
    )
    with pytest.raises(StepError, match=r"no session after 2 attempts: .*session not created"), open_ui():
        pass
    assert len(attempts) == 2
    assert list((tmp_path / "browsers").iterdir()) == []


@needs_browser
def test_an_appium_that_is_not_there_is_a_failed_step(tmp_path: Path) -> None:
    open_ui = ChromiumUiFactory("http://127.0.0.1:1", (), tmp_path, tmp_path / "browsers")
    with pytest.raises(StepError, match="no session after 2 attempts"), open_ui():
        pass


def test_appium_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(LabNotReadyError, match="install it: make setup"):
        AppiumServer(tmp_path / "log", appium_dir=tmp_path).start()


def test_appium_that_ends_at_once(tmp_path: Path) -> None:
    main = tmp_path / "node_modules" / "appium" / "index.js"
    main.parent.mkdir(parents=True)
    main.write_text("import sys; sys.exit('no')")
    with pytest.raises(LabNotReadyError, match=r"appium has ended \(\d+\) before it was ready"):
        AppiumServer(tmp_path / "log", appium_dir=tmp_path, node=Path(sys.executable)).start()


@pytest.mark.skipif(
    NODE.find() is None or not (APPIUM_DIR / "node_modules" / "chrome-har").exists(), reason="node is missing"
)
def test_har_of_one_exchange() -> None:
    request = {"url": "https://www.wiki.lab/", "method": "GET", "headers": {}, "initialPriority": "High"}
    ids = {"requestId": "1", "loaderId": "1", "frameId": "F"}
    response = {
        "url": request["url"],
        "status": 200,
        "statusText": "",
        "headers": {},
        "mimeType": "text/html",
        "protocol": "h2",
        "connectionId": "1",
        "encodedDataLength": 50,
        "timing": dict.fromkeys(("dnsStart", "dnsEnd", "connectStart", "connectEnd", "sslStart", "sslEnd"), -1)
        | {"requestTime": 10.0, "sendStart": 0.1, "sendEnd": 0.2, "receiveHeadersEnd": 5.0},
    }
    sent = {"documentURL": request["url"], "timestamp": 10.0, "wallTime": 1e9, "type": "Document"}
    events: list[dict[str, Any]] = [
        {"method": "Page.frameStartedLoading", "params": {"frameId": "F"}},
        {
            "method": "Network.requestWillBeSent",
            "params": {**ids, **sent, "request": request, "initiator": {"type": "other"}},
        },
        {
            "method": "Network.responseReceived",
            "params": {**ids, "timestamp": 10.006, "type": "Document", "response": response},
        },
        {"method": "Network.loadingFinished", "params": {**ids, "timestamp": 10.01, "encodedDataLength": 99}},
    ]
    har = SimpleNamespace(**har_from_events(events, node=NODE.path())["log"])
    assert [entry["request"]["url"] for entry in har.entries] == [request["url"]]


def test_a_har_writer_that_fails(tmp_path: Path) -> None:
    (tmp_path / "har.mjs").write_text("import sys; sys.exit('cannot')")
    with pytest.raises(StepError, match=r"har: .* failed .*cannot"):
        har_from_events([], node=Path(sys.executable), appium_dir=tmp_path)
