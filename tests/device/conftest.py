"""Emulated devices, and a stock adb with its own server: it touches no other adb server of the host."""

import inspect
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import adbutils
import pytest

from mplab.base import polling
from mplab.base.enter import check_namespaces
from mplab.base.errors import LabNotReadyError, MplabError
from mplab.base.ports import free_port
from mplab.device import Device, DeviceSettings
from mplab.device.adbd import find_adbd
from mplab.device.system.toolbox import NEEDED
from mplab.drivers.phone.adb import AdbServer

TIMEOUT_S = 30.0


@pytest.fixture(scope="session", autouse=True)
def _device_is_possible() -> None:
    try:
        for program in NEEDED:
            program.path()
        check_namespaces()
    except MplabError as error:
        pytest.skip(str(error))


_WITH_BOTH = {"test_adb_phone", "test_adbd", "test_connect", "test_faults", "test_files", "test_shell", "test_sockets"}
"""Modules whose tests run with mplab's own adbd and with Debian's."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "adbd" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2] in _WITH_BOTH:
        metafunc.parametrize("adbd", ["own", "debian"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def adbd(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the adbd of the devices that the module's tests start."""
    choice = getattr(request, "param", "")
    with pytest.MonkeyPatch.context() as patch:
        if choice:
            patch.setenv("MPLAB_ADBD", choice)
        try:
            find_adbd()
        except LabNotReadyError as error:
            pytest.skip(str(error))
        yield choice


@dataclass(frozen=True)
class Adb:
    """Stock adb with its own server and its own key."""

    port: int
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "ANDROID_ADB_SERVER_PORT": str(self.port)}

    @property
    def key(self) -> str:
        """The public key."""
        return (self.home / ".android" / "adbkey.pub").read_text().strip()

    def __call__(
        self, *arguments: str, stdin: bytes = b"", serial: str = "", timeout_s: float = TIMEOUT_S
    ) -> subprocess.CompletedProcess[bytes]:
        which = ["-s", serial] if serial else []
        return subprocess.run(
            ["adb", "-P", str(self.port), *which, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=self.environment,
        )

    def text(self, *arguments: str, serial: str = "") -> str:
        """Return the standard output of a command."""
        return self(*arguments, serial=serial).stdout.decode()

    def state(self, serial: str) -> str:
        """Return ``device``, ``offline`` or ``unauthorized``; "" if the device is not listed."""
        lines = self.text("devices").splitlines()
        return next((line.split("\t")[1] for line in lines if line.startswith(f"{serial}\t")), "")

    def connect(self, device: Device, state: str = "device") -> str:
        """Connect, wait for a state and return the serial that adb uses."""
        self("connect", device.address)
        wait_until(lambda: self.state(device.address) == state, f"{device.address} is {state}")
        return device.address

    def reconnect(self, device: Device) -> str:
        """Connect again after a lost connection and return the serial."""

        def back() -> bool:
            self("disconnect", device.address)
            self("connect", device.address)
            return self.state(device.address) == "device"

        wait_until(back, f"{device.address} is back")
        return device.address


@pytest.fixture(scope="session")
def adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    connection = start_adb(tmp_path_factory.mktemp("home"))
    with connection as running:
        yield running


class start_adb:  # noqa: N801 - read as a verb
    """Runs an adb server as a child of this process."""

    def __init__(self, home: Path) -> None:
        self.adb = Adb(free_port(), home)

    def __enter__(self) -> Adb:
        with (self.adb.home / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["adb", "-P", str(self.adb.port), "nodaemon", "server"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.adb.environment,
            )
        wait_until(lambda: _listens(self.adb.port), "the adb server listens")
        return self.adb

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def client(adb: Adb) -> adbutils.AdbClient:
    return adbutils.AdbClient(host="127.0.0.1", port=adb.port)


@pytest.fixture(scope="module")
def phone(adb: Adb, adbd: str) -> Iterator[Device]:
    """A connected, rooted Android 13, for tests that leave it unchanged."""
    with Device(DeviceSettings(phone="android-13", apps=False)) as device:
        adb.connect(device)
        wait_until(lambda: device.state()["radios"]["data_up"], "both radios are up")
        yield device


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbServer]:
    """An adb server, started as mplab starts it."""
    with AdbServer(tmp_path_factory.mktemp("adb-home")) as server:
        yield server


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory, adbd: str) -> Iterator[Device]:
    """A rooted Android 13 for `server`, with both radios up."""
    with quick_device(tmp_path_factory.mktemp("phone")) as device:
        wait_until(lambda: device.state()["radios"]["data_up"], "both radios are up")
        yield device


def quick_device(folder: Path, *, root: str = "su") -> Device:
    """Return an Android 13 that boots fast and has fast radios; its description is written to `folder`."""
    file = folder / "quick.yaml"
    text = (Path(inspect.getfile(Device)).parent / "phones" / "android-13.yaml").read_text()
    file.write_text(text.replace("root: su", f"root: {root}\nboot_s: 1.0\nradio_delay_s: 0.2"))
    return Device(DeviceSettings(phone=str(file), apps=False))


Shell = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def shell(adb: Adb, phone: Device) -> Shell:
    """Run a command line on the phone."""

    def run(command: str, *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return adb("shell", command, stdin=stdin, serial=phone.address)

    return run


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until `condition` holds; fail the test after `timeout_s`."""
    if not polling.wait_until(condition, timeout_s, interval_s=0.05):
        pytest.fail(f"not within {timeout_s:g} s: {what}")
