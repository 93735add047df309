"""Steps that an Android phone adds to a cell: its check with its log, and the screen recording."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import DeviceError, InvalidCellError
from mplab.drivers.phone.settings import AndroidPhoneFile
from mplab.lab.android import AndroidLab, AndroidSide, FilmPart, PhoneCheckPart, PhoneLook
from mplab.userfiles.experiments.app import AndroidApp

WAY = "one: IPv6 is open: its ip6tables rules are gone; apps may go past the transport"


@dataclass
class Report:
    phone: dict[str, Any] = field(default_factory=dict)
    clock_offset_ms: float = 0.0
    warnings: list[str] = field(default_factory=list)


@dataclass
class Job:
    directory: Path
    app: AndroidApp | None = None


class Side(AndroidSide):
    """A phone whose replies the test sets."""

    def __init__(self, *, ways: list[str] | None = None, films: bool = False, lost: str = "") -> None:
        self._file = AndroidPhoneFile.model_validate({"driver": "adb", "record_screen": films})
        self._ways = ways or []
        self._lost = lost
        self.saved: list[Path] = []

    def _do(self, what: str) -> None:
        if self._lost == what:
            raise DeviceError("one", f"was lost: {what}")

    def log(self) -> Any:
        self._do("log")
        return SimpleNamespace(save=self.saved.append)

    def look(self, app: AndroidApp | None) -> PhoneLook:
        self._do("look")
        return PhoneLook({"serial": "A1"}, 12.5, ["hot"], self._ways)

    def ways_past(self) -> list[str]:
        return self._ways

    def film(self, cell: Path) -> Any:
        self._do("film")
        return SimpleNamespace(save=lambda: self._films(cell))

    def _films(self, cell: Path) -> list[Any]:
        self._do("save")
        return [SimpleNamespace(path=cell / "film" / "1.mp4", began=17.00049)]


Observed = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def observed() -> Observed:
    return []


@pytest.fixture
def observe(observed: Observed) -> Callable[..., None]:
    return lambda event, **fields: observed.append((event, fields))


def test_a_lab_with_an_android_phone_films_when_its_file_asks_for_it(tmp_path: Path) -> None:
    lab = AndroidLab()
    for films, names in ((False, [("phone", "app")]), (True, [("phone", "app"), ("film", "captures")])):
        lab.android = Side(films=films)
        assert [(part.name, part.moment) for part in lab.cell_parts(Job(tmp_path))] == names


def test_a_look_goes_into_the_report_and_its_log_into_the_cell(tmp_path: Path, observe: Callable[..., None]) -> None:
    side, report = Side(), Report({"name": "one"})
    part = PhoneCheckPart(side, Job(tmp_path))
    part.start(report, observe)
    assert report == Report({"name": "one", "serial": "A1"}, 12.5, ["hot"])
    part.finish()
    assert side.saved == [tmp_path / "logs" / "logcat.txt"]
    assert part.judge() == []


def test_a_way_past_the_agent_makes_the_cell_invalid_and_keeps_the_log(
    tmp_path: Path, observe: Callable[..., None]
) -> None:
    side, report = Side(ways=[WAY]), Report()
    part = PhoneCheckPart(side, Job(tmp_path))
    with pytest.raises(InvalidCellError) as caught:
        part.start(report, observe)
    assert caught.value.reasons == [WAY]
    part.finish()
    assert (len(side.saved), report.warnings, part.judge()) == (1, ["hot"], [WAY])


def test_a_log_that_was_not_begun_is_not_saved(tmp_path: Path, observe: Callable[..., None]) -> None:
    side = Side(lost="log")
    part = PhoneCheckPart(side, Job(tmp_path))
    with pytest.raises(DeviceError, match="was lost: log"):
        part.start(Report(), observe)
    part.finish()
    assert side.saved == []


def test_a_film_is_observed_by_its_files(tmp_path: Path, observe: Callable[..., None], observed: Observed) -> None:
    part = FilmPart(Side(films=True), Job(tmp_path))
    part.start(Report(), observe)
    assert observed == []
    part.finish()
    assert observed == [("film", {"file": "film/1.mp4", "began": 17.0})]
    assert part.judge() == []


def test_a_film_that_is_lost_costs_a_warning(tmp_path: Path, observe: Callable[..., None], observed: Observed) -> None:
    report, part = Report(), FilmPart(Side(films=True, lost="save"), Job(tmp_path))
    part.start(report, observe)
    part.finish()
    assert (report.warnings, observed) == (["no film, or not all of it: one: was lost: save"], [])


def test_a_film_that_was_not_begun_fails_the_cell_alone(tmp_path: Path, observe: Callable[..., None]) -> None:
    part = FilmPart(Side(films=True, lost="film"), Job(tmp_path))
    with pytest.raises(DeviceError, match="was lost: film"):
        part.start(Report(), observe)
    part.finish()
