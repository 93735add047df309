"""The silence at a hand-over: it grows with the time without payload, and counts nothing else."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import TypeAdapter

from mplab.analysis.figures.run_traces import traces_of
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import read_run
from mplab.analysis.record.schema import SCHEMAS
from mplab.analysis.record.tables import FOLDER, LOOPBACK
from mplab.analysis.scores.changes import METRICS, Change, handovers, read_changes, score
from mplab.analysis.scores.scoring import read_cell_scores
from mplab.format.link import LinkCondition
from tests.unit.analysis import traces as made_up
from tests.unit.analysis.synthetic import MPTCP, WIFI, Synthetic

T0 = 1000.0


def change(at_s: float, what: str, outage: str = "", interface: str = "wlan0", **more: Any) -> dict[str, Any]:
    outage_field = {"outage": outage} if outage else {}
    fields = {"event": "change", "at_s": at_s, "path": "wifi", "interface": interface, "what": what}
    return {"t": T0 + at_s + 0.1, **fields, "begun": T0 + at_s, "late_s": 0.0, "took_s": 0.1, **outage_field, **more}


DOWN, UP = change(10.0, "interface down", "begins"), change(20.0, "interface up", "ends")
END = {"t": T0 + 60.0, "event": "traffic"}


def payload(times_s: Sequence[float], direction: str = "down", size: int = 1000) -> list[dict[str, Any]]:
    return [
        {"connection_id": 0, "subflow_id": 0, "level": "tcp", "direction": direction, "kind": "data", "bytes": size}
        | {"time_ns": int((T0 + time_s) * 1e9), "offset": 0, "weight": 1}
        for time_s in times_s
    ]


def tables(rows: list[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    return {"points": pl.DataFrame(rows, schema=SCHEMAS["points"])}


def steady(begin_s: float, end_s: float) -> list[float]:
    """Return the times of ten packets a second, s."""
    return [begin_s + number / 10 for number in range(int((end_s - begin_s) * 10))]


def gaps(rows: list[dict[str, Any]], *observed: dict[str, Any]) -> dict[str, float]:
    values = score((*observed, END), tables(rows), {"wlan0"})
    return {value.labels.get("outage", value.metric): value.value for value in values}


@pytest.mark.parametrize("back_s", [10.4, 12.0, 25.0])
def test_the_gap_lasts_until_payload_comes_again(back_s: float) -> None:
    lengths = gaps(payload([*steady(0.0, 10.0), *steady(back_s, 40.0)]), DOWN, UP)
    assert lengths["10 s wifi interface down"] == pytest.approx(back_s - 9.9)
    assert lengths["longest_handover_gap"] == pytest.approx(back_s - 9.9)


def test_a_flow_that_never_comes_back_is_silent_to_the_end() -> None:
    assert gaps(payload(steady(0.0, 10.0)), DOWN, UP)["longest_handover_gap"] == pytest.approx(50.1)


def test_silence_before_and_after_the_outage_is_another_matter() -> None:
    quiet = [*steady(0.0, 3.0), *steady(9.0, 22.0), *steady(40.0, 50.0)]
    assert gaps(payload(quiet), DOWN, UP)["longest_handover_gap"] == pytest.approx(0.1)


def test_what_had_ended_before_has_no_gap() -> None:
    assert gaps(payload(steady(0.0, 3.0)), DOWN, UP) == {}
    assert gaps([], DOWN, UP) == {}


def test_a_path_that_was_not_used_hands_nothing_over() -> None:
    rows = tables(payload(steady(0.0, 50.0)))
    assert score((DOWN, UP, END), rows, {"rmnet0"}) == []
    assert score((DOWN, UP, END), rows, {"rmnet0", "wlan0"}) != []


def test_of_an_upload_the_upload_counts() -> None:
    rows = payload([*steady(0.0, 10.0), *steady(12.0, 40.0)], "up") + payload([1.0, 35.0], "down", 10)
    assert gaps(rows, DOWN, UP)["longest_handover_gap"] == pytest.approx(2.1)


def test_each_outage_has_its_own_gap() -> None:
    again = change(30.0, "radio off", "begins"), change(35.0, "radio on", "ends")
    lengths = gaps(payload([*steady(0.0, 10.0), *steady(11.0, 30.0), *steady(36.0, 50.0)]), DOWN, UP, *again)
    assert lengths == {
        "10 s wifi interface down": pytest.approx(1.1),
        "30 s wifi radio off": pytest.approx(6.1),
        "longest_handover_gap": pytest.approx(6.1),
    }


def test_another_default_route_is_a_handover_and_a_worse_link_is_none() -> None:
    route = change(10.0, "default route", interface="rmnet0")
    worse, idle = change(12.0, "loss 3 %"), change(14.0, "multipath off", no_effect="there are no endpoints")
    result = handovers(read_changes([worse, idle, route]), T0 + 60.0)
    assert [(h.change.title, h.end_s - h.change.time_s, h.gone) for h in result] == [
        ("10 s cellular default route", 5.0, False)
    ]


def test_a_change_that_failed_is_none() -> None:
    failed = {"t": 1.0, "event": "change", "at_s": 1.0, "interface": "wlan0", "what": "interface down", "error": "x"}
    assert read_changes([failed]) == ()


def test_changes_are_read_in_the_order_of_time() -> None:
    assert read_changes([UP, END, DOWN]) == (
        Change(T0 + 10.0, 10.0, "wlan0", "interface down", "begins"),
        Change(T0 + 20.0, 20.0, "wlan0", "interface up", "ends"),
    )


def test_a_run_with_changes_has_the_metric_and_its_figure(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1, transports=(WIFI, MPTCP))
    run = builder.build()
    for folder in (run / "cells").iterdir():
        _add_an_outage(folder)
    analyze(run)
    folders = list((run / "cells").iterdir())
    for folder in folders:
        values = {value.metric: value.value for value in read_cell_scores(folder)}
        assert values["longest_handover_gap"] == pytest.approx(0.8)
    assert METRICS[0].title in (run / "report" / "index.html").read_text(encoding="utf-8")
    assert all(trace.changes for trace in traces_of(read_run(run)).traces)
    figure = (run / "report" / "figures" / "trace-bytes-over-time.svg").read_text(encoding="utf-8")
    assert "WiFi gone" in figure
    data = (run / "report" / "data" / "trace-bytes-over-time.csv").read_text(encoding="utf-8")
    assert "interface down (outage begins)" in data


def _add_an_outage(folder: Path) -> None:
    """Take WiFi down in the middle of the cell's made-up packets; on loopback, payload returns after 0.8 s."""
    begin_s = made_up.START_NS / 1e9 + 0.2
    events = [
        {**DOWN, "t": begin_s, "begun": begin_s},
        {**UP, "t": begin_s + 0.5, "begun": begin_s + 0.5},
        {"t": begin_s + 3.0, "event": "traffic"},
    ]
    with (folder / "scenario.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in events)
    own = folder / FOLDER / LOOPBACK
    made_up.Trace(connections=0).write(own)
    rows = payload([begin_s - T0 + shift_s for shift_s in (-0.1, 0.0, 0.8, 0.9)])
    made_up.frame("points", rows).write_parquet(own / "points.parquet", metadata=_metadata(own))


def _metadata(folder: Path) -> dict[str, str]:
    metadata = pl.read_parquet_metadata(folder / "connections.parquet")
    return {key: value for key, value in metadata.items() if key != "ARROW:schema"}


def test_changes_are_told_in_words() -> None:
    changes = [
        {"at_s": 15.0, "device": "wlan0", "text": "interface down"},
        {"at_s": 20.5, "device": "rmnet0", "text": "loss 1 %"},
    ]
    assert (
        TypeAdapter(LinkCondition).validate_python({"name": "toggle", "changes": changes}).story
        == "15 s WiFi interface down; 20.5 s LTE loss 1 %"
    )
    assert LinkCondition(name="still").story == ""
