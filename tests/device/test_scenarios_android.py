"""Every Android scenario on an emulated device, against the origin's own services: observations and scores.

All scenarios run once, on one device (`tests.device.inside_apps`); each test checks one of them. No test asserts times
of this machine, only the effect of a stopped server on them.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mplab.base.enter import lab_process
from mplab.base.errors import MplabError
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import CERTUTIL, CHROMIUM, DNSMASQ, MPFLEX, NGINX, NODE, Program
from mplab.drivers.services import load_service
from mplab.lab.catalog import load_android_scenario, scenario_names
from mplab.userfiles.experiments.app import load_android_apps
from tests.device.inside_apps import LATE_S

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 500
pytestmark = pytest.mark.timeout(_TIMEOUT_S + 60)


@dataclass(frozen=True)
class Cell:
    """Results of one cell."""

    observed: tuple[Mapping[str, Any], ...]
    scores: Mapping[str, float]
    """Metric → value; of several values, the last."""
    error: str
    files: tuple[str, ...]
    har: Mapping[str, Any]

    def all(self, event: str) -> list[Mapping[str, Any]]:
        return [item for item in self.observed if item["event"] == event]

    def one(self, event: str) -> Mapping[str, Any]:
        (observation,) = self.all(event)
        return observation


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Cell]:
    try:
        for program in needed():
            program.path()
    except MplabError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("apps")
    command = ["env", f"PYTHONPATH={_ROOT}", sys.executable, "-m", "tests.device.inside_apps", str(folder)]
    with (
        (folder / "output").open("wb") as output,
        lab_process(command, stdout=output, stderr=subprocess.STDOUT) as lab,
    ):
        code = lab.wait(_TIMEOUT_S)
    assert code == 0, (folder / "output").read_text()
    return {path.stem: read(path) for path in folder.glob("*.json")}


def needed() -> Iterator[Program]:
    """Yield the programs that must be installed."""
    for name in ("dash", "feed", "icecast", "turn", "upload", "xmpp"):
        yield from load_service(name).programs
    yield from (NGINX, DNSMASQ, MPFLEX, CHROMIUM, CERTUTIL, NODE)


def read(path: Path) -> Cell:
    result = json.loads(path.read_text())
    scores = {value["metric"]: value["value"] for value in result["scores"]}
    return Cell(tuple(result["observed"]), scores, result["error"], tuple(result["files"]), result["har"])


def test_whoever_has_an_app_has_its_android_side() -> None:
    for name in scenario_names():
        has_apps = (SCENARIOS[name].folder() / "app.yaml").exists() and load_android_apps(SCENARIOS[name].folder())
        assert bool(has_apps) == (SCENARIOS[name].folder() / "android.py").exists(), name
        scenario = load_android_scenario(name)
        assert scenario.name == name
        assert scenario.parameters.__name__.endswith("Parameters")


def test_nothing_went_wrong_and_nothing_is_left(cells: Mapping[str, Cell]) -> None:
    wrong = {name: cell.error for name, cell in cells.items() if cell.error}
    assert set(wrong) == {"youtube-refused"}
    assert {cell.files for cell in cells.values()} == {()}


def test_uploads_arrive_whole(cells: Mapping[str, Cell]) -> None:
    cell = cells["dropbox"]
    uploads = cell.all("upload")
    assert [(upload["file"], upload["state"], upload["size_bytes"]) for upload in uploads] == [
        (1, "done", 2_000_000),
        (2, "done", 2_000_000),
    ]
    assert {arrival["file"]: arrival["timeline"][-1][1] for arrival in cell.all("arrived")} == {
        1: 2_000_000,
        2: 2_000_000,
    }
    assert all(upload["resolution_s"] >= 0.25 and upload["duration_s"] >= 0 for upload in uploads)
    assert {"upload_time", "goodput", "uploaded_share", "look_resolution"} <= set(cell.scores)
    assert cell.scores["uploaded_share"] == 100


def test_upload_that_does_not_end_is_cancelled(cells: Mapping[str, Cell]) -> None:
    cell = cells["drive"]
    upload = cell.one("upload")
    assert (upload["state"], upload["blocks"]) == ("cancelled", None)
    assert upload["duration_s"] > 1
    assert "upload_time" not in cell.scores, "it has none"
    assert "uploaded_share" not in cell.scores, "nobody knows what had arrived"


def test_clips_play_and_a_dialog_is_closed(cells: Mapping[str, Cell]) -> None:
    cell = cells["youtube"]
    assert cell.one("dialog")["name"] == "consent-google"
    for visit, clip in ((1, "clip-1"), (2, "clip-2")):
        events = [item for item in cell.observed if item.get("visit") == visit]
        assert {item["clip"] for item in events} == {clip}
        assert [item["event"] for item in events] == ["tapped", "playing", "left", "rebuffering"]
        times = [item["at"] for item in events if "at" in item]
        assert times == sorted(times)
    assert cell.scores["rebuffering_count"] == 0
    assert cell.scores["look_resolution"] == max(item["resolution_s"] for item in cell.all("rebuffering"))
    unknown = {"mean_bitrate", "quality_switches", "quality_time", "buffer_level", "dropped_frames", "host_stalls"}
    assert not unknown & set(cell.scores)


def test_clip_that_begins_late(cells: Mapping[str, Cell]) -> None:
    """The server answers `LATE_S` after the preparation starts; 0.5 s of that are the user's pause."""
    late, usual = cells["dailymotion"].scores["startup_delay"], cells["youtube"].scores["startup_delay"]
    assert usual + 0.5 < late < LATE_S + usual + 5


def test_clip_that_is_refused(cells: Mapping[str, Cell]) -> None:
    cell = cells["youtube-refused"]
    assert cell.error.startswith("youtube: long: the app says: ")
    assert "HTTP status 404" in cell.error
    assert cell.one("rebuffering")["startup_s"] is None
    assert "startup_delay" not in cell.scores


def test_radio_falls_silent_when_the_station_does(cells: Mapping[str, Cell]) -> None:
    cell = cells["radio"]
    listened = cell.one("listened")
    assert listened["by"] == "loading"
    assert len(listened["silences"]) == 1
    assert cell.scores["silences"] == 1
    assert 1 < cell.scores["silence_time"] == cell.scores["silence_longest"] < 7
    assert {"glitches", "skips", "recognised", "stutter_time"}.isdisjoint(cell.scores)


def test_music_is_seen_by_its_position(cells: Mapping[str, Cell]) -> None:
    cell = cells["spotify"]
    listened = cell.one("listened")
    assert (listened["by"], listened["silences"]) == ("position", [])
    assert cell.scores["look_resolution"] >= 1
    assert 0 <= cell.scores["time_to_first_sound"] < listened["listened_s"]


@pytest.mark.parametrize(("name", "sites"), [("firefox", {"search"}), ("web-seen", {"search", "wiki"})])
def test_pages_are_seen_to_load(cells: Mapping[str, Cell], name: str, sites: set[str]) -> None:
    cell = cells[name]
    pages = cell.all("page")
    assert {page["site"] for page in pages} == sites
    assert all(page["page_load_time_s"] > 0 and page["transferred_bytes"] is None for page in pages)
    assert {page["seen_by"] for page in pages} == {"screen"}
    assert {"page_load_time", "page_load_time_mean", "look_resolution"} == set(cell.scores)
    assert not cell.har


def test_chrome_tells_what_it_loads(cells: Mapping[str, Cell]) -> None:
    cell = cells["web"]
    pages = cell.all("page")
    objects = {f"{page['site']}-{page['load']}": page["objects"] for page in pages}
    assert objects == {"search-1": 2, "wiki-1": 28, "search-2": 2, "wiki-2": 28}, "each time with a cold cache"
    for page in pages:
        assert page["seen_by"] == "devtools"
        assert page["protocol"] == "h2"
        assert 0 < page["time_to_first_byte_s"] <= page["dom_content_loaded_s"] <= page["page_load_time_s"]
        assert page["transferred_bytes"] > page["body_bytes"] * 0.9
    assert {"page_load_time", "dom_content_loaded", "page_first_byte", "dns_time", "page_bytes"} < set(cell.scores)
    assert "look_resolution" not in cell.scores, "nothing was read from the screen"
    entries = {name: har["log"]["entries"] for name, har in cell.har.items()}
    assert {name: len(page_entries) for name, page_entries in entries.items()} == objects
    assert all(entry["response"]["status"] == 200 for page_entries in entries.values() for entry in page_entries)


@pytest.mark.parametrize(("name", "loads"), [("web", 2), ("web-seen", 1)])
def test_chromes_first_run_is_closed(cells: Mapping[str, Cell], name: str, loads: int) -> None:
    assert [item["name"] for item in cells[name].all("dialog")] == ["chrome-first-run"] * loads


def test_social_network_does_what_is_asked(cells: Mapping[str, Cell]) -> None:
    cell = cells["facebook"]
    assert cell.one("plan")["actions"] == 5
    actions = cell.all("action")
    assert [item["action"] for item in actions] == ["refresh", "status", "photo", "nearby", "check-in"]
    assert actions[0]["texts_s"] is None
    assert cell.scores["actions_done"] == 100
    assert "time_to_texts" not in cell.scores


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("messenger", ["text", "smiley", "periodic", "periodic"]),
        ("whatsapp", ["text", "smiley"]),
        ("signal", ["periodic"]),
    ],
)
def test_messages_are_delivered(cells: Mapping[str, Cell], name: str, kinds: list[str]) -> None:
    cell = cells[name]
    messages = cell.all("message")
    assert [item["kind"] for item in messages] == kinds
    assert all(item["delivered"] and item["delivery_delay_s"] > 0 for item in messages)
    assert [item["kind"] for item in cell.all("skipped")] == (["photo"] if "text" in kinds else [])
    assert cell.scores["undelivered"] == 0
    assert "message_one_way_delay" not in cell.scores, "the contact here tells nothing"


def test_call_is_set_up_and_lasts(cells: Mapping[str, Cell]) -> None:
    cell = cells["call"]
    call = cell.one("call")
    assert (call["cut"], call["candidates"], call["answered_at"]) == (False, {}, None)
    assert call["shown_s"] >= 9, "the app's own timer"
    assert abs(call["duration_s"] - call["shown_s"]) < 3
    assert {"setup_time", "call_duration", "calls_cut", "look_resolution"} == set(cell.scores)
