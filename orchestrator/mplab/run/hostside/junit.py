"""Write ``junit.xml``: the outcomes of a run for continuous integration."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

from mplab.base.files import replace
from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, CellStarted, RunEvent, RunPlanned, RunStarted

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2


@dataclass
class _Run:
    """State of a run, collected from its events, that ``junit.xml`` shows."""

    cells: list[CellSpec] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    finished: dict[str, CellFinished] = field(default_factory=dict)
    started: float | None = None


@dataclass(frozen=True)
class Case:
    """A test case that is not a cell, such as a budget.

    ``failure`` and ``skipped`` are the reasons why the test case failed or was skipped; otherwise "".
    """

    classname: str
    name: str
    failure: str = ""
    skipped: str = ""


def junit_xml(name: str, events: Iterable[RunEvent], checks: Iterable[Case] = ()) -> str:
    """Return the outcomes in the events of the run `name` as JUnit XML, followed by `checks`.

    Every planned cell is a ``testcase``. A failed cell has a ``failure``. An invalid cell has an ``error``: its
    measured treatment is not the requested one. Cells that did not run, and transports that the lab cannot run, are
    ``skipped``.
    """
    run = _read(events)
    cases = [_case(cell, run.finished.get(cell.id)) for cell in run.cells]
    cases += [_skipped_transport(transport, reason) for transport, reason in run.skipped]
    cases += map(_check, checks)
    return _document(name, cases, run.started)


def _document(
    name: str,
    cases: list[ET.Element],
    started: float | None,
    properties: Iterable[tuple[str, str]] = (),
    time_s: float | None = None,
) -> str:
    total = sum(float(case.get("time", "0")) for case in cases) if time_s is None else time_s
    totals = {
        "tests": str(len(cases)),
        "failures": _count(cases, "failure"),
        "errors": _count(cases, "error"),
        "skipped": _count(cases, "skipped"),
        "time": f"{total:.3f}",
    }
    root = ET.Element("testsuites", {"name": "mplab", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), **totals})
    if started is not None:
        suite.set("timestamp", datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    if listed := list(properties):
        parent = ET.SubElement(suite, "properties")
        for key, value in listed:
            ET.SubElement(parent, "property", {"name": _clean(key), "value": _clean(value)})
    suite.extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def checks_xml(
    name: str,
    checks: Iterable[Case],
    *,
    started: float | None = None,
    time_s: float = 0.0,
    properties: Iterable[tuple[str, str]] = (),
) -> str:
    """Return `checks` as JUnit XML: a test suite `name` with one ``testcase`` each, whose time is 0.

    Args:
        name: name of the test suite.
        checks: the checks.
        started: start of the suite, Unix seconds; None: unknown.
        time_s: duration of the suite, seconds.
        properties: (name, value) of facts about the suite; names may repeat.
    """
    cases = list(map(_check, checks))
    for case in cases:
        case.set("time", "0.000")
    return _document(name, cases, started, properties, time_s)


def _check(check: Case) -> ET.Element:
    case = ET.Element("testcase", {"classname": _clean(check.classname), "name": _clean(check.name)})
    if check.failure:
        message = _clean(check.failure)
        ET.SubElement(case, "failure", {"message": message, "type": "gate"}).text = message
    elif check.skipped:
        ET.SubElement(case, "skipped", {"message": _clean(check.skipped)})
    return case


def write_junit(path: Path, name: str, events: Iterable[RunEvent], checks: Iterable[Case] = ()) -> None:
    """Write `junit_xml` to `path`, replacing an earlier file. Raises MplabError."""
    replace(path, junit_xml(name, events, checks).encode())


def _read(events: Iterable[RunEvent]) -> _Run:
    run = _Run()
    for event in events:
        match event:
            case RunPlanned():
                run.cells = list(event.cells)
                run.skipped = [(item.transport, item.reason) for item in event.skipped]
            case RunStarted():
                run.started = event.t
            case CellStarted():
                run.finished.pop(event.cell, None)
            case CellFinished():
                run.finished[event.cell] = event
    return run


def _case(cell: CellSpec, finished: CellFinished | None) -> ET.Element:
    case = ET.Element("testcase", {"classname": f"{cell.scenario}.{cell.transport}.{cell.link}", "name": cell.id})
    if finished is None:
        ET.SubElement(case, "skipped", {"message": "the run ended before this cell"})
        return case
    case.set("time", f"{finished.duration_s:.3f}")
    outcome = finished.outcome
    if outcome != "ok":
        reasons = [_clean(reason) for reason in finished.reasons] or ["no reason given"]
        tag = "failure" if outcome == "failed" else "error"
        ET.SubElement(case, tag, {"message": reasons[0], "type": outcome}).text = "\n".join(reasons)
    return case


def _skipped_transport(transport: str, reason: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": "transport", "name": transport})
    ET.SubElement(case, "skipped", {"message": _clean(reason)})
    return case


def _count(cases: Iterable[ET.Element], tag: str) -> str:
    return str(sum(case.find(tag) is not None for case in cases))


def _clean(text: str) -> str:
    """Replace characters that XML cannot hold (terminal colours, broken UTF-8) in `text`."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
