"""Messages that the messenger scenario plans, its use of both phones' reports, and its scores."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.lab.catalog import load_scenario

NOW = 1_700_000_000.0
PHOTO_SHA256 = "ab" * 32


@pytest.fixture
def messenger() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/messenger``."""
    load_scenario("messenger")
    parts = ("scenario", "scores", "messages")
    return SimpleNamespace(**{part: importlib.import_module(f"mplab.scenarios.messenger.{part}") for part in parts})


def sent(number: int, kind: str = "text", *, delay_s: float | None = 0.05, **more: Any) -> dict[str, Any]:
    """Return a message as the page of the phone reports it."""
    began = NOW + number
    receipt = None if delay_s is None else began + delay_s
    entry = {"id": f"id-{number}", "kind": kind, "body": f"text {number}", "sent_t": began, "uploaded_t": None}
    return {**entry, "receipt_t": receipt, "problem": "", "queued": True, **more}


def received(number: int, *, delay_s: float = 0.03, **more: Any) -> dict[str, Any]:
    """Return a message as the page of the second phone reports it."""
    shown = NOW + number + delay_s
    entry = {"id": f"id-{number}", "body": f"text {number}", "photo": False, "received_t": shown, "shown_t": shown}
    return {**entry, "size_bytes": None, "sha256": None, "problem": "", **more}


def report(**lists: Any) -> dict[str, Any]:
    return {"clock_ahead_s": 0.0002, "sent": [], "received": [], "status": "online", **lists}


def message(kind: str = "text", delay_s: float | None = 0.1) -> dict[str, Any]:
    one_way = None if delay_s is None else delay_s / 2
    delays = {"delivery_delay_s": delay_s, "one_way_delay_s": one_way}
    return {"event": "message", "kind": kind, "delivered": delay_s is not None, **delays}


def values(messenger: SimpleNamespace, *observations: dict[str, Any]) -> dict[tuple[str, str], float]:
    scored = messenger.scores.score(observations, {}, Path())
    return {(value.metric, value.labels.get("kind", "")): value.value for value in scored}


def test_scores_of_each_kind(messenger: SimpleNamespace) -> None:
    traffic = {
        "wlan0": {"bytes_up": 60_000, "bytes_down": 40_000},
        "rmnet0": {"bytes_up": 0, "bytes_down": 500},
        "lo": {"bytes_up": 1, "bytes_down": 1},
    }
    metrics = values(
        messenger,
        {"event": "signed_in", "duration_s": 2.5},
        *(message("text", delay_s) for delay_s in (0.1, 0.9, 0.2)),
        message("photo", 4.0),
        {"event": "traffic", "interfaces": traffic},
    )
    assert metrics == pytest.approx(
        {
            ("delivery_delay", "text"): 200,
            ("delivery_delay_max", "text"): 900,
            ("message_one_way_delay", "text"): 100,
            ("message_one_way_delay_max", "text"): 450,
            ("delivery_delay", "photo"): 4000,
            ("delivery_delay_max", "photo"): 4000,
            ("message_one_way_delay", "photo"): 2000,
            ("message_one_way_delay_max", "photo"): 2000,
            ("undelivered", ""): 0,
            ("sign_in_time", ""): 2.5,
            ("wifi_bytes", ""): 100,
            ("cellular_bytes", ""): 0.5,
        }
    )


def test_every_metric_gets_worse_with_its_cause(messenger: SimpleNamespace) -> None:
    near = [message("text", 0.1), message("text", 0.2), {"event": "signed_in", "duration_s": 2.0}]
    far = [message("text", 0.4), message("text", 0.5), {"event": "signed_in", "duration_s": 5.0}]
    before, after = values(messenger, *near), values(messenger, *far, message("text", None))
    assert {key for key in before if after[key] <= before[key]} == set()
    assert set(before) == set(after)


def test_a_message_that_did_not_arrive_is_no_delay(messenger: SimpleNamespace) -> None:
    metrics = values(messenger, message("text", 0.1), message("smiley", None))
    assert metrics["undelivered", ""] == 50
    assert {kind for _, kind in metrics} == {"text", ""}
    assert values(messenger, message("text", None)) == {("undelivered", ""): 100}
    assert values(messenger) == {}


def test_metrics_are_declared_as_they_are_scored(messenger: SimpleNamespace) -> None:
    declared = {metric.name: metric for metric in messenger.scores.METRICS}
    everything = [message(), {"event": "signed_in", "duration_s": 1.0}]
    everything += [{"event": "traffic", "interfaces": {"wlan0": {"bytes_up": 1, "bytes_down": 1}}}]
    for value in messenger.scores.score(everything, {}, Path()):
        assert tuple(value.labels) == declared[value.metric].labels
    assert {name for name, metric in declared.items() if metric.headline} == {"delivery_delay", "undelivered"}


def test_reports_of_both_phones_become_observations(messenger: SimpleNamespace) -> None:
    planned = [
        messenger.messages.PlannedMessage(1, "text", "text 1"),
        messenger.messages.PlannedMessage(2, "photo", size_bytes=500, sha256=PHOTO_SHA256),
        messenger.messages.PlannedMessage(3, "smiley"),
        messenger.messages.PlannedMessage(4, "periodic", "text 4"),
        messenger.messages.PlannedMessage(5, "periodic", "text 5"),
    ]
    sender = report(
        sent=[
            sent(1),
            sent(2, "photo", body="https://media.lab/2", uploaded_t=NOW + 2.5, delay_s=0.75),
            sent(3, "smiley", body="😀"),
            sent(4, delay_s=None, problem="upload: no network"),
        ]
    )
    receiver = report(
        received=[
            received(1),
            received(2, body="https://media.lab/2", photo=True, size_bytes=500, sha256=PHOTO_SHA256, delay_s=1.0),
            received(3, body="😀"),
        ]
    )
    observations = messenger.messages.observations(planned, sender, receiver)
    assert json.loads(json.dumps(observations)) == observations
    assert [item["delivery_delay_s"] for item in observations] == [0.05, 0.75, 0.05, None, None]
    assert [item["one_way_delay_s"] for item in observations] == [0.03, 1.0, 0.03, None, None]
    assert [item["upload_s"] for item in observations] == [None, 0.5, None, None, None]
    assert [item["size_bytes"] for item in observations] == [6, 500, 4, 6, 6]
    assert [(item["sent"], item["delivered"], item["verified"]) for item in observations] == [
        *[(True, True, True)] * 3,
        (True, False, False),
        (False, False, False),
    ]
    assert observations[3]["problem"] == "upload: no network"


@pytest.mark.parametrize(
    ("kind", "sender", "receiver", "problem"),
    [
        ("text", sent(1, body="text 7"), received(1), r"message 1 \(text\): 'text 7' was sent, 'text 1' was typed"),
        ("text", sent(1), received(1, body="text"), r"message 1 \(text\): 'text' arrived, 'text 1' was sent"),
        ("text", sent(1, "smiley"), received(1), "message 1 is a smiley, a text was meant"),
        (
            "photo",
            sent(1, "photo"),
            received(1, photo=True, size_bytes=499, sha256="cd" * 32),
            r"message 1 \(photo\): 499 bytes arrived, but not the 500 of the photo",
        ),
        (
            "photo",
            sent(1, "photo"),
            received(1, photo=True, shown_t=None, problem="photo: HTTP status 404"),
            "the second phone could not show it: photo: HTTP status 404",
        ),
    ],
)
def test_what_arrives_must_be_what_was_sent(
    messenger: SimpleNamespace, kind: str, sender: dict[str, Any], receiver: dict[str, Any], problem: str
) -> None:
    planned = messenger.messages.PlannedMessage(1, kind, "text 1")
    if kind == "photo":
        planned = messenger.messages.PlannedMessage(1, kind, size_bytes=500, sha256=PHOTO_SHA256)
    with pytest.raises(StepError, match=problem):
        messenger.messages.observations([planned], report(sent=[sender]), report(received=[receiver]))


def test_more_than_was_planned_and_clocks_that_differ(messenger: SimpleNamespace) -> None:
    with pytest.raises(StepError, match="1 messages were sent, 0 were planned"):
        messenger.messages.observations([], report(sent=[sent(1)]), report())
    late = {**report(), "clock_ahead_s": -0.5}
    with pytest.raises(StepError, match=r"the clock of the second phone's browser is -0\.500 s off"):
        messenger.messages.observations([], report(), late)


def test_a_photo_is_waited_for_until_it_is_whole(messenger: SimpleNamespace) -> None:
    arrived = [
        received(1),
        received(2, photo=True, shown_t=None),
        received(3, photo=True),
        received(4, photo=True, sha256=PHOTO_SHA256),
        received(5, photo=True, shown_t=None, problem="photo: gone"),
    ]
    assert list(messenger.messages.unshown(report(received=arrived))) == ["id-2", "id-3"]


class Memory:
    """An app with stored data."""

    def __init__(self, **found: int) -> None:
        self.found = found

    def evaluate(self, _script: str) -> dict[str, int]:
        return self.found


def test_an_app_that_does_not_begin_clean(messenger: SimpleNamespace) -> None:
    assert messenger.scenario.check_clean(Memory(cookies=0, caches=0)) == {"cookies": 0, "caches": 0}
    with pytest.raises(StepError, match="has stored data before its start: cookies: 1, caches: 2"):
        messenger.scenario.check_clean(Memory(cookies=1, databases=0, caches=2))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rounds: 0\nperiodic: 0", "nothing to send: give 'rounds' or 'periodic'"),
        ("photo: 100 B", "photo 100 B: at least 1 kB and at most 10 MB is needed"),
        ("photo: 11 MB", "at least 1 kB and at most 10 MB is needed"),
        ("period: 30", "a number needs a unit"),
        ("period: 100 ms", "period: found 0.1, allowed: 1…600"),
        ("patience: 2 min", "patience: found 120.0, allowed: 1…60"),
        ("app: hangouts", "unknown key 'app'"),
    ],
)
def test_wrong_parameters_are_explained(
    messenger: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, problem: str
) -> None:
    assert problem in "\n".join(problems(messenger.scenario.SCENARIO, text))


def test_a_test_ends_within_two_minutes_unless_its_messages_need_more(messenger: SimpleNamespace) -> None:
    scenario = messenger.scenario.SCENARIO
    assert scenario.time_limit_s(scenario.parameters()) == 120
    assert scenario.estimate_s(scenario.parameters()) < 120
    of_the_paper = scenario.parameters.model_validate({"rounds": 0, "periodic": 4, "period": "30 s"})
    assert scenario.time_limit_s(of_the_paper) == 120
    long = scenario.parameters.model_validate({"periodic": 10})
    assert scenario.time_limit_s(long) > scenario.estimate_s(long) > 270
