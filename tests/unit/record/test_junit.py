"""The JUnit file for continuous integration has every cell."""

from pathlib import Path
from xml.etree import ElementTree as ET

from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, CellStarted, RunEvent
from mplab.run.hostside.junit import junit_xml, write_junit


def suite(events: list[RunEvent]) -> ET.Element:
    element = ET.fromstring(junit_xml("a <run>", events)).find("testsuite")  # noqa: S314 - our own output
    assert element is not None
    return element


def test_every_planned_cell_is_a_test_case(events: list[RunEvent], cells: list[CellSpec]) -> None:
    cases = suite(events).findall("testcase")
    assert [case.get("name") for case in cases] == [*(cell.id for cell in cells), "quic"]
    assert cases[0].get("classname") == "web.mptcp.baseline"
    assert [[child.tag for child in case] for case in cases] == [[], ["error"], ["failure"], ["skipped"], ["skipped"]]


def test_totals_are_those_of_the_cases(events: list[RunEvent]) -> None:
    element = suite(events)
    assert {key: element.get(key) for key in ("name", "tests", "failures", "errors", "skipped", "time")} == {
        "name": "a <run>",
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "52.500",
    }
    assert element.get("timestamp") == "2023-11-14T22:13:21"


def test_reasons_are_told_without_what_xml_cannot_hold(events: list[RunEvent]) -> None:
    failure = suite(events).find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "phone: \ufffd[31mgone\ufffd"
    assert failure.text == "phone: \ufffd[31mgone\ufffd\nagain"
    assert failure.get("type") == "failed"


def test_a_cell_that_is_run_again_counts_with_its_last_outcome(events: list[RunEvent], cells: list[CellSpec]) -> None:
    again: list[RunEvent] = [
        CellStarted(t=1.0, cell=cells[1].id, attempt=2),
        CellFinished(t=2.0, cell=cells[1].id, outcome="ok", duration_s=1.0),
    ]
    assert suite([*events, *again]).get("errors") == "0"
    assert suite([*events, *again[:1]]).get("skipped") == "3"


def test_a_failure_without_reasons_is_still_one(events: list[RunEvent], cells: list[CellSpec]) -> None:
    bare = CellFinished(t=1.0, cell=cells[0].id, outcome="failed")
    failure = suite([events[0], bare]).find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "no reason given"


def test_a_run_that_was_never_planned_has_no_cases() -> None:
    assert suite([]).get("tests") == "0"


def test_written_again_after_a_resume(events: list[RunEvent], tmp_path: Path) -> None:
    write_junit(tmp_path / "junit.xml", "run", events[:3])
    write_junit(tmp_path / "junit.xml", "run", events)
    assert (tmp_path / "junit.xml").read_text(encoding="utf-8") == junit_xml("run", events)
