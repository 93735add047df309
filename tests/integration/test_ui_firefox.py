"""A real Firefox, driven by WebDriver BiDi, against a web server of the test."""

import dataclasses
import functools
import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.base.programs import FIREFOX
from mplab.drivers.ui.console import ConsoleLog
from mplab.drivers.ui.firefox_factory import FirefoxUiFactory
from mplab.drivers.ui.state import prove_clean
from mplab.format.selector import Selector

PAGE = """<!doctype html><h1>x y</h1><script src=b.js></script><input id=i><a id=a onclick='window.z = 1'>go</a>"""
KEEP = """
document.cookie = 'a=1; max-age=9999';
localStorage.x = '1';
return caches.open('c').then(cache => cache.add('/index.html')).then(() => 1);
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "index.html").write_text(PAGE)
    (folder / "b.js").write_text("//" + "x" * 3000)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def factory(tmp_path: Path) -> FirefoxUiFactory:
    if FIREFOX.find() is None:
        pytest.skip("firefox is not installed")
    (tmp_path / "home").mkdir()
    return FirefoxUiFactory(
        enter=["env"],
        network_pid=os.getpid(),
        home=tmp_path / "home",
        directory=tmp_path / "browsers",
        screenshots=tmp_path / "screenshots",
    )


def test_the_console_is_kept(factory: FirefoxUiFactory, url: str, tmp_path: Path) -> None:
    path = tmp_path / "console.jsonl"
    with dataclasses.replace(factory, console=ConsoleLog(path))() as ui:
        ui.open(url)
        ui.evaluate("console.warn('careful'); setTimeout(() => nowhere()); return new Promise(r => setTimeout(r, 100))")
        methods = [event["method"] for event in ui.network_events()]
        assert methods.count("Network.requestWillBeSent") == 2
        assert not [name for name in methods if name.startswith("log.")]
    by_source = {entry["source"]: entry for entry in map(json.loads, path.read_text().splitlines())}
    assert (by_source["console-api"]["level"], by_source["javascript"]["level"]) == ("warning", "error")
    assert "careful" in by_source["console-api"]["text"]
    assert "nowhere is not defined" in by_source["javascript"]["text"]


def test_the_same_steps_work_in_firefox(factory: FirefoxUiFactory, url: str, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    with factory() as ui:
        prove_clean(ui, device="phone", observe=lambda _event, **fields: seen.append(fields))
        ui.open(url)
        assert ui.read(Selector("css", "h1")) == "x y"
        assert ui.read(Selector("text", "go")) == "go"
        ui.type(Selector("id", "i"), "hello")
        assert ui.evaluate("return document.getElementById('i').value") == "hello"
        ui.tap(Selector("xpath", "//a"))
        assert ui.evaluate("return window.z") == 1
        ui.screenshot(tmp_path / "screen.png")
        assert (tmp_path / "screen.png").read_bytes().startswith(b"\x89PNG")
        assert "<h1>" in ui.hierarchy()
        events = ui.network_events()
        requested = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        assert requested == [url, f"{url}b.js"]
        reused = [
            e["params"]["response"]["connectionReused"] for e in events if e["method"] == "Network.responseReceived"
        ]
        assert not reused[0]
        with pytest.raises(StepError, match=r"tapping css '#none': not there after 0\.1 s \(see screenshots/"):
            ui.tap(Selector("css", "#none"), timeout_s=0.1)
        with pytest.raises(StepError, match="NS_ERROR_UNKNOWN_HOST"):
            ui.open("http://nosuch.invalid/")
        with pytest.raises(StepError, match="Error: boo"):
            ui.evaluate("throw new Error('boo')")
        ui.open(url)
        ui.evaluate(KEEP)
        for _ in range(50):
            if (state := ui.state()).storage_origins and state.cached_objects:
                break
            time.sleep(0.2)
        assert state.cookies == 1
        assert state.cached_objects >= 1
        assert not state.clean
    assert [item["clean"] for item in seen] == [True]
    assert list(factory.directory.iterdir()) == []
    assert {path.suffix for path in (tmp_path / "screenshots").iterdir()} == {".png", ".html"}
