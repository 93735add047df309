"""Each path goes to its own shaper; the emulator shapes the part behind the proxy."""

from collections.abc import Mapping
from typing import Any

import pytest

from mplab.base.errors import DeviceError
from mplab.cell.judge import judge_emulation, judge_punctuality
from mplab.drivers.shaper import PathMeasurement
from mplab.drivers.shaper.split import SplitShaper
from mplab.format.path import OPEN, PathCondition

WIFI, LTE = PathCondition.of(8000, 2000, 40), PathCondition.of(9000, 2000, 70)
PATHS = {"wlan0": WIFI, "rmnet0": LTE}


class Noted:
    """A shaper that records its calls."""

    def __init__(self, kind: str, told: list[tuple[Any, ...]], counters: Mapping[str, int], lost: str = "") -> None:
        self.kind, self.told, self._counters, self._lost = kind, told, counters, lost

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        self.told.append((self.kind, "apply", dict(conditions), seed, core_rtt_ms))

    def change(self, interface: str, condition: PathCondition) -> None:
        self.told.append((self.kind, "change", interface, condition))

    def clear(self) -> None:
        self.told.append((self.kind, "clear"))
        self.check_alive()

    def state(self) -> Mapping[str, Any]:
        return {"of": self.kind}

    def where(self, interface: str) -> str:
        return f"{interface} at {self.kind}"

    def warnings(self) -> list[str]:
        return [f"{self.kind} is not sure"]

    def counters(self) -> Mapping[str, int]:
        return self._counters

    def check_alive(self) -> None:
        if self._lost:
            raise DeviceError(self.kind, self._lost)

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        self.told.append((self.kind, "probe", sorted(conditions)))
        return {}


def split(lost: str = "") -> tuple[SplitShaper, list[tuple[Any, ...]]]:
    calls: list[tuple[Any, ...]] = []
    emulated = {"wlan0.up.packets_out": 7, "wlan0.up.kernel_dropped": 2, "wlan0.up.late_packets": 0}
    emulator = Noted("linkem", calls, emulated)
    tc = Noted("tc", calls, {"wlan0.up.packets_out": 5, "wlan0.up.dropped_queue": 2}, lost)
    return SplitShaper(emulator, tc, ["wlan0"]), calls


def test_both_may_warn() -> None:
    assert split()[0].warnings() == ["linkem is not sure", "tc is not sure"]


def test_each_path_goes_to_its_shaper() -> None:
    shaper, calls = split()
    shaper.apply(PATHS, seed=3, core_rtt_ms=80.0)
    shaper.change("wlan0", WIFI.dark())
    shaper.change("rmnet0", LTE.dark())
    shaper.probe(PATHS)
    shaper.clear()
    assert calls == [
        ("linkem", "apply", {"wlan0": OPEN, "rmnet0": LTE}, 3, 80.0),
        ("tc", "apply", {"wlan0": WIFI}, 3, 0.0),
        ("tc", "change", "wlan0", WIFI.dark()),
        ("linkem", "change", "rmnet0", LTE.dark()),
        ("linkem", "probe", ["rmnet0", "wlan0"]),
        ("tc", "clear"),
        ("linkem", "clear"),
    ]
    assert [shaper.where(interface) for interface in PATHS] == ["wlan0 at tc", "rmnet0 at linkem"]


def test_both_have_counters_and_the_emulator_is_judged_on_every_path() -> None:
    shaper, _ = split()
    counters = shaper.counters()
    assert (counters["wlan0.up.packets_out"], counters["tc.wlan0.up.packets_out"]) == (7, 5)
    (reason,) = judge_emulation(counters)
    assert "wlan0.up.kernel_dropped" in reason
    assert judge_punctuality(counters) == []


def test_a_lost_place_is_said_and_the_rest_is_cleared() -> None:
    shaper, calls = split(lost="was rebooted in the middle")
    for action in (shaper.check_alive, lambda: shaper.probe(PATHS), shaper.clear):
        with pytest.raises(DeviceError, match="tc: was rebooted in the middle"):
            action()
    assert calls == [("tc", "clear"), ("linkem", "clear")]
