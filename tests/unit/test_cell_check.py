"""The optional step `check` of a scenario, on a lab that only notes what is asked of it."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mplab.base.errors import CheckError, DeviceError, StepError
from mplab.base.undo import UndoStack
from mplab.cell.cell import Cell, CellReport
from mplab.lab.android import PhoneLook
from mplab.lab.catalog import load_scenario, scenario_names
from mplab.scenarios.base import Parameters
from tests.unrun_scenario import UnrunScenario


class Lab:
    def __init__(self) -> None:
        self.done: list[str] = []

    def set_up_transport(self, _transport: Any, *, logs: Path, undo: UndoStack) -> Any:
        assert logs.is_dir()
        undo.register("agent", lambda: self.done.append("agent stopped"))
        return SimpleNamespace(start=lambda: self.done.append("agent started"))


class Checking(UnrunScenario):
    def __init__(self, lab: Lab, error: Exception | None) -> None:
        super().__init__("checking", Parameters, 5.0)
        self._lab, self._error = lab, error

    def check(self, context: Any, parameters: Any) -> None:
        self._lab.done.append(f"checked {parameters}")
        if self._error is not None:
            raise self._error


def check(lab: Lab, folder: Path, error: Exception | None) -> None:
    cell: Any = Cell.__new__(Cell)
    cell._lab, cell._transport = lab, None
    cell._job = SimpleNamespace(directory=folder, scenario=Checking(lab, error))
    cell._use = SimpleNamespace(label="calls", parameters="parameters")
    cell._check(SimpleNamespace(time_limit_s=5.0))


IN_ORDER = ["agent started", "checked parameters", "agent stopped"]


def test_it_has_an_agent_of_its_own_for_as_long_as_it_takes(tmp_path: Path) -> None:
    lab = Lab()
    check(lab, tmp_path, None)
    assert lab.done == IN_ORDER
    assert (tmp_path / "logs" / "check").is_dir()


def test_it_is_undone_whatever_it_finds(tmp_path: Path) -> None:
    for error in (CheckError("the host is too busy"), StepError("no browser")):
        lab = Lab()
        with pytest.raises(type(error), match=str(error)):
            check(lab, tmp_path / type(error).__name__, error)
        assert lab.done == IN_ORDER


@pytest.mark.parametrize(
    ("error", "outcome"), [(CheckError("the host is too busy"), "invalid"), (StepError("no browser"), "failed")]
)
def test_a_scenario_may_find_a_cell_invalid_at_any_step(error: Exception, outcome: str) -> None:
    cell: Any = Cell.__new__(Cell)
    cell.report = CellReport(spec=cast(Any, None), attempt=1, started=datetime.now(UTC))
    cell._undo = UndoStack()
    cell._causes, cell._agent = [], None
    cell._lab = SimpleNamespace(check_alive=lambda: None)
    undone = []

    def steps() -> None:
        cell._undo.register("browsers", lambda: undone.append("browsers"))
        raise error

    cell._run_steps = steps
    report = cell.run()
    assert (report.outcome, report.reasons, undone) == (outcome, [str(error)], ["browsers"])


def test_only_a_scenario_that_overrides_it_checks() -> None:
    assert Checking(Lab(), None).checks
    assert not UnrunScenario("download", Parameters, 5.0).checks
    assert {name for name in scenario_names() if load_scenario(name).checks} == {"call"}


def test_a_part_of_the_lab_that_was_lost_is_named_before_what_the_cell_met() -> None:
    def lost() -> None:
        raise DeviceError("router wifi", "was rebooted in the middle")

    for error, reasons in (
        (StepError("curl: timed out"), ["router wifi: was rebooted in the middle", "curl: timed out"]),
        (DeviceError("router wifi", "was rebooted in the middle"), ["router wifi: was rebooted in the middle"]),
    ):
        cell: Any = Cell.__new__(Cell)
        cell.report = CellReport(spec=cast(Any, None), attempt=1, started=datetime.now(UTC))
        cell._undo, cell._causes, cell._agent = UndoStack(), [], None
        cell._lab = SimpleNamespace(check_alive=lost)

        def steps(error: Exception = error) -> None:
            raise error

        cell._run_steps = steps
        report = cell.run()
        assert (report.outcome, report.reasons) == ("failed", reasons)


WAY = "phone-1: IPv6 is open: its ip6tables rules are gone; apps may go past the transport"


class Android:
    """A phone past whose agent traffic can go."""

    def log(self) -> Any:
        return SimpleNamespace(save=lambda _path: None)

    def look(self, _app: object) -> PhoneLook:
        return PhoneLook({"ipv6_open": "true"}, 0.0, ["hot"], [WAY])

    def ways_past(self) -> list[str]:
        return [WAY]


def bare_cell(lab: object) -> Any:
    cell: Any = Cell.__new__(Cell)
    cell.report = CellReport(spec=cast(Any, None), attempt=1, started=datetime.now(UTC))
    cell._undo, cell._causes, cell._lab, cell._agent = UndoStack(), [], lab, None
    cell._job = SimpleNamespace(app=None, directory=Path())
    return cell


def test_a_phone_past_whose_agent_traffic_can_go_makes_its_cell_invalid_before_it_begins() -> None:
    cell = bare_cell(SimpleNamespace(check_alive=lambda: None))

    def steps() -> None:
        with ExitStack() as cleaning:
            cell._look_at_android(Android(), cleaning)

    cell._run_steps = steps
    report = cell.run()
    assert (report.outcome, report.reasons, report.warnings) == ("invalid", [WAY], ["hot"])
    assert report.phone["ipv6_open"] == "true"


def test_a_way_that_opens_while_the_scenario_runs_makes_its_cell_invalid() -> None:
    phone, endpoints = SimpleNamespace(interfaces={}), SimpleNamespace(app_proxy="")
    cell = bare_cell(SimpleNamespace(phone=phone, endpoints=endpoints, android=Android()))
    cell._transport, cell._paths = SimpleNamespace(prove=lambda _evidence: [], count=lambda _changed: {}), {}
    changes = SimpleNamespace(warnings=[], disturbances=SimpleNamespace(devices=frozenset()))
    cell._judge([], {}, {"phone": {}, "links": {}}, [], changes)
    assert cell.report.reasons == [WAY]


def test_what_shapes_may_warn() -> None:
    shaper = SimpleNamespace(clear=lambda: None, warnings=lambda: ["router wifi: no ethtool"])
    cell = bare_cell(SimpleNamespace(shaper=shaper))
    cell._apply = lambda: None
    cell._shape()
    assert cell.report.warnings == ["router wifi: no ethtool"]
