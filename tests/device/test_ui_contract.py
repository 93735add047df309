"""One contract for every driver of `Ui` on Android, tested on the emulated device through stock adb."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbutils
import pytest
from PIL import Image

from mplab.base.errors import StepError
from mplab.base.hierarchy import parse_hierarchy
from mplab.base.programs import APPIUM_DIR, NSENTER, SCENARIOS_DIR
from mplab.device import Device, DeviceSettings
from mplab.drivers.ui import AppState
from mplab.drivers.ui.android import AndroidSettings, AndroidUi
from mplab.drivers.ui.appium import AppiumServer
from mplab.drivers.ui.appium_android import AppiumPhone, appium_session
from mplab.drivers.ui.dialogs import load_dialogs
from mplab.drivers.ui.uiautomator2 import uiautomator2_session
from mplab.format.selector import Selector
from mplab.scenarios.base.sampling import sample
from mplab.userfiles.experiments.app import load_android_app

from .conftest import Adb, wait_until

APP = Path(__file__).with_name("contract.yaml")
PACKAGE = "com.example.contract"
DRIVER = APPIUM_DIR / "node_modules" / "appium-uiautomator2-driver"
STORE = """
import http.server, sys
class Store(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open(sys.argv[1], "ab").write(b"%d " % len(body))
        self.send_response(201); self.end_headers()
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "300000"); self.end_headers()
        self.wfile.write(bytes(300000))
http.server.ThreadingHTTPServer(("127.0.0.1", 8099), Store).serve_forever()
"""
"""Program of a server in the device's own network."""


@pytest.fixture(scope="module")
def device(adb: Adb) -> Iterator[Device]:
    server = "http://127.0.0.1:8099"
    variables = (("dropbox", server), ("video", server), ("rate", "800"), ("ahead", "0.5"))
    with Device(DeviceSettings(app_files=(str(APP),), app_variables=variables)) as device:
        adb.connect(device)
        yield device


@pytest.fixture(scope="module", params=["uiautomator2", "appium"])
def make(
    request: pytest.FixtureRequest, adb: Adb, device: Device, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[AndroidSettings], Any]]:
    """Yield a function that makes one driver's factory from the settings of its sessions."""
    if request.param == "uiautomator2":
        phone = adbutils.AdbClient(port=adb.port).device(device.address)
        yield lambda settings: lambda: uiautomator2_session(phone, settings)
        return
    if not DRIVER.exists():
        pytest.skip("appium-uiautomator2-driver is not installed: make setup")
    with AppiumServer(tmp_path_factory.mktemp("appium") / "appium.log") as server:
        phone = AppiumPhone(server.url, device.address, adb.port, install=False)
        yield lambda settings: lambda: appium_session(phone, settings)


@pytest.fixture(scope="module")
def observed() -> list[dict[str, Any]]:
    return []


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cell") / "screenshots"


@pytest.fixture(scope="module")
def session(
    make: Callable[[AndroidSettings], Any], screenshots: Path, observed: list[dict[str, Any]]
) -> Iterator[AndroidUi]:
    settings = AndroidSettings(
        packages=(PACKAGE,),
        dialogs=load_dialogs(),
        observe=lambda event, **fields: observed.append({"event": event, **fields}),
        screenshots=screenshots,
    )
    with make(settings)() as ui:
        assert ui.state() == AppState(0, 0, 0, 0, 0)
        yield ui


def picture_of(path: Path) -> tuple[str | None, tuple[int, int]]:
    """Return format and size."""
    with Image.open(path) as picture:
        return picture.format, picture.size


@pytest.fixture
def ui(session: AndroidUi, adb: Adb, device: Device, observed: list[dict[str, Any]]) -> AndroidUi:
    """The app on its first screen."""
    observed.clear()
    adb("shell", "am", "force-stop", PACKAGE, serial=device.address)
    session.open(f"{PACKAGE}/.Main")
    return session


def test_what_is_opened_is_not_clean_any_more(ui: AndroidUi) -> None:
    with pytest.raises(StepError, match="the app was not cleared"):
        ui.state()


def test_fall_backs_find_what_the_first_way_does_not(ui: AndroidUi) -> None:
    ways = (Selector("text", "Next"), Selector("description", "Next"))
    ui.tap(Selector("id", f"{PACKAGE}:id/forward", ways))
    assert ui.read(Selector("id", f"{PACKAGE}:id/title")) == "Second"
    ui.wait(Selector("contains", "econ"))


def test_any_character_can_be_typed_and_enter_pressed(ui: AndroidUi) -> None:
    text = "Grüße, 世界 😀 & <b>'\"$(x)"
    ui.type(Selector("id", "entry"), text + "\n")
    assert ui.read(Selector("id", "entry")) == text
    assert ui.read(Selector("id", "said")) == f"entered {text}"


def test_typing_replaces_and_a_secret_comes_into_no_log(
    ui: AndroidUi, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ui.type(Selector("id", "entry"), "before")
    ui.type(Selector("id", "entry"), "open-sesame", secret=True)
    assert ui.read(Selector("id", "entry")) == "open-sesame"
    for log in tmp_path_factory.getbasetemp().glob("appium*/appium.log"):
        lines = [line for line in log.read_text().splitlines() if "open-sesame" in line]
        assert not [line for line in lines if "replaceElementValue" in line]


def test_what_comes_later_is_waited_for(ui: AndroidUi) -> None:
    ui.tap(Selector("id", "go"))
    ui.wait(Selector("text", "Here at last"), timeout_s=10)
    ui.back()
    ui.wait(Selector("id", "go"))


def test_what_does_not_come_fails_with_its_picture(ui: AndroidUi, screenshots: Path) -> None:
    with pytest.raises(
        StepError, match=r"tapping text 'Nobody': not there after 0\.3 s \(see screenshots/step-"
    ) as caught:
        ui.tap(Selector("text", "Nobody"), timeout_s=0.3)
    name = str(caught.value).rpartition("/")[2].rstrip(")")
    assert picture_of(screenshots / name) == ("PNG", (1080, 2400))
    assert "Weiter" in (screenshots / name).with_suffix(".xml").read_text()


def test_what_is_not_enabled_is_not_tapped(ui: AndroidUi) -> None:
    with pytest.raises(StepError, match=r"there, but not enabled after 0\.2 s"):
        ui.tap(Selector("id", "never"), timeout_s=0.2)


def test_swiping_scrolls(ui: AndroidUi) -> None:
    assert "row 8" not in ui.hierarchy()
    area = next(
        node.bounds
        for window in parse_hierarchy(ui.hierarchy())
        for node in window.walk()
        if node.resource_id.endswith("/list")
    )
    x, y = area.center
    for _ in range(4):
        ui.swipe(x, y + 150, x, y - 150, duration_s=0.2)
    ui.wait(Selector("text", "row 8"))


def test_screenshot_is_that_of_the_screen(ui: AndroidUi, tmp_path: Path) -> None:
    ui.screenshot(tmp_path / "new" / "screen.png")
    assert picture_of(tmp_path / "new" / "screen.png") == ("PNG", (1080, 2400))
    assert ui.keep_evidence(tmp_path / "kept.png")
    assert "com.example.contract" in (tmp_path / "kept.xml").read_text()


def test_known_dialog_is_closed_and_told(ui: AndroidUi, observed: list[dict[str, Any]]) -> None:
    ui.tap(Selector("id", "ask"))
    ui.tap(Selector("id", "go"))
    ui.wait(Selector("text", "Second"))
    assert observed == [{"event": "dialog", "name": "rate-me", "package": PACKAGE}]


def test_dialog_that_nobody_knew_fails_the_step_and_is_kept(ui: AndroidUi, screenshots: Path) -> None:
    ui.tap(Selector("id", "strange"))
    message = r"in front is com\.vendor\.assistant: 'Meet your assistant' \(see"
    with pytest.raises(StepError, match=message) as caught:
        ui.tap(Selector("id", "go"), timeout_s=0.5)
    screenshot = screenshots / str(caught.value).rpartition("/")[2].rstrip(")")
    assert "Meet your assistant" in screenshot.with_suffix(".xml").read_text()
    ui.back()
    ui.wait(Selector("id", "go"))


def test_link_opens_in_the_app(ui: AndroidUi) -> None:
    ui.open("https://example.com/a?b=c")
    assert ui.read(Selector("id", "link")) == "https://example.com/a?b=c"


def test_app_that_is_not_there(ui: AndroidUi) -> None:
    with pytest.raises(StepError, match=r"opening com\.example\.missing/\.Main"):
        ui.open("com.example.missing/.Main", timeout_s=0.5)


def test_no_driver_of_android_takes_what_only_browsers_can(make: Callable[[AndroidSettings], Any]) -> None:
    factory = make(AndroidSettings())
    for options in ({"switches": ["--mute-audio"]}, {"sound": "unix:/x"}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            factory(**options)
    assert not {"evaluate", "network_events"} & set(dir(AndroidUi))


@pytest.fixture
def store(device: Device, tmp_path: Path) -> Iterator[Path]:
    """The file to which a server appends the sizes of uploads."""
    received = tmp_path / "received"
    enter = [str(NSENTER.path()), f"--target={device.facts['system_pid']}", "--net", "--"]
    process = subprocess.Popen(
        [*enter, sys.executable, "-c", STORE, str(received)], stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    probe = [*enter, "curl", "-s", "-o", "/dev/null", "http://127.0.0.1:8099/"]
    try:
        wait_until(lambda: subprocess.run(probe, check=False).returncode == 0, "the store answers")
        yield received
    finally:
        process.terminate()
        process.wait()


def test_upload_in_the_scripted_app_moves_real_bytes(
    session: AndroidUi, adb: Adb, device: Device, store: Path, tmp_path: Path
) -> None:
    elements = load_android_app(SCENARIOS_DIR / "dropbox", "dropbox").elements
    (tmp_path / "photo.bin").write_bytes(os.urandom(700_000))
    adb("push", str(tmp_path / "photo.bin"), "/sdcard/Download/photo.bin", serial=device.address)
    adb("shell", "pm", "clear", "com.dropbox.android", serial=device.address)
    session.open("com.dropbox.android")
    session.tap(elements["create"])
    session.tap(elements["upload files"])
    session.wait(elements["file chooser"])
    session.tap(Selector("text", "photo.bin"))
    session.wait(elements["uploaded"], timeout_s=30)
    assert store.read_text() == "700000 "


def test_rebuffering_is_seen_by_looking(
    session: AndroidUi, adb: Adb, device: Device, store: Path, observed: list[dict[str, Any]]
) -> None:
    elements = load_android_app(SCENARIOS_DIR / "youtube", "youtube").elements
    wanted = {name: elements[name] for name in ("loading", "position", "ended")}

    def consented() -> bool:
        session.wait(Selector("id", "results"))
        return any(event["name"] == "consent-google" for event in observed)

    observed.clear()
    adb("shell", "pm", "clear", "com.google.android.youtube", serial=device.address)
    session.open("com.google.android.youtube")
    wait_until(consented, "the consent dialog is closed")
    session.tap(Selector("text", "First clip"))
    sampled = sample(session, wanted, for_s=30, until=lambda look: "ended" in look.shown, watch=session.close_dialog)
    assert "ended" in sampled.looks[-1].shown
    fields = sampled.fields("loading")
    assert fields["stalls"] == []
    assert fields["startup_s"] is not None
    assert 0 < fields["startup_s"] < 20
    assert fields["resolution_s"] >= fields["every_s"] * 0.9
    times = [look.t for look in sampled.looks]
    assert times == sorted(times)


def test_automation_that_dies_comes_back(session: AndroidUi, device: Device, request: pytest.FixtureRequest) -> None:
    """uiautomator2's client starts its server again; Appium reports that its server is gone."""
    device.fault("agent")
    time.sleep(0.5)
    if "uiautomator2" in request.node.name:
        session.open(f"{PACKAGE}/.Main")
        session.wait(Selector("id", "go"))
    else:
        with pytest.raises(StepError, match=r"opening|hierarchy|element tree|instrumentation"):
            session.hierarchy()
