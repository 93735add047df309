"""The scenarios radio and spotify: parameters, scores of stored observations, commands to the app."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.scores.plugins import load
from mplab.base.errors import StepError
from mplab.drivers.phone.sound import Recorded
from mplab.drivers.services import load_service
from mplab.drivers.services.protocol import ServiceContext
from mplab.lab.catalog import load_scenario
from tests.unit.scenarios.scoring.sound.conftest import Heard, described, heard, metrics, source, station, write_wav

pytestmark = pytest.mark.long

__all__ = ["described", "heard", "source", "station"]


FACES = {"radio": {"requests": 1}, "spotify": {"failures": 0, "bytes": 1_200_000}}


def observed(described: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    sound = {"event": "sound", "file": "sound.wav", "began": 1000.0, "tapped": 1001.0, "listened_s": 20.0}
    return sound | {"melody": described} | FACES[name] | changes


@pytest.mark.parametrize("name", ["radio", "spotify"])
def test_worse_sound_scores_worse(name: str, heard: Heard, described: dict[str, Any], tmp_path: Path) -> None:
    plugin = load(name)

    def scored(*parts: Any, **changes: Any) -> dict[str, float]:
        write_wav(tmp_path / "sound.wav", heard(*parts))
        carried = {"bytes_up": 1000, "bytes_down": changes.get("bytes", 2_000_000)}
        traffic = {"event": "traffic", "interfaces": {"wlan0": carried, "rmnet0": carried}}
        return metrics(plugin.score([observed(described, name, **changes), traffic], {}, tmp_path))

    clean = scored(1.3, (0, 30))
    worse = scored(2.5, (0, 5), 3.0, (5, 7), 0.04, (7, 8), (10, 12), (11, 30), requests=3, failures=2, bytes=800_000)
    metrics_heard = [metric for metric in plugin.metrics if metric.name != "look_resolution"]
    assert set(clean) == {metric.name for metric in metrics_heard}
    assert all(clean[metric] == 0 for metric in ("silences", "silence_time", "glitches", "skips"))
    for metric in metrics_heard:
        before, after = clean[metric.name], worse[metric.name]
        if metric.better == "lower" and metric.name != "cellular_bytes":
            assert after > before, metric.name
    assert worse["recognised"] > 90


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("radio", "listen: 100 s", "listen 100 s: from 1 s to 75 s is possible: a test ends within 120 s"),
        ("radio", "listen: 75", "a number needs a unit"),
        ("radio", "patience: 100 ms", "patience 0.1 s: from 1 s to 60 s is needed"),
        ("radio", "buffer: 0 s", "buffer 0 s: from 0.1 s to 30 s is possible"),
        ("radio", "chunk: 1 MB", "unknown key 'chunk'"),
        ("spotify", "listen: 0 s", "listen 0 s: from 1 s to 75 s is possible"),
        ("spotify", "chunk: 10 B", "chunk 10 B: from 1 kB to 1 MB is possible"),
        ("spotify", "{ahead: 1 s, buffer: 2 s}", "ahead 1 s: less than buffer, 2 s"),
    ],
)
def test_wrong_parameters(name: str, text: str, message: str, problems: Callable[[Any, str], list[str]]) -> None:
    scenario = load_scenario(name)
    assert message in "\n".join(problems(scenario, text))


@pytest.mark.parametrize("name", ["radio", "spotify"])
def test_default_parameters_are_the_papers_and_fit_into_the_default_cell_timeout(name: str) -> None:
    scenario = load_scenario(name)
    parameters: Any = scenario.parameters()
    assert parameters.listen == 75.0
    assert scenario.estimate_s(parameters) < scenario.time_limit_s(parameters) <= 120


class PlayingUi:
    """An app whose page reports the given player state."""

    def __init__(self, player: dict[str, Any]) -> None:
        self.player = player
        self.did: list[tuple[str, Any]] = []

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.did.append(("open", target))

    def tap(self, selector: Any, *, timeout_s: float = 10.0) -> None:
        self.did.append(("tap", selector.value))

    def evaluate(self, script: str) -> Any:
        return json.loads(json.dumps(self.player))


class Card:
    """A sound card with a finished recording."""

    server = "unix:/nowhere/socket"

    def __init__(self, peak: float) -> None:
        self.peak = peak
        self.file = Path()

    def record(self, file: Path) -> None:
        self.file = file

    def stop_recording(self) -> Recorded:
        return Recorded(self.file, 1000.0, 2.5, self.peak)


def play(make_cell: Callable[..., Any], name: str, player: dict[str, Any], peak: float, tmp_path: Path) -> Any:
    """Run a scenario for a second; return the cell and the app."""
    scenario = load_scenario(name)
    ui, card, cell = PlayingUi(player), Card(peak), make_cell()

    @contextmanager
    def opened(value: Any) -> Iterator[Any]:
        yield value

    def open_ui(*, switches: Any = (), sound: str = "") -> AbstractContextManager[Any]:
        assert sound == card.server
        return opened(ui)

    service = load_service("icecast")
    context = ServiceContext(tmp_path, tmp_path, None, None)  # type: ignore[arg-type]
    cell.context = replace(
        cell.context, open_ui=open_ui, open_sound=lambda: opened(card), service=lambda _: service.facts(context)
    )
    parameters = scenario.parameters.model_validate({"listen": "1 s"})
    cell.run(scenario, parameters)
    return cell, ui


def test_the_radio_is_tapped_once_and_what_was_sent_is_observed(make_cell: Callable[..., Any], tmp_path: Path) -> None:
    player = {"tapped": 1001.0, "requests": 2, "events": [{"t": 1001.5, "event": "playing", "position": 0}]}
    cell, ui = play(make_cell, "radio", player, 0.3, tmp_path)
    assert ui.did == [
        ("open", "http://radio.lab/?port=8000&mount=/live&patience=10.0&buffer=2.0"),
        ("tap", "#play"),
    ]
    event, sound = cell.observations
    assert event == {"event": "player", "at": 1001.5, "what": "playing", "position": 0}
    assert (sound["tapped"], sound["listened_s"], sound["requests"], sound["file"]) == (1001.0, 1.0, 2, "sound.wav")
    assert len(sound["melody"]["notes"]) == 2000


def test_the_melody_of_shuffled_tracks_is_theirs_in_the_order_played(
    make_cell: Callable[..., Any], tmp_path: Path
) -> None:
    order = ["track-3", "track-1", "track-5", "track-2", "track-4"]
    player = {"tapped": 1001.0, "order": order, "chunks": 4, "failures": 0, "bytes": 5, "events": []}
    cell, ui = play(make_cell, "spotify", player, 0.3, tmp_path)
    (sound,) = cell.observations
    tracks = {track.name: track.melody.notes for track in load_service_module().TRACKS}
    assert sound["melody"]["notes"] == "".join(tracks[name] for name in order)
    assert "chunk=128000" in ui.did[0][1]


@pytest.mark.parametrize(
    ("player", "peak", "message"),
    [
        ({"tapped": None, "requests": 0}, 0.3, "radio: the tap did not reach the app"),
        ({"tapped": 1.0, "requests": 4}, 0.0, "radio: no sound in 2 s; the app says: .*'requests': 4"),
    ],
)
def test_no_sound_is_a_failure_with_what_the_app_says(
    make_cell: Callable[..., Any], tmp_path: Path, player: dict[str, Any], peak: float, message: str
) -> None:
    with pytest.raises(StepError, match=message):
        play(make_cell, "radio", player, peak, tmp_path)


def load_service_module() -> Any:
    from mplab.services.icecast import service

    return service
