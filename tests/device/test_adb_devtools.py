"""DevTools through ``adb forward``: the emulated Chrome is this machine's Chromium in the device's network."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from mplab.base.browser.tab import DevTools, Tab
from mplab.base.errors import DeviceError, StepError
from mplab.base.programs import APPIUM_DIR, CHROMIUM, NODE
from mplab.base.undo import UndoStack
from mplab.device import Device, DeviceSettings
from mplab.device.process import DEVTOOLS
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.link import Forwards, Link
from mplab.drivers.phone.adb.screen import hierarchy
from mplab.drivers.ui.devtools import har_from_events
from mplab.lab.devtools import open_devtools
from mplab.scenarios.base.pages.loaded import PROBE_SCRIPT, load_event_time, loaded_objects

from .conftest import wait_until

CHROME = "com.android.chrome"
BUSYBOX = "/system/lib/busybox"
FOLDER = "/data/local/tmp/www"
URL = "http://127.0.0.1:8080/index.html"
SILENT = "http://127.0.0.1:8081/"
PAGE = "<!doctype html><title>small</title><link rel=icon href=data:,><h1>here</h1><script src=b.js></script>"
SCRIPT_BYTES = 3000
pytestmark = pytest.mark.skipif(CHROMIUM.find() is None, reason="no Chromium: the emulated Chrome has no DevTools")


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with Device(DeviceSettings(phone="android-13")) as device:
        wait_until(lambda: device.state()["radios"]["data_up"], "both radios are up")
        yield device


@pytest.fixture(scope="module")
def phone(server: AdbServer, device: Device, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbPhone]:
    """A phone with a web server and with a server that accepts connections but never answers."""
    folder = tmp_path_factory.mktemp("www")
    (folder / "index.html").write_text(PAGE)
    (folder / "waiting.html").write_text(f"<!doctype html><img src={SILENT}>")
    (folder / "b.js").write_text("//" + "x" * (SCRIPT_BYTES - 2))
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        phone.shell(["mkdir", "-p", FOLDER])
        for path in folder.iterdir():
            phone.push(path, f"{FOLDER}/{path.name}")
        phone.spawn([BUSYBOX, "httpd", "-f", "-p", "127.0.0.1:8080", "-h", FOLDER], log=folder.parent / "httpd.log")
        phone.spawn([BUSYBOX, "nc", "-ll", "-p", "8081", "-e", "/system/bin/sleep", "60"], log=folder.parent / "nc.log")
        wait_until(lambda: {":8080 ", ":8081 "} <= listening(phone), "both servers listen")
        yield phone


def listening(phone: AdbPhone) -> set[str]:
    text = phone.shell(["netstat", "-ltn"]).stdout
    return {port for port in (":8080 ", ":8081 ") if port in text}


def start(phone: AdbPhone) -> None:
    phone.shell(["am", "start", "-W", "-a", "android.intent.action.MAIN", "-p", CHROME])


def chromiums(device: Device) -> list[psutil.Process]:
    """Return the processes of the device's browser, which run on this machine."""
    processes = []
    for process in psutil.Process(device.pid).children(recursive=True):
        try:
            processes += [process] if "chromium" in " ".join(process.cmdline()[:1]) else []
        except psutil.NoSuchProcess:
            continue
    return processes


@pytest.fixture
def chrome(phone: AdbPhone, device: Device) -> Iterator[AdbPhone]:
    """The phone with Chrome running. Afterwards Chrome has ended and left nothing behind."""
    start(phone)
    yield phone
    phone.shell(["am", "force-stop", CHROME])
    wait_until(lambda: not chromiums(device), "the browser has ended")
    assert DEVTOOLS not in phone.shell(["cat", "/proc/net/unix"]).stdout


@pytest.fixture
def devtools(chrome: AdbPhone) -> Iterator[DevTools]:
    with open_devtools(chrome, DEVTOOLS) as devtools:
        assert devtools is not None
        yield devtools


@pytest.fixture
def tab(devtools: DevTools) -> Iterator[Tab]:
    with devtools.tab(timeout_s=30) as tab:
        yield tab


def forwarded(phone: AdbPhone) -> list[str]:
    return [entry.remote for entry in phone.adb.forward_list() if entry.serial == phone.serial]


def test_a_forward_is_there_while_it_is_needed(chrome: AdbPhone) -> None:
    with open_devtools(chrome, DEVTOOLS) as devtools:
        assert devtools is not None
        assert forwarded(chrome) == [f"localabstract:{DEVTOOLS}"]
        assert devtools.version()["Browser"].startswith("Chrome/")
        assert [page["url"] for page in devtools.pages()] == ["data:,"]
    assert forwarded(chrome) == []


def test_forwards_that_are_left_go_with_the_phone(phone: AdbPhone) -> None:
    with UndoStack() as undo:
        forwards = Forwards(phone.link, undo)
        left = [forwards.to(remote) for remote in ("tcp:8080", "localabstract:x")]
        ports = [forward.__enter__() for forward in left]
        assert len(set(ports)) == 2
        assert forwarded(phone) == ["tcp:8080", "localabstract:x"]
    assert forwarded(phone) == []


def test_forward_to_a_phone_that_is_not_there(server: AdbServer) -> None:
    message = "0A1B2C: adb forward to tcp:1 was not made: adb says: no such device"
    with (
        UndoStack() as undo,
        pytest.raises(DeviceError, match=message),
        Forwards(Link(server, "0A1B2C"), undo).to("tcp:1"),
    ):
        pass


def test_a_page_comes_over_the_devices_network(tab: Tab) -> None:
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", 8080)) != 0, "nobody listens there on this machine"
    tab.network_events()
    tab.open(URL, timeout_s=30)
    timings = tab.evaluate(PROBE_SCRIPT)
    events = tab.network_events()
    navigation = timings["navigation"]
    assert 0 < navigation["responseStart"] <= navigation["domContentLoadedEventStart"] <= navigation["loadEventStart"]
    page, script = loaded_objects(events)
    assert (page.url, page.status, page.body_bytes) == (URL, 200, len(PAGE))
    assert (script.body_bytes, script.protocol) == (SCRIPT_BYTES, "http/1.1")
    load_event = load_event_time(events)
    assert load_event is not None
    assert script.finished is not None
    assert script.finished <= load_event
    assert tab.network_events() == []


@pytest.mark.skipif(not (APPIUM_DIR / "node_modules" / "chrome-har").exists(), reason="chrome-har is not installed")
def test_har(tab: Tab) -> None:
    tab.network_events()
    tab.open(URL, timeout_s=30)
    log = har_from_events(tab.network_events(), node=NODE.path())["log"]
    assert [entry["request"]["url"] for entry in log["entries"]] == [URL, URL.replace("index.html", "b.js")]
    assert len(log["pages"]) == 1
    assert log["pages"][0]["pageTimings"]["onLoad"] > 0


def test_what_a_page_says(tab: Tab) -> None:
    tab.open(URL, timeout_s=30)
    assert tab.evaluate("return new Promise(r => setTimeout(() => r([document.title, null]), 10))") == ["small", None]
    with pytest.raises(StepError, match=r"one \(.*\): DevTools: running a script in the page: TypeError: "):
        tab.evaluate("return null.x")


def test_page_that_does_not_come(tab: Tab, phone: AdbPhone) -> None:
    with pytest.raises(StepError) as refused:
        tab.open("http://127.0.0.1:1/", timeout_s=30)
    assert str(refused.value) == (f"{phone.label}: DevTools: opening http://127.0.0.1:1/: net::ERR_UNSAFE_PORT")
    with pytest.raises(StepError, match=rf"opening {SILENT}: no answer within 1 s"):
        tab.open(SILENT, timeout_s=1)
    with pytest.raises(StepError, match=r"no load event within 1 s"):
        tab.open(URL.replace("index", "waiting"), timeout_s=1)


DEATHS: list[Callable[[AdbPhone, Device], object]] = [
    lambda phone, _: phone.shell(["am", "force-stop", CHROME]),
    lambda phone, _: phone.script(f"kill -9 $(pidof {CHROME})"),
    lambda _, device: max(chromiums(device), key=lambda one: -one.pid).kill(),
]


@pytest.mark.parametrize("die", DEATHS, ids=["force-stop", "app killed", "browser killed"])
def test_chrome_dies_in_the_middle(
    tab: Tab, chrome: AdbPhone, device: Device, die: Callable[[AdbPhone, Device], object]
) -> None:
    killer = threading.Timer(0.5, die, (chrome, device))
    killer.start()
    began = time.monotonic()
    with pytest.raises(StepError, match=rf"one \({chrome.serial}\): DevTools: opening {SILENT}: the .*connection"):
        tab.open(SILENT, timeout_s=60)
    killer.join()
    assert time.monotonic() - began < 30
    with pytest.raises(StepError, match="connection"):
        tab.network_events()


def test_nobody_answers(phone: AdbPhone) -> None:
    with phone.forwards.to("localabstract:nobody") as port:
        devtools = DevTools(phone.label, lambda: socket.create_connection(("127.0.0.1", port), 5))
        with pytest.raises(StepError, match=rf"one \({phone.serial}\): DevTools do not answer: /json/version: "):
            devtools.version()


def test_no_socket_is_offered(phone: AdbPhone) -> None:
    for name in (DEVTOOLS, ""):
        with open_devtools(phone, name, timeout_s=0.5) as devtools:
            assert devtools is None
    assert forwarded(phone) == []


def seen(phone: AdbPhone, text: str, url: str) -> None:
    """Open a link and wait until the screen shows `text`."""
    phone.shell(["am", "start", "-W", "-a", "android.intent.action.VIEW", "-d", url, "-p", CHROME])

    def shown() -> bool:
        tree = hierarchy(phone)
        if "Make Chrome your own" in tree:
            phone.shell(["input", "keyevent", "BACK"])
        return text in tree

    wait_until(shown, f"the screen shows {text!r}")


def test_a_link_is_loaded_by_the_same_browser(devtools: DevTools, chrome: AdbPhone) -> None:
    seen(chrome, "Loaded ", URL)
    assert [page["url"] for page in devtools.pages()] == [URL]
    seen(chrome, "This site can’t be reached", "http://127.0.0.1:1/")
    assert "ERR_UNSAFE_PORT" in hierarchy(chrome)
    seen(chrome, "toolbar_progress_bar", SILENT)


def test_without_chromium_it_is_as_before(server: AdbServer, tmp_path: Path) -> None:
    settings = DeviceSettings(phone="android-10", app_variables=(("devtools", ""),))
    with Device(settings) as plain, AdbPhone("plain", server, AdbSettings(serial=plain.address)) as phone:
        phone.spawn([BUSYBOX, "httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/etc"], log=tmp_path / "httpd.log")
        wait_until(lambda: ":8080 " in listening(phone), "the server listens")
        seen(phone, "Loaded ", "http://127.0.0.1:8080/hosts")
        with open_devtools(phone, DEVTOOLS, timeout_s=0.5) as devtools:
            assert devtools is None
        assert not chromiums(plain)


def test_nothing_is_left_of_a_device(server: AdbServer) -> None:
    with Device(DeviceSettings(phone="android-13")) as short:
        with AdbPhone("short", server, AdbSettings(serial=short.address)) as phone:
            start(phone)
            wait_until(lambda: len(chromiums(short)) > 1, "the browser runs")
        left = chromiums(short)
    wait_until(lambda: not any(process.is_running() for process in left), "the browser has ended with its device")
