"""Changes happen in order during a scenario, are observed, and end with it."""

import math
import threading
from typing import Any

import pytest

from mplab.base.endpoints import Endpoints
from mplab.base.errors import CellError, DeviceError, StepError
from mplab.base.outages import Disturbances, Outage
from mplab.base.undo import UndoStack
from mplab.cell.changes import Changer, ChangeSchedule, Effect
from mplab.cell.judge import judge_emulation
from mplab.format.link import Moment
from mplab.format.path import PathCondition

FAR_S = 3000.0
PATH = PathCondition.of(8000.0, 2000.0, 50.0)
ENDPOINTS = Endpoints(proxy="10.64.3.2", dns="10.65.0.53:53")


def moment(at_s: float, **changes: Any) -> Moment:
    return Moment(at_s=at_s, path=changes.pop("path", "wifi"), condition=changes.pop("condition", PATH), **changes)


class Told:
    """Collects observations; `enough` is set after `wanted` of them."""

    def __init__(self, wanted: int = 1) -> None:
        self.events: list[dict[str, Any]] = []
        self.enough = threading.Event()
        self._wanted = wanted

    def __call__(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})
        if len(self.events) >= self._wanted:
            self.enough.set()


class Deeds:
    """A changer that records its changes; a change called ``break`` fails."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def prepare(self, _moments: object) -> None:
        """Do nothing: nothing is moved."""

    def look(self, _moment: Moment) -> None:
        """Do nothing: nothing has moved."""

    def carry_out(self, change: Moment) -> Effect:
        if change.text == "break":
            raise DeviceError("phone", "no such interface")
        self.done.append(change.text)
        outage = {"interface down": "begins", "interface up": "ends"}.get(change.text, "")
        return Effect(outage, "there is nothing to set" if change.text == "multipath off" else "")


def schedule(told: Told, *moments: Moment) -> tuple[ChangeSchedule, Deeds]:
    deeds: Any = Deeds()
    return ChangeSchedule(moments, deeds, told), deeds


def test_changes_happen_in_order_and_are_told() -> None:
    observer = Told(3)
    changes, deeds = schedule(
        observer,
        moment(0.0, text="interface down"),
        moment(0.01, text="multipath off"),
        moment(0.02, text="interface up"),
        moment(FAR_S, text="never"),
    )
    with changes:
        assert observer.enough.wait(30.0)
    assert deeds.done == ["interface down", "multipath off", "interface up"]
    down, nothing, up = observer.events
    assert (down["event"], down["interface"], down["outage"], down["at_s"]) == ("change", "wlan0", "begins", 0.0)
    assert nothing["no_effect"] == "there is nothing to set"
    assert "outage" not in nothing
    assert up["begun"] >= down["begun"]
    (outage,) = changes.disturbances.outages
    assert outage.device == "wlan0"
    assert outage.begin_s == pytest.approx(down["begun"], abs=1e-5)
    assert outage.end_s >= up["begun"]


def test_an_interface_that_goes_is_told_from_a_signal_that_goes() -> None:
    observer = Told(5)
    changes, _ = schedule(
        observer,
        moment(0.0, text="radio off", radio="off"),
        moment(0.0, text="access point lost", access_point="lost"),
        moment(0.0, text="new access point", access_point="new"),
        moment(0.0, text="radio off again", radio="off"),
        moment(0.0, text="interface down", interface="down"),
        moment(FAR_S, text="interface up", interface="up"),
    )
    with changes:
        assert observer.enough.wait(30.0)
    lost, new, down = (observer.events[index]["begun"] for index in (1, 2, 4))
    first, second = changes.disturbances.absences
    assert first.begin_s == pytest.approx(lost, abs=1e-5)
    assert new <= first.end_s + 1e-5
    assert first.end_s <= down + 1e-5
    assert second.begin_s == pytest.approx(down, abs=1e-5)
    assert second.end_s == math.inf
    assert changes.disturbances.down("wlan0", down + 60.0)
    assert not changes.disturbances.down("wlan0", lost - 0.001), "the radio alone was off"
    assert not changes.disturbances.down("rmnet0", down + 60.0)


def test_what_is_late_is_flagged() -> None:
    observer = Told()
    changes, _ = schedule(observer, moment(-1.0, text="loss 1 %"))
    with changes:
        assert observer.enough.wait(30.0)
    assert observer.events[0]["late"]
    assert "change at -1 s (wifi: loss 1 %): 1" in changes.warnings[0]


def test_a_change_that_fails_is_the_cells_error() -> None:
    observer = Told()
    changes, deeds = schedule(observer, moment(0.0, text="break"), moment(0.0, text="after"))
    with pytest.raises(CellError, match=r"change at 0 s \(wifi: break\): phone: no such interface"), changes:
        assert observer.enough.wait(30.0)
    assert deeds.done == []
    assert "no such interface" in observer.events[0]["error"]


def test_the_scenarios_own_error_stays_the_error() -> None:
    observer = Told()
    changes, _ = schedule(observer, moment(0.0, text="break"))

    def scenario() -> None:
        with changes:
            assert observer.enough.wait(30.0)
            raise StepError("the app is gone")

    with pytest.raises(StepError, match="the app is gone") as caught:
        scenario()
    assert "no such interface" in caught.value.__notes__[0]


class Links:
    """A shaper that records which condition was applied to which path."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, float]] = []

    def change(self, interface: str, condition: PathCondition) -> None:
        self.changes.append((interface, condition.down.loss_percent))


class StillPhone:
    """A phone that must not be touched."""

    name = "phone"
    interfaces = {"wlan0": "10.64.1.2", "rmnet0": "10.64.2.2"}  # noqa: RUF012


def test_a_path_without_radio_loses_everything_and_then_what_it_should() -> None:
    links, phone = Links(), StillPhone()
    undo = UndoStack()
    arguments: Any = phone, links
    changer = Changer(*arguments, endpoints=ENDPOINTS, paths={"wlan0": PATH, "rmnet0": PATH}, undo=undo)
    worse = PathCondition.of(8000.0, 2000.0, 50.0, 3.0)
    story = [
        moment(1.0, radio="off"),
        moment(2.0, condition=worse, reshaped=True),
        moment(3.0, condition=worse, radio="on"),
    ]
    changer.prepare(story)
    assert [changer.carry_out(change).outage for change in story] == ["begins", "", "ends"]
    assert links.changes == [("wlan0", 100.0), ("wlan0", 100.0), ("wlan0", 3.0)]


def test_an_outage_excuses_what_happens_in_it() -> None:
    story = Disturbances()
    story.begin("wlan0", 100.0)
    story.begin("wlan0", 105.0)
    story.end("wlan0", 110.0)
    story.end("rmnet0", 111.0)
    assert story.outages == [Outage("wlan0", 100.0, 110.0)]
    assert story.out("wlan0", 101.0)
    assert story.out("wlan0", 112.0), "what was refused tries again later"
    assert not story.out("wlan0", 99.0)
    assert not story.out("wlan0", 130.0)
    assert not story.out("rmnet0", 101.0)


@pytest.mark.parametrize(
    ("life", "excused"),
    [((100.0, 110.0), True), ((95.0, 108.0), True), ((40.0, 110.0), False), ((120.0, 130.0), False)],
)
def test_a_path_that_was_there_most_of_the_time_is_not_excused(life: tuple[float, float], excused: bool) -> None:
    story = Disturbances([Outage("wlan0", 100.0, 110.0)])
    assert story.excuse(["wlan0"], *life) is excused
    assert not story.excuse(["rmnet0"], *life)


def test_what_was_sent_to_an_interface_that_is_down_is_no_fault_of_the_emulator() -> None:
    lost = {"wlan0.down.dropped_send": 3, "wlan0.down.kernel_dropped": 0}
    assert judge_emulation(lost) != []
    assert judge_emulation(lost, absent={"wlan0"}) == []
    assert judge_emulation(lost, absent={"rmnet0"}) != []
    assert judge_emulation({"wlan0.down.kernel_dropped": 1}, absent={"wlan0"}) != []
