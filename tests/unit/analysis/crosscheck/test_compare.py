"""Agreement, explained differences and unexplained differences."""

from collections.abc import Mapping

import pytest

from mplab.analysis.crosscheck.check import definitions
from mplab.analysis.crosscheck.compare import compare
from mplab.analysis.crosscheck.model import ComparedField, CrossCheckReport, Definition, FlowRecord, Sides

CLIENT, SERVER = ("10.0.0.2", 4711), ("2001:db8::1", 80)
ONE_MORE = Definition("one-more", "They count one more.", lambda pair: pair.their("theirs") - pair.our("ours") == 1)
FIELD = ComparedField("ours", "theirs", definitions=(ONE_MORE,))


def record(sides: Mapping[str, Sides], start_s: float = 0.0) -> FlowRecord:
    return FlowRecord(CLIENT, SERVER, start_s, sides, {"state": "open"})


def compared(ours: Sides, theirs: Sides, field: ComparedField = FIELD) -> CrossCheckReport:
    report = CrossCheckReport("tool")
    compare(report, [record({"ours": ours})], [record({"theirs": theirs})], [field])
    return report


def test_equal_values_agree_per_side() -> None:
    report = compared((1, 2), (1, 2))
    assert report.agree
    assert (report.flows, dict(report.agreed)) == (1, {"ours": 2})


def test_a_definition_explains_what_fits_it_and_nothing_else() -> None:
    report = compared((1, 2), (2, 4))
    assert not report.agree
    assert dict(report.explained) == {("ours", "one-more"): 1}
    assert report.definitions == {"one-more": "They count one more."}
    (left,) = report.differences
    assert (left.flow, left.field, left.ours, left.theirs) == ("10.0.0.2:4711 → [2001:db8::1]:80 down", "ours", 2, 4)


NEAR, TOO_FAR = ComparedField("ours", "theirs", tolerance=0.2), ComparedField("ours", "theirs", relative=0.001)


@pytest.mark.parametrize(("field", "agree"), [(NEAR, True), (TOO_FAR, False)])
def test_tolerances(field: ComparedField, agree: bool) -> None:
    assert compared((10.0, 1.0), (10.1, 1.1), field).agree is agree


def test_values_that_one_of_them_lacks_are_not_compared() -> None:
    report = compared((None, 3), (7, None))
    assert report.agree
    assert report.fields == []


def test_flows_are_found_from_either_end() -> None:
    report = CrossCheckReport("tool")
    compare(report, [record({"ours": (1, 2)})], [record({"theirs": (1, 2)}).turned()], [FIELD])
    assert report.agree
    assert report.flows == 1


def test_flows_on_the_same_ports_are_told_apart_by_their_start() -> None:
    ours = [record({"ours": (n, n)}, start) for n, start in ((1, 0.0), (2, 5.0), (3, 60.0))]
    theirs = [record({"theirs": (n, n)}, start) for n, start in ((2, 5.2), (1, 0.1), (4, 90.0))]
    report = CrossCheckReport("tool")
    compare(report, ours, theirs, [FIELD])
    assert dict(report.agreed) == {"ours": 4}
    assert (len(report.only_ours), len(report.only_theirs)) == (1, 1)
    assert not report.agree


def test_flows_that_they_may_lack_are_not_missed() -> None:
    report = CrossCheckReport("tool")
    compare(report, [record({})], [], [FIELD], optional=lambda r: r.whole["state"] == "open")
    assert report.agree


def test_every_definition_has_a_name_of_its_own_and_a_sentence() -> None:
    for group in definitions().values():
        assert group
        assert len({d.name for d in group}) == len(group)
        assert all(d.text.endswith(".") for d in group)
