"""Every trace figure, over made-up tables, real tables and no tables."""

import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mplab.analysis.errors import FigureError, NotARunError, ProgramMissingError
from mplab.analysis.figures.catalog import LeftOut, catalog, draw, figures, load, write_figures
from mplab.analysis.figures.run_traces import CellTrace, Traces, traces_in, traces_of
from mplab.analysis.figures.shapes.connection import PlottedConnection
from mplab.analysis.figures.shapes.table import MOST_ROWS
from mplab.analysis.figures.style import Drawing
from mplab.analysis.figures.traces.ack_sizes import values as ack_sizes
from mplab.analysis.figures.traces.app_traffic import values as app_traffic
from mplab.analysis.figures.traces.bytes_over_time import curves, sent_again
from mplab.analysis.figures.traces.cellular_fraction import values as cellular_fraction
from mplab.analysis.figures.traces.initial_share import values as initial_share
from mplab.analysis.figures.traces.overhead import values as overhead
from mplab.analysis.figures.traces.packet_raster import packets
from mplab.analysis.figures.traces.positions import values as positions
from mplab.analysis.figures.traces.reinjection_causes import values as reinjection_causes
from mplab.analysis.figures.traces.rtt_over_time import samples
from mplab.analysis.figures.traces.subflow_count import values as subflow_count
from mplab.analysis.figures.traces.throughput_by_size import values as throughput_by_size
from mplab.analysis.figures.traces.unused_subflows import values as unused_subflows
from mplab.analysis.figures.traces.waterfall import shares
from mplab.analysis.figures.traces.wifi_and_cellular import values as wifi_and_cellular
from mplab.analysis.figures.traces.window import windows
from mplab.analysis.record.decode import find_mptrace
from mplab.analysis.record.run import read_run
from mplab.analysis.record.schema import SCHEMAS, VERSION, VERSION_KEY
from mplab.analysis.record.tables import LOOPBACK, PROXY, Tables
from tests.unit.analysis import traces as made_up
from tests.unit.analysis.synthetic import MPTCP, WIFI, Synthetic

pytestmark = pytest.mark.long

CAPTURES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
REPORT = {"bytes-over-time", "rtt-samples", "join-delay", "time-sequence", "waterfall"}
OF_TABLES = [named.name for named in catalog().of_traces if not named.figure.of_paper]
LARGE_ONLY = {"rtt-difference", "switches", "throughput", "completion"}
"""Figures that need connections larger than those of the synthetic run."""


def check(drawing: Drawing) -> None:
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own
    assert root.tag.endswith("svg")
    assert drawing.rows
    assert all(len(row) == len(drawing.columns) for row in drawing.rows)
    assert drawing.caption.endswith(".")
    assert drawing.section == "traces"


def drawn(traces: Traces, *names: str) -> tuple[dict[str, Drawing], dict[str, str]]:
    results = list(draw(traces, figures(names or OF_TABLES)))
    drawings = {result.stem.removeprefix("trace-"): result for result in results if isinstance(result, Drawing)}
    return drawings, {result.name: result.reason for result in results if isinstance(result, LeftOut)}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """One capture with large MPTCP connections."""
    folder = tmp_path_factory.mktemp("trace") / "tables"
    made_up.Trace(connections=5, segments=2400).write(folder)
    return traces_in(folder)


def test_large_connections_have_every_figure(trace: Traces) -> None:
    drawings, left_out = drawn(trace)
    assert left_out == {}
    assert set(drawings) == set(OF_TABLES)
    for drawing in drawings.values():
        check(drawing)


def test_a_run_has_a_facet_per_link_and_says_what_it_lacks(synthetic: Callable[..., Synthetic]) -> None:
    run = read_run(synthetic(repetitions=1, transports=(WIFI, MPTCP), links=("baseline", "lossy")).build())
    drawings, left_out = drawn(traces_of(run))
    assert set(left_out) == LARGE_ONLY
    for drawing in drawings.values():
        check(drawing)
    assert {row[1] for row in drawings["connection-duration"].rows} == {"baseline", "lossy"}
    assert "Multipath TCP" in drawings["connection-duration"].svg


def test_more_conditions_than_fit_go_on_further_pages(synthetic: Callable[..., Synthetic]) -> None:
    run = read_run(synthetic(repetitions=1, transports=(MPTCP,), links=[f"link-{i}" for i in range(8)]).build())
    drawings, _ = drawn(traces_of(run), "connection-duration")
    assert set(drawings) == {"connection-duration", "connection-duration-2"}


@pytest.mark.parametrize("kind", ["one cell of plain TCP", "empty tables", "no cell"])
def test_without_data_a_figure_is_left_out_with_its_reason(tmp_path: Path, kind: str) -> None:
    if kind == "one cell of plain TCP":
        made_up.Trace(interfaces=["wlan0"], objects=False).write(tmp_path)
    elif kind == "empty tables":
        made_up.Trace(connections=0).write(tmp_path)
    traces = traces_in(tmp_path) if kind != "no cell" else Traces((), ())
    drawings, left_out = drawn(traces)
    assert {"time-sequence", "window", "join-delay", "waterfall"} <= set(left_out)
    assert all(left_out.values())
    if kind != "one cell of plain TCP":
        assert drawings == {}
    for drawing in drawings.values():
        check(drawing)


def test_the_report_takes_a_handful() -> None:
    assert {named.name for named in catalog().of_traces if named.figure.in_report} == REPORT


def test_an_unknown_figure_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(FigureError, match=r"no figure is called 'pie'\. Figures: gain, .*, connection-duration"):
        figures(["pie"])


def test_figures_are_written_with_their_data(trace: Traces, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    written, left_out = write_figures(trace, ["join-delay", "ack-sizes"], folder)
    assert left_out == []
    assert [(entry.name, entry.files[0].name) for entry in written] == [
        ("join-delay", "join-delay.svg"),
        ("ack-sizes", "ack-sizes.svg"),
    ]
    header = (folder / "join-delay.csv").read_text().splitlines()[0]
    assert header == "scenario,link,transport,variant,value,cumulative_share"
    before = [entry.files[0].read_bytes() for entry in written]
    write_figures(trace, ["join-delay", "ack-sizes"], folder)
    assert [entry.files[0].read_bytes() for entry in written] == before


def test_cells_can_be_chosen(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=2).build()
    name = next(path.name for path in sorted((run / "cells").iterdir()) if "mptcp" in path.name)
    traces = load(run, [name])
    assert [t.name for t in traces.traces] == [name]
    with pytest.raises(FigureError, match="no ok cell is called 'nope'"):
        load(run, ["nope"])
    with pytest.raises(NotARunError):
        load(run / "nowhere")


# Computations of the figures, from a few rows.


def rows_of(tmp_path: Path, **tables: list[made_up.Row]) -> Traces:
    tmp_path.mkdir(exist_ok=True)
    for name in SCHEMAS:
        frame = made_up.frame(name, tables.get(name, []))
        frame.write_parquet(tmp_path / f"{name}.parquet", metadata={VERSION_KEY: str(VERSION)})
    return traces_in(tmp_path)


TWO = {"connection_id": 0, "kind": "mptcp", "subflows": 2, "start_ns": 0, "duration_s": 10.0, "fallback": False}


def test_overhead_is_by_the_bytes_of_the_application(tmp_path: Path) -> None:
    ways = {"level": "tcp", "direction": "down", "connection_id": 0}
    directions = [
        ways | {"subflow_id": 0, "retransmitted_bytes": 30, "hole_bytes": 10},
        ways | {"subflow_id": 1, "retransmitted_bytes": 10, "hole_bytes": 0},
    ]
    connection = TWO | {"bytes_up": 0, "bytes_down": 200, "reinjected_up": 0, "reinjected_down": 20}
    shares = overhead(rows_of(tmp_path, connections=[connection], directions=directions))
    assert dict(shares.select("variant", "value").iter_rows()) == {"retransmitted down": 0.25, "reinjected down": 0.1}


def test_positions_are_fractions_of_the_connections_life(tmp_path: Path) -> None:
    again = [{"connection_id": 0, "time_ns": 2_500_000_000}, {"connection_id": 7, "time_ns": 1}]
    fractions = positions(rows_of(tmp_path, connections=[TWO], reinjections=again))
    assert fractions.select("variant", "value").rows() == [("reinjections", 0.25)]


def of_numbers(frame: pl.DataFrame) -> tuple[object, ...]:
    (row,) = frame.drop("scenario", "link", "transport").iter_rows()
    return row


def test_tables_have_counts_and_shares(tmp_path: Path) -> None:
    connections = [TWO | {"connection_id": number, "subflows": number} for number in range(1, 6)]
    facts: made_up.Row = {"role": "additional", "established": True}
    kinds: list[tuple[int, bool, made_up.Row]] = [
        *((number, number == 2, {}) for number in range(2, 6)),
        (2, False, {"role": "initial"}),
        (3, False, {"established": False}),
        (9, False, {}),
    ]
    subflows = [
        facts | {"connection_id": connection, "subflow_id": 1, "used": used} | more for connection, used, more in kinds
    ]
    causes = ("window", "window", "rto", "closed")
    reinjections = [{"connection_id": 2, "direction": "down", "cause": cause} for cause in causes]
    traces = rows_of(tmp_path, connections=connections, subflows=subflows, reinjections=reinjections)
    assert of_numbers(subflow_count(traces)) == (5, 0.2, 0.2, 0.2, 0.2, 0.2)
    assert of_numbers(unused_subflows(traces)) == (4, 3, 0.75)
    assert of_numbers(reinjection_causes(traces)) == (4, 0.5, 0.25, 0.25, 0.0)


def test_traffic_is_the_mean_over_cells_also_over_those_without_connections(tmp_path: Path) -> None:
    opened = {"kind": "tcp", "syn_seen": True, "bytes_up": 100}
    connections = [opened | {"connection_id": number, "bytes_down": 1000 * number} for number in (1, 2)]
    (busy,) = rows_of(tmp_path / "a", connections=[*connections, opened | {"syn_seen": False}]).traces
    (idle,) = rows_of(tmp_path / "b").traces
    cells = [replace(cell, scenario="app", link="here", transport="tcp") for cell in (busy, idle)]
    assert of_numbers(app_traffic(Traces(tuple(cells), ()))) == (1.0, 100.0, 1500.0, 2)


def test_long_tables_go_on_further_pages(tmp_path: Path) -> None:
    (cell,) = rows_of(tmp_path, connections=[{"kind": "tcp", "syn_seen": True, "bytes_up": 1, "bytes_down": 2}]).traces
    cells = [replace(cell, scenario=f"app-{number}") for number in range(MOST_ROWS + 1)]
    drawings, _ = drawn(Traces(tuple(cells), ()), "app-traffic")
    assert [len(drawings[stem].rows) for stem in ("app-traffic", "app-traffic-2")] == [MOST_ROWS, 1]
    assert "app-7" in drawings["app-traffic"].svg


def test_acknowledgements_weigh_their_bytes(tmp_path: Path) -> None:
    sizes = [
        {"connection_id": 0, "level": "tcp", "direction": "down", "bytes": 1000, "count": 6},
        {"connection_id": 0, "level": "mptcp", "direction": "down", "bytes": 2000, "count": 3},
        {"connection_id": 0, "level": "tcp", "direction": "up", "bytes": 1, "count": 1},
    ]
    rows = ack_sizes(rows_of(tmp_path, connections=[TWO], acks=sizes)).select("value", "weight", "variant").rows()
    assert rows == [(1000, 6000, "TCP acknowledgements"), (2000, 6000, "data acknowledgements")]


def test_shares_of_subflows_and_networks(tmp_path: Path) -> None:
    flows = [
        {"connection_id": 0, "role": "initial", "network": "wifi", "unique_up": 30, "unique_down": 30},
        {"connection_id": 0, "role": "additional", "network": "cellular", "unique_up": 10, "unique_down": 10},
    ]
    traces = rows_of(tmp_path, connections=[TWO], subflows=flows)
    assert initial_share(traces)["value"].to_list() == [0.75]
    assert cellular_fraction(traces).select("x", "y").rows() == [(40, 0.25)]


@pytest.fixture
def session(tmp_path: Path) -> Traces:
    """A cell with a session: two paths on the interfaces, three connections on loopback."""
    flow = {"syn_seen": True, "kind": "tcp", "subflows": 1, "start_ns": 0, "fallback": False, "bytes_up": 0}
    paths = [flow | {"connection_id": i, "duration_s": 9.0, "bytes_down": size} for i, size in enumerate((400, 800))]
    subflows = [
        {"connection_id": i, "network": network, "unique_up": 0, "unique_down": size}
        for i, (network, size) in enumerate((("wifi", 400), ("cellular", 800)))
    ]
    for name in SCHEMAS:
        rows = {"connections": paths, "subflows": subflows}.get(name, [])
        made_up.frame(name, rows).write_parquet(tmp_path / f"{name}.parquet", metadata={VERSION_KEY: str(VERSION)})
    made_up.Trace(interfaces=["wlan0"], connections=3, segments=2400).write(tmp_path / LOOPBACK)
    (bare,) = traces_in(tmp_path).traces
    return Traces((replace(bare, session=True),), traces_in(tmp_path).transports)


def test_figures_of_connections_show_those_of_applications_where_a_session_carried_them(session: Traces) -> None:
    drawings, left_out = drawn(session)
    for name in ("connection-duration", "connection-bytes", "duration-and-bytes", "completion", "throughput"):
        assert name in drawings, left_out.get(name)
    durations = [row[4] for row in drawings["connection-duration"].rows]
    assert len(durations) == 3
    assert 9.0 not in durations
    for drawing in drawings.values():
        check(drawing)


def test_objects_of_a_session_are_those_that_passed_the_loopback(session: Traces) -> None:
    drawings, _ = drawn(session, "waterfall")
    assert len(drawings["waterfall"].rows) == 9


def test_the_paths_of_a_session_are_one_connection(session: Traces) -> None:
    assert wifi_and_cellular(session).select("connection_id", "x", "y").rows() == [(0, 400, 800)]
    (trace,) = session.traces
    alone = Traces((replace(trace, session=False),), session.transports)
    assert wifi_and_cellular(alone).select("x", "y").rows() == [(400, 1), (1, 800)]


def test_bytes_over_time_spread_each_window_evenly(tmp_path: Path) -> None:
    second = 1_000_000_000
    windows_ = [
        {"connection_id": 0, "subflow_id": 0, "level": "tcp", "start_ns": 0, "duration_s": 4.0, "bytes": 400},
        {"connection_id": 0, "subflow_id": 0, "level": "tcp", "start_ns": 2 * second, "duration_s": 2.0, "bytes": 100},
    ]
    flow = {"connection_id": 0, "subflow_id": 0, "network": "wifi"}
    traces = rows_of(tmp_path, connections=[TWO], subflows=[flow], throughput=windows_)
    times, carried = curves(traces.traces[0])["wifi"]
    at = dict(zip(times.round(6), carried, strict=True))
    assert at[0.0] == 0
    assert carried[-1] == pytest.approx(500)
    half = min(range(times.size), key=lambda i: abs(times[i] - 2.0))
    assert carried[half] == pytest.approx(200, rel=0.02)


def test_curves_begin_where_they_are_told_and_go_on_to_the_end(tmp_path: Path) -> None:
    second = 1_000_000_000
    columns = {"connection_id": 0, "subflow_id": 0, "kind": "data", "direction": "down"}
    points = [columns | {"time_ns": at * second, "bytes": 100} for at in (8, 11, 14)]
    flow = {"connection_id": 0, "subflow_id": 0, "network": "wifi"}
    (trace,) = rows_of(tmp_path, connections=[TWO], subflows=[flow], points=points).traces
    times, carried = curves(trace, zero_ns=10 * second, until_s=20.0)["wifi"]
    assert (times[0], times[-1]) == (-2.0, 20.0)
    at = {time_s: carried[times <= time_s][-1] for time_s in (0.0, 3.0, 20.0)}
    assert at == {0.0: 100, 3.0: 200, 20.0: 300}


def test_what_is_sent_again_is_told_by_its_sender(tmp_path: Path) -> None:
    """Match the proxy's connections with the phone's by addresses and ports: their numbers differ."""
    ports = {"client": "10.64.1.2", "client_port": 40001, "server": "10.64.3.2", "server_port": 7002}
    other = ports | {"client": "10.64.2.2", "client_port": 40002}
    phone = [
        ports | {"connection_id": 0, "subflow_id": 0, "network": "wifi"},
        other | {"connection_id": 0, "subflow_id": 1, "network": "cellular"},
    ]
    proxy = [
        other | {"connection_id": 3, "subflow_id": 0, "network": "ethernet"},
        ports | {"connection_id": 3, "subflow_id": 1, "network": "ethernet"},
        ports | {"connection_id": 4, "subflow_id": 0, "network": "ethernet", "client_port": 50000},
    ]
    again = {"time_ns": 2_000_000_000, "cause": "rto", "bytes": 1400}
    at_phone = [
        again | {"connection_id": 0, "subflow_id": 1, "direction": "up"},
        again | {"connection_id": 0, "subflow_id": 0, "direction": "down", "cause": "fast"},
    ]
    at_proxy = [
        again | {"connection_id": 3, "subflow_id": 1, "direction": "down"},
        again | {"connection_id": 3, "subflow_id": 1, "direction": "up", "cause": "unneeded"},
        again | {"connection_id": 4, "subflow_id": 0, "direction": "down", "cause": "of another"},
    ]
    copied = again | {"connection_id": 3, "from_subflow": 1, "to_subflow": 0, "direction": "down", "cause": "closed"}
    (trace,) = rows_of(tmp_path, connections=[TWO], subflows=phone, retransmissions=at_phone).traces
    seen = ["kind", "network", "direction", "cause", "time_s"]
    assert sent_again(trace).select(seen).rows() == [
        ("retransmission", "cellular", "up", "rto", 2.0),
        ("retransmission", "wifi", "down", "fast", 2.0),
    ]
    (tmp_path / PROXY).mkdir()
    rows_of(tmp_path / PROXY, connections=[TWO], subflows=proxy, retransmissions=at_proxy, reinjections=[copied])
    assert sent_again(trace, zero_ns=500_000_000).select(seen).rows() == [
        ("retransmission", "cellular", "up", "rto", 1.5),
        ("retransmission", "wifi", "down", "rto", 1.5),
        ("reinjection", "cellular", "down", "closed", 1.5),
    ]


def test_the_window_is_told_beyond_the_acknowledged_number() -> None:
    sent = [(0.1, "data", 0, 400), (0.2, "data", 400, 600)]
    points = [(0.0, "window", 1000, 0), *sent, (0.3, "ack", 400, 0), (0.3, "window", 1400, 0)]
    frame = pl.DataFrame(points, schema=["time_s", "kind", "offset", "bytes"], orient="row")
    result = windows(PlottedConnection(CellTrace("c", "", "", "", Tables(None)), 0, "down", frame, {}))
    assert result.drop("direction").rows() == [(0.0, 0, 1000), (0.1, 400, 1000), (0.2, 1000, 1000), (0.3, 600, 1000)]


def test_bytes_per_network_of_an_object() -> None:
    assert shares("wifi:1234,cellular:567") == {"wifi": 1234, "cellular": 567}
    assert shares("") == {}


TWO_PATHS = ["two-paths-wlan0.pcapng", "two-paths-rmnet0.pcapng"]


def decoded(folder: Path, files: Sequence[str]) -> Traces:
    """Return the traces of captures in the test data of mptrace."""
    try:
        program = find_mptrace()
    except ProgramMissingError as missing:
        pytest.skip(str(missing))
    out = folder / "tables"
    subprocess.run([program, *(CAPTURES / name for name in files), "-o", out], check=True, capture_output=True)
    return traces_in(out)


@pytest.mark.parametrize("files", [TWO_PATHS, ["retransmissions-wlan0.pcapng"]])
def test_real_captures_have_sound_figures(tmp_path: Path, files: list[str]) -> None:
    drawings, _ = drawn(decoded(tmp_path, files))
    assert {"rtt-samples", "connection-duration", "bytes-over-time"} <= set(drawings)
    assert ("time-sequence" in drawings) == (len(files) > 1)
    for drawing in drawings.values():
        check(drawing)


def test_packets_and_round_trips_of_real_captures_are_on_their_network(tmp_path: Path) -> None:
    (cell,) = decoded(tmp_path, TWO_PATHS).traces
    found = packets(cell)
    assert found is not None
    syns = found.packets.filter(pl.col("kind") == "syn")
    assert set(syns["network"]) == {"wifi", "cellular"}
    assert found.packets["time_s"].to_list()[0] >= 0
    assert found.packets["time_s"].is_sorted()
    trips = samples(cell)
    assert trips is not None
    of_data_up = cell.read("rtt").filter((pl.col("level") == "tcp") & (pl.col("direction") == "up"))
    assert trips.samples.height == of_data_up.height
    assert trips.networks == ["wifi", "cellular"]


def test_throughput_is_relative_to_the_best_transport_of_a_group(tmp_path: Path) -> None:
    cells = []
    for transport, seconds in (("slow", 2.0), ("fast", 1.0)):
        folder = tmp_path / transport
        folder.mkdir()
        made_up.Trace(connections=3, segments=2400, objects=False).write(folder)
        directions = pl.read_parquet(folder / "directions.parquet")
        directions = directions.with_columns(
            throughput_bps=pl.col("unique_bytes") * 8 / seconds, idle_max_ms=pl.lit(9.0)
        )
        directions.write_parquet(folder / "directions.parquet")
        cells.append(CellTrace(transport, "files", "baseline", transport, Tables(folder)))
    found = throughput_by_size(Traces(tuple(cells), ()))
    assert not found.is_empty()
    by_transport = {(row["class"], row["transport"]): row["value"] for row in found.iter_rows(named=True)}
    for (group, transport), value in by_transport.items():
        assert value == pytest.approx(1.0 if transport == "fast" else 0.5), group
