"""Screenshot, screen recording, element tree and log of an emulated device."""

import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from mplab.base.errors import DeviceError
from mplab.base.hierarchy import parse_hierarchy
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.screen import Film, LogCut, ScreenRecording, hierarchy, screenshot


@pytest.fixture(scope="module")
def phone(server: AdbServer) -> Iterator[AdbPhone]:
    with (
        Device(DeviceSettings(phone="android-13")) as device,
        AdbPhone("one", server, AdbSettings(serial=device.address)) as phone,
    ):
        yield phone


def test_screenshot(phone: AdbPhone, tmp_path: Path) -> None:
    screenshot(phone, tmp_path / "screenshots" / "one.png")
    with Image.open(tmp_path / "screenshots" / "one.png") as picture:
        assert picture.size == (1080, 2400)


def test_element_tree(phone: AdbPhone) -> None:
    text = hierarchy(phone)
    assert text.startswith("<?xml")
    assert any(node.resource_id or node.text for window in parse_hierarchy(text) for node in window.walk())


@pytest.mark.skipif(not shutil.which("ffprobe"), reason="no ffmpeg: the emulated device makes no films")
def test_film(phone: AdbPhone, tmp_path: Path) -> None:
    recording = ScreenRecording(phone, tmp_path / "logs" / "screen.log")
    time.sleep(1.5)
    recording.save(tmp_path / "screen.mp4")
    argv = ["ffprobe", "-v", "error", "-show_format", "-of", "json", str(tmp_path / "screen.mp4")]
    probe = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=30).stdout)
    assert "mp4" in probe["format"]["format_name"]
    assert phone.shell(["ls", recording._path], check=False).exit_code != 0


@pytest.mark.skipif(not shutil.which("ffprobe"), reason="no ffmpeg: the emulated device makes no films")
def test_a_film_that_is_longer_than_android_allows_has_parts(phone: AdbPhone, tmp_path: Path) -> None:
    film = Film(phone, tmp_path / "film", tmp_path / "logs", part_s=2)
    time.sleep(5)
    parts = film.save()
    assert len(parts) >= 2
    assert [part.path.name for part in parts] == [f"{number}.mp4" for number in range(1, len(parts) + 1)]
    assert all(part.path.stat().st_size > 0 for part in parts)
    begins = [part.began for part in parts]
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(begins))


def test_a_film_that_ends_by_itself_is_not_begun_for_ever(phone: AdbPhone, tmp_path: Path) -> None:
    film = Film(phone, tmp_path / "film", tmp_path / "logs")
    film._parts[0]._process.stop()
    time.sleep(1)
    with pytest.raises(
        DeviceError, match=r"one \(.*\): (its screen recording has ended by itself|no screen recording)"
    ):
        film.save()
    assert len(film._parts) == 1


def test_film_that_cannot_be_made(phone: AdbPhone, tmp_path: Path) -> None:
    recording = ScreenRecording(phone, tmp_path / "logs" / "screen.log", bit_rate=1)
    recording._path = "/data/local/tmp/none.mp4"
    with pytest.raises(DeviceError, match=r"one \(.*\): no screen recording"):
        recording.save(tmp_path / "screen.mp4")


def test_log_is_cut_to_the_cell(phone: AdbPhone, tmp_path: Path) -> None:
    phone.script("log -t mplab before-the-cell")
    time.sleep(0.05)
    cut = LogCut(phone)
    phone.script("log -t mplab during-the-cell")
    cut.save(tmp_path / "logs" / "logcat.txt")
    text = (tmp_path / "logs" / "logcat.txt").read_text()
    assert "during-the-cell" in text
    assert "before-the-cell" not in text
