"""Changes of a link condition while a cell's scenario runs."""

import json
import time
from typing import Any

import pytest

from mplab.base.errors import DeviceError, StepError
from tests.fakes.bench import CellBench, experiment_text


def after(bench: CellBench, *calls: str, then: BaseException | None = None) -> None:
    """Let the scenario last until parts of the lab were called, then end it (with the error `then`)."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not set(calls) <= set(bench.lab.script.calls):
            assert time.monotonic() < deadline, calls
            time.sleep(0.001)
        if then is not None:
            raise then

    bench.lab.script.at("scenario.run", wait)


def changes(bench: CellBench) -> list[dict[str, Any]]:
    observed = [json.loads(line) for line in (bench.directory / "scenario.jsonl").read_text().splitlines()]
    return [observation for observation in observed if observation["event"] == "change"]


def test_a_radio_that_goes_off_darkens_its_path(bench: CellBench) -> None:
    dark: list[float] = []
    bench.lab.script.at(
        "phone.counters", None, lambda: dark.append(bench.lab.shaper.applied["wlan0"].down.loss_percent)
    )
    after(bench, "shaper.change wlan0")
    report = bench.run(experiment_text(changes="{at: 0 s, path: wifi, radio: off}"))
    assert report.outcome == "ok"
    (change,) = changes(bench)
    assert (change["what"], change["interface"], change["outage"]) == ("radio off", "wlan0", "begins")
    assert dark == [100.0]
    assert bench.lab.clean


def test_changes_come_in_their_order(bench: CellBench) -> None:
    after(bench, "shaper.change wlan0", "shaper.change rmnet0")
    listed = (
        "{at: 0 s, path: wifi, down: 1 Mbit/s}, {at: 10 ms, path: lte, rtt: 80 ms}, {at: 90 s, path: wifi, radio: off}"
    )
    bench.run(experiment_text(changes=listed))
    assert [change["what"] for change in changes(bench)] == ["down 1 Mbit/s", "rtt 80 ms"]
    assert bench.lab.script.of("shaper.change wlan0", "shaper.change rmnet0") == [
        "shaper.change wlan0",
        "shaper.change rmnet0",
    ]


def test_a_change_that_is_late_is_flagged(bench: CellBench) -> None:
    bench.lab.script.at("shaper.change wlan0", lambda: bench.lab.clock.jump(3.0))
    after(bench, "shaper.change rmnet0")
    report = bench.run(experiment_text(changes="{at: 0 s, path: wifi, radio: off}, {at: 1 s, path: lte, rtt: 80 ms}"))
    assert report.outcome == "ok"
    slow, late = changes(bench)
    assert (slow["took_s"], "late" in slow) == (3.0, False)
    assert (late["late_s"], late["late"]) == (2.0, True)
    assert report.warnings[0] == "change at 1 s (lte: rtt 80 ms): 2.0 s late: the host was busy"


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ("shaper.change wlan0", "{at: 0 s, path: wifi, radio: off}"),
        ("phone.ip", "{at: 0 s, path: wifi, interface: down}"),
    ],
)
def test_a_change_that_is_refused_fails_the_cell(bench: CellBench, call: str, change: str) -> None:
    bench.lab.script.at(call, DeviceError("router", "refuses"))
    after(bench, call)
    report = bench.run(experiment_text(changes=change))
    assert report.outcome == "failed"
    (reason,) = report.reasons
    assert reason.startswith("change at 0 s (wifi: ")
    assert reason.endswith("router: refuses")
    assert changes(bench)[0]["error"] == "router: refuses"
    assert bench.lab.clean


def test_the_scenarios_own_error_goes_before_that_of_a_change(bench: CellBench) -> None:
    bench.lab.script.at("shaper.change wlan0", DeviceError("router", "refuses"))
    after(bench, "shaper.change wlan0", then=StepError("no button"))
    report = bench.run(experiment_text(changes="{at: 0 s, path: wifi, radio: off}"))
    assert report.reasons == ["no button"]


def test_an_interface_that_was_taken_down_is_up_after_the_cell(bench: CellBench) -> None:
    after(bench, "phone.ip")
    report = bench.run(experiment_text(changes="{at: 0 s, path: lte, interface: down}"))
    assert report.outcome == "ok"
    assert changes(bench)[0]["what"] == "interface down"
    assert bench.lab.clean


def test_an_interrupt_during_a_change_waits_for_it(bench: CellBench) -> None:
    after(bench, "phone.ip", then=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bench.run(experiment_text(changes="{at: 0 s, path: lte, interface: down}"))
    assert bench.lab.clean


def test_packets_lost_at_an_interface_that_was_away_are_no_fault_of_the_emulator(bench: CellBench) -> None:
    bench.lab.shaper.moved["rmnet0.down.dropped_send"] = 4
    assert bench.run().outcome == "invalid"
    after(bench, "phone.ip")
    assert bench.run(experiment_text(changes="{at: 0 s, path: lte, interface: down}")).outcome == "ok"


def test_changes_stop_with_the_scenario(bench: CellBench) -> None:
    bench.run(experiment_text(changes="{at: 90 s, path: wifi, radio: off}"))
    assert changes(bench) == []
    assert bench.lab.script.of("shaper.change wlan0") == []
