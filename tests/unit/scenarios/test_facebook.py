"""The scenario `facebook` on an app whose answers the test sets."""

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.format.selector import Selector

FACTS = {"feed": {"url": "https://feed.lab", "pictures": "https://pictures.feed.lab"}}
ROUND = ["refresh", "status", "photo", "nearby", "check-in"]


class AppUi:
    """An app that does everything at once; `wrong`: action → wrong fields of its result."""

    def __init__(self, wrong: dict[str, dict[str, Any]] | None = None, stuck: str = "", error: str = "") -> None:
        self._wrong, self._stuck, self._error = wrong or {}, stuck, error
        self._composing = self._text = self._done = ""
        self._photo = b""
        self.results: list[dict[str, Any]] = []
        self.opened = ""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.opened = target

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        name = selector.value.removeprefix("#")
        if name in {"status", "photo", "check-in"}:
            self._composing = name
        if name in {"refresh", "check-in"}:
            self._finish({"check-in": "nearby"}.get(name, name))
        if name == "post":
            self._finish(self._composing)

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        if selector.value == "#file":
            self._photo = Path(text).read_bytes()
        else:
            self._text = text

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        if self._done == self._stuck != "" and "state" in selector.value:
            time.sleep(timeout_s)
            raise StepError("browser: waiting: not there")

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        return self._error

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PNG")

    def hierarchy(self) -> str:
        return "<html>"

    def evaluate(self, _script: str) -> list[dict[str, Any]]:
        return self.results

    def _finish(self, action: str) -> None:
        self._done = action
        if self._error and action == "photo":
            return
        came = {"pictures": 16, "pictures_loaded": 16, "picture_bytes": 97_000, "picture_bytes_loaded": 97_000}
        sent = {
            "text": self._text,
            "place": "Here" if action == "check-in" else None,
            "friend": "Ann" if action == "check-in" else None,
            "photo_bytes": len(self._photo),
            "photo_sha256": hashlib.sha256(self._photo).hexdigest(),
        }
        result = {"name": action, "began": 1.0, "response_time_s": 0.5, "texts_s": 0.2}
        self.results.append(result | (came if action == "refresh" else sent) | self._wrong.get(action, {}))


def visit(facebook: SimpleNamespace, cell: Any, **given: Any) -> None:
    scenario = facebook.scenario.SCENARIO
    parameters = scenario.parameters.model_validate({"think": "0 s", "photo": "2 kB", "rounds": 2, **given})
    cell.run(scenario, parameters)


def test_rounds(facebook: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    ui = AppUi()
    cell = make_cell(ui=ui, facts=FACTS)
    visit(facebook, cell)
    assert re.fullmatch(
        r"https://feed\.lab/\?account=user-[0-9a-f]{8}&stories=10&pictures=https://pictures\.feed\.lab", ui.opened
    )
    plan, *actions = cell.observations
    assert plan["actions"] == 10
    assert [(item["round"], item["action"]) for item in actions] == [(n, action) for n in (1, 2) for action in ROUND]
    photos = [item["photo_sha256"] for item in actions if item["action"] == "photo"]
    assert len(set(photos)) == 2, "each round has a fresh photo"
    assert all("name" not in item for item in actions)


def test_the_same_cell_sends_the_same(facebook: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    results = []
    for _ in range(2):
        cell = make_cell(ui=AppUi(), facts=FACTS)
        visit(facebook, cell)
        results.append(cell.observations)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("action", "fields", "message"),
    [
        ("refresh", {"pictures_loaded": 15}, "facebook: refresh (round 1): pictures: 15 of 16 came"),
        (
            "refresh",
            {"picture_bytes_loaded": 96_999},
            "refresh (round 1): picture_bytes: 96999 of 97000 came",
        ),
        ("status", {"text": "else"}, "facebook: status (round 1): the post says 'else', 'status 1: "),
        ("photo", {"photo_sha256": "0" * 64}, "the server has another photo (2000 bytes) than was sent"),
        ("check-in", {"friend": None}, "facebook: check-in (round 1): the post has no place or no friend"),
    ],
)
def test_a_result_that_is_not_what_was_asked(
    facebook: SimpleNamespace,
    make_cell: Callable[..., Any],
    action: str,
    fields: dict[str, Any],
    message: str,
) -> None:
    cell = make_cell(ui=AppUi({action: fields}), facts=FACTS)
    with pytest.raises(StepError, match=re.escape(message)):
        visit(facebook, cell)
    assert action not in [item.get("action") for item in cell.observations]


def test_an_error_that_the_app_shows_is_the_reason(facebook: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    cell = make_cell(ui=AppUi(error="HTTP 502"), facts=FACTS)
    with pytest.raises(StepError, match=r"^facebook: photo \(round 1\): the app says: HTTP 502$"):
        visit(facebook, cell)
    files = sorted(path.name for path in (cell.context.cell_dir / "screenshots").iterdir())
    assert files == ["photo-1.html", "photo-1.png"]


def test_what_does_not_fit_into_the_time_is_told(facebook: SimpleNamespace, make_cell: Callable[..., Any]) -> None:
    cell = make_cell(ui=AppUi(stuck="photo"), facts=FACTS, time_limit_s=6.3)
    visit(facebook, cell)
    assert [item.get("action") for item in cell.observations[1:]] == ["refresh", "status", "photo"]
    assert cell.observations[-1]["event"] == "unfinished"
    assert cell.observations[-1]["waited_s"] > 0
    values = {value.metric: value.value for value in facebook.scores.score(cell.observations, {}, Path())}
    assert values["actions_done"] == 20


def test_an_app_that_ends_is_not_taken_for_a_slow_one(
    facebook: SimpleNamespace, make_cell: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ui = AppUi()
    cell = make_cell(ui=ui, facts=FACTS)

    def ended(_selector: Selector, *, timeout_s: float = 10.0) -> None:
        if ui.results:
            raise StepError("browser: waiting: the browser has ended")

    monkeypatch.setattr(ui, "wait", ended)
    with pytest.raises(StepError, match="the browser has ended"):
        visit(facebook, cell)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds: 0", "found 0, allowed: 1…20"),
        ("stories: 51", "found 51, allowed: 1…50"),
        ("photo: 100 B", "photo 100 B: a photo has 250 B to 20 MB"),
        ("think: 1 min", "must be at most 30"),
        ("limit: 10 s", "found '10 s', allowed: 15…600"),
        ("posts: 3", "unknown key 'posts'"),
    ],
)
def test_wrong_parameters(
    facebook: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, message: str
) -> None:
    assert message in "\n".join(problems(facebook.scenario.SCENARIO, text))


def observations(slower: float = 1.0, done: int = 2) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [{"event": "plan", "rounds": 2, "actions": 4}]
    for number in range(1, done + 1):
        for action, seconds in (("refresh", 0.5), ("status", 0.1)):
            item = {"action": action, "round": number, "response_time_s": slower * number * seconds}
            records.append({"event": "action", **item, "texts_s": slower * 0.2})
    return records


def scores(facebook: SimpleNamespace, found: list[dict[str, Any]]) -> dict[tuple[str, ...], float]:
    return {(value.metric, *value.labels.values()): value.value for value in facebook.scores.score(found, {}, Path())}


def test_scores(facebook: SimpleNamespace) -> None:
    values = scores(facebook, observations())
    assert values["response_time", "refresh"] == pytest.approx(0.75)
    assert values["response_time", "status"] == pytest.approx(0.15)
    assert values["response_time_mean",] == pytest.approx(0.45)
    assert values["time_to_texts",] == pytest.approx(0.2)
    assert values["actions_done",] == 100


def test_worse_is_scored_worse(facebook: SimpleNamespace) -> None:
    good, slow = scores(facebook, observations()), scores(facebook, observations(slower=2))
    for name in good.keys() - {("actions_done",)}:
        assert slow[name] > good[name], name
    waiting = {"event": "unfinished", "action": "status", "round": 2, "waited_s": 60.0}
    cut = scores(facebook, [*observations(done=1), waiting])
    assert cut["actions_done",] == 50
    assert cut["response_time", "status"] == pytest.approx(30.05)
    never = scores(facebook, [*observations(done=0), {**waiting, "waited_s": 0.0}])
    assert never == {("actions_done",): 0}


def test_values_carry_the_labels_of_their_metric(facebook: SimpleNamespace) -> None:
    metrics = {metric.name: metric for metric in facebook.scores.METRICS}
    values = facebook.scores.score(observations(), {}, Path())
    assert {value.metric for value in values} == metrics.keys() - {"look_resolution"}
    assert all(tuple(value.labels) == metrics[value.metric].labels for value in values)


def test_time_limits(facebook: SimpleNamespace) -> None:
    scenario = facebook.scenario.SCENARIO
    few = scenario.parameters()
    assert scenario.time_limit_s(few) == 120
    assert scenario.estimate_s(few) < 60
    assert scenario.estimate_s(scenario.parameters(rounds=20)) < 120
