"""The scenarios youtube and dailymotion on an app that plays from a script."""

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.format.selector import Selector
from mplab.lab.catalog import load_scenario
from mplab.scenarios.base import playback
from mplab.scenarios.base.scoring.playback import clips_of

FACTS = {"tube": "https://www.tube.lab/", "motion": "https://www.motion.lab/"}
TOLD = [
    {"event": "tapped", "clip": "clip-1", "at": 1.0},
    {"event": "segment", "clip": "clip-1", "at": 1.5, "kind": "video"},
    {"event": "left", "clip": "clip-1", "at": 2.0, "media_s": 0.5},
]


class PlayingUi:
    """An app whose status comes from a list; the last status is repeated."""

    def __init__(
        self, statuses: Sequence[str] = ("ended",), told: Sequence[dict[str, Any]] = TOLD, *, starts: bool = True
    ) -> None:
        self._statuses = list(statuses)
        self._told = list(told)
        self._starts = starts
        self.did: list[str] = []

    def open(self, target: str, *, timeout_s: float) -> None:
        self.did.append(f"open {target}")

    def tap(self, selector: Selector) -> None:
        self.did.append(f"tap {selector.value}")

    def wait(self, selector: Selector, *, timeout_s: float) -> None:
        self.did.append(f"wait {selector.value} {timeout_s:g}")
        if not self._starts:
            raise StepError("browser: waiting: not there (see screenshots/step-03.png)")

    def read(self, _selector: Selector) -> str:
        return self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]

    def evaluate(self, _script: str) -> list[dict[str, Any]]:
        return self._told


@pytest.fixture(params=["youtube", "dailymotion"])
def scenario(request: pytest.FixtureRequest) -> Any:
    return load_scenario(request.param)


@pytest.fixture
def play(make_cell: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a scenario in which sleeping only advances the clock."""
    clock = SimpleNamespace(t=0.0)

    def sleep(seconds: float) -> None:
        clock.t += seconds

    monkeypatch.setattr(playback, "time", SimpleNamespace(monotonic=lambda: clock.t, sleep=sleep))

    def run(scenario: Any, ui: PlayingUi, **given: Any) -> Any:
        cell = make_cell(ui=ui)
        cell.clock = clock
        cell.context = dataclasses.replace(cell.context, service=lambda name: FACTS if name == "dash" else {})
        run.cell = cell  # type: ignore[attr-defined]
        cell.run(scenario, scenario.parameters.model_validate(given))
        return cell

    return run


def test_the_steps(scenario: Any, play: Callable[..., Any]) -> None:
    ui = PlayingUi()
    cell = play(scenario, ui, clips=["clip-2", "clip-1"], highest="480p", adaptation="buffer", patience="7 s")
    site = {"youtube": "tube", "dailymotion": "motion"}[scenario.name]
    each = ["wait #screen.started 7", "tap #back"]
    assert ui.did == [
        f"open https://www.{site}.lab/?adaptation=buffer&highest=480",
        "tap #clip-2",
        *each,
        "tap #clip-1",
        *each,
    ]
    assert cell.opened == 1
    assert [(record["event"], record["visit"]) for record in cell.observations] == [
        (event["event"], visit) for visit in (1, 2) for event in TOLD
    ]


def test_a_clip_that_lasts_is_left(scenario: Any, play: Callable[..., Any]) -> None:
    cell = play(scenario, PlayingUi(["playing", "waiting"]), clips=["clip-1"], watch="12 s", pause="0 s")
    assert cell.clock.t == pytest.approx(12.0)


def test_a_busy_host_is_a_warning(scenario: Any, play: Callable[..., Any]) -> None:
    late = {"event": "sample", "clip": "clip-1", "at": 1.6, "frames": 100, "dropped": 30}
    cell = play(scenario, PlayingUi(told=[*TOLD[:2], late, TOLD[2]]), clips=["clip-1"])
    (warning,) = [record["text"] for record in cell.observations if record["event"] == "warning"]
    assert warning.startswith("clip-1: the host was busy: 30.0 % of the frames")


def test_a_player_that_gives_up(scenario: Any, play: Callable[..., Any]) -> None:
    message = rf"^{scenario.name}: clip-1: the player failed: 27: gone$"
    with pytest.raises(StepError, match=message):
        play(scenario, PlayingUi(["playing", "failed: 27: gone"]))
    assert len(play.cell.observations) == len(TOLD)  # type: ignore[attr-defined]


def test_a_clip_that_does_not_begin(scenario: Any, play: Callable[..., Any]) -> None:
    message = r"clip-1: no picture within 10 s, the player reports 'loading': .*see screenshots/step-03\.png"
    with pytest.raises(StepError, match=message):
        play(scenario, PlayingUi(["loading"], starts=False))
    assert play.cell.observations[0]["event"] == "tapped"  # type: ignore[attr-defined]


def test_a_player_that_tells_nothing(scenario: Any, play: Callable[..., Any]) -> None:
    with pytest.raises(StepError, match="clip-1: the player reported no segment"):
        play(scenario, PlayingUi(told=[TOLD[0]]))


def test_time_limits(scenario: Any) -> None:
    defaults = scenario.parameters()
    assert scenario.time_limit_s(defaults) == 120
    assert scenario.estimate_s(defaults) > 3 * 25
    longer = scenario.parameters.model_validate({"watch": "60 s"})
    assert scenario.time_limit_s(longer) > scenario.estimate_s(longer) > 180


def test_the_papers_values_are_the_defaults() -> None:
    youtube, dailymotion = (load_scenario(name).parameters().model_dump() for name in ("youtube", "dailymotion"))
    for defaults in (youtube, dailymotion):
        assert (defaults["clips"], defaults["watch"]) == (("clip-1", "clip-2", "clip-3"), 25.0)
        assert defaults["adaptation"] == "capacity"
    assert (youtube["highest"], dailymotion["highest"]) == ("720p", "1080p")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clips: [clip-4]", "Did you mean 'clip-3'?"),
        ("clips: []", "at least 1"),
        ("clips: [clip-1, clip-1]", "listed twice: clip-1"),
        ("adaptation: cba", "Allowed: capacity, buffer, dynamic"),
        ("highest: 721p", "Did you mean '720p'?"),
        ("watch: 25", "a number needs a unit: ms, s"),
        ("watch: 10 ms", "found '10 ms'"),
        ("patience: 0 s", "must be at least 1"),
        ("quality: 720p", "unknown key 'quality'"),
    ],
)
def test_wrong_parameters(scenario: Any, problems: Callable[[Any, str], list[str]], text: str, message: str) -> None:
    assert message in "\n".join(problems(scenario, text))


def test_clips_that_failed_are_not_scored() -> None:
    records = [{"t": 1.0, "visit": 1, **event} for event in TOLD]
    assert clips_of(records) == []
