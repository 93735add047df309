"""The figures that repeat those of papers, over made-up scores."""

import json
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.figures.catalog import LeftOut, catalog, draw, figures, write_figures
from mplab.analysis.figures.run_traces import Traces, traces_of
from mplab.analysis.figures.style import Drawing
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import Cell, read_run
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import MPTCP, WIFI, Synthetic

pytestmark = pytest.mark.long

Value = tuple[str, float, Mapping[str, str]]
Values = Callable[[Cell], Iterator[Value]]
Make = Callable[..., Traces]


def mpflex(label: str, **options: Any) -> dict[str, Any]:
    return {"label": label, "name": "mpflex", "title": f"MPFlex {label}", "options": options}


MINRTT = mpflex("minrtt", scheduler="minrtt")
TXDELAY = mpflex("txdelay", scheduler="txdelay")
BARE = mpflex("bare", scheduler="minrtt", reinjection=[])
SMART = mpflex("smart", scheduler="minrtt", reinjection=["stall"])
POLICY = mpflex("policy", scheduler="minrtt", policy="nikravesh2016-fig18-lab")
SIZES = ("10 MB", "50 kB", "1 MB")


def downloads(cell: Cell) -> Iterator[Value]:
    for size in SIZES:
        yield "download_time", {"50 kB": 0.2, "1 MB": 1.4, "10 MB": 12.0}[size] * jitter(cell), {"size": size}


def bundles(cell: Cell) -> Iterator[Value]:
    for bundle in ("40 × 50 kB, 4 at a time", "10 × 10 kB, 1 at a time"):
        yield "bundle_time", 2.0 * jitter(cell), {"bundle": bundle}


def pages(cell: Cell) -> Iterator[Value]:
    for site in ("wiki", "news-2", "news-10"):
        yield "page_load_time", 3.0 * jitter(cell), {"site": site}


def interfaces(cell: Cell) -> Iterator[Value]:
    assert cell.spec is not None
    yield "wifi_bytes", 900.0 * jitter(cell), {}
    yield "cellular_bytes", (0.4 if cell.spec.transport == "policy" else 80.0) * jitter(cell), {}


def jitter(cell: Cell) -> float:
    return random.Random(cell.id).uniform(0.9, 1.1)  # noqa: S311


def link(name: str, wifi: float, lte: float, core: float = 0.0) -> dict[str, Any]:
    paths = {
        interface: {direction: {"delay_ms": rtt / 2} for direction in ("down", "up")}
        for interface, rtt in (("wlan0", wifi), ("rmnet0", lte))
    }
    return {"name": name, "paths": paths, "core_rtt_ms": core}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Build a run with these scores and return its traces; `links` overrides whole link entries."""

    def build(
        values: Values | None, *transports: Mapping[str, Any], links: Sequence[Mapping[str, Any]] = (), **changes: Any
    ) -> Traces:
        names = [each["name"] for each in links] or ["baseline"]
        settings: dict[str, Any] = {"repetitions": 2, "transports": transports, "links": names}
        directory = Synthetic(tmp_path, **settings | changes).build()
        if links:
            manifest = json.loads((directory / "manifest.json").read_text())
            manifest["experiment"]["links"] = links
            (directory / "manifest.json").write_text(json.dumps(manifest))
        run = read_run(directory)
        for cell in run.cells:
            if values is not None and cell.directory is not None:
                rows = [{"metric": m, "value": v, "labels": labels} for m, v, labels in values(cell)]
                (cell.directory / "scores.json").write_text(json.dumps({"values": rows}))
        return traces_of(run)

    return build


def drawn(traces: Traces, name: str) -> list[Drawing]:
    results = list(draw(traces, figures([name])))
    assert not [missing for missing in results if isinstance(missing, LeftOut)], results
    return [result for result in results if isinstance(result, Drawing)]


def check(drawing: Drawing) -> None:
    assert ET.fromstring(drawing.svg).tag.endswith("svg")  # noqa: S314 - our own
    assert drawing.rows
    assert all(len(row) == len(drawing.columns) for row in drawing.rows)
    assert drawing.section == "paper"
    assert drawing.caption.startswith("After ")
    assert drawing.caption.endswith(".")


LTE_FIRST = {**MPTCP, "label": "lte-first", "title": "Multipath TCP, LTE first", "options": {"primary": "lte"}}
RENO = {**MPTCP, "label": "reno", "title": "Multipath TCP, Reno", "options": {"congestion_control": "reno"}}
TWO_SCENARIOS = [{"label": label, "name": "toy", "parameters": {"sizes": list(SIZES)}} for label in ("h1", "h2")]
LOSSES = [link("baseline", 50, 70), link("lossy", 51, 70)]


def by_block(cell: Cell) -> Iterator[Value]:
    """Times by transport and block, without noise: quotients and differences are known."""
    assert cell.spec is not None
    transport = {"sptcp-wifi": 1.0, "mptcp": 0.5, "lte-first": 0.8, "reno": 0.4}[cell.spec.transport]
    for size in SIZES:
        yield "download_time", transport * cell.spec.block, {"size": size}


def bitrates(cell: Cell) -> Iterator[Value]:
    assert cell.spec is not None
    yield "mean_bitrate", {"sptcp-wifi": 1000.0, "mptcp": 1400.0}[cell.spec.transport] + 10 * cell.spec.block, {}


FOUR = [link("proxy-a", 27, 49), link("proxy-b", 44, 66), link("proxy-c", 81, 100), link("proxy-d", 131, 148)]


@pytest.mark.parametrize(
    ("name", "values", "transports", "links"),
    [
        ("nikravesh2016-fig14", downloads, (WIFI, MPTCP, MINRTT), ()),
        ("nikravesh2016-fig15", bundles, (MPTCP, MINRTT), ()),
        ("nikravesh2016-fig16", pages, (MPTCP, MINRTT), ()),
        ("nikravesh2016-fig17", downloads, (MINRTT, TXDELAY), ()),
        ("nikravesh2016-fig18", interfaces, (MPTCP, POLICY), ()),
        ("nikravesh2016-fig19", downloads, (MPTCP, MINRTT), FOUR),
        ("nikravesh2016-sec54", downloads, (MPTCP, BARE, SMART), ()),
    ],
)
def test_every_figure_is_drawn_of_a_run_that_has_the_data(
    make: Make, name: str, values: Values, transports: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> None:
    traces = make(values, *transports, links=links)
    (drawing,) = drawn(traces, name)
    check(drawing)
    assert drawing.stem == f"paper-{name}"
    for transport in transports:
        assert transport["title"] in drawing.svg


def test_all_links_or_protocols_are_in_one_panel(make: Make) -> None:
    for name in ("han2015-fig3", "han2015-fig4", "han2015-fig6"):
        (drawing,) = drawn(make(pages, WIFI, links=LOSSES, name=name), name)
        check(drawing)
        assert {row[3] for row in drawing.rows} == {"baseline", "lossy"}
        assert "TCP over WiFi, lossy" in drawing.svg
    (protocols,) = drawn(make(pages, WIFI, scenarios=TWO_SCENARIOS, name="p"), "han2015-fig2")
    check(protocols)
    assert {row[3] for row in protocols.rows} == {"h1", "h2"}
    assert {row[0] for row in protocols.rows} == {""}


def test_pairs_are_of_one_block(make: Make) -> None:
    (ratio,) = drawn(make(by_block, WIFI, MPTCP, LTE_FIRST, links=LOSSES, name="r"), "nikravesh2016-fig6")
    check(ratio)
    assert {(row[2], row[4]) for row in ratio.rows} == {("mptcp", 2.0), ("lte-first", 1.25)}
    assert {row[3] for row in ratio.rows} == {"baseline", "lossy"}
    (difference,) = drawn(make(bitrates, WIFI, MPTCP, name="d"), "nikravesh2016-fig7")
    check(difference)
    assert {row[2:5] for row in difference.rows} == {("mptcp", "minus TCP over WiFi", 400.0)}


def test_relative_differences_are_of_transports_that_differ_in_one_option(make: Make) -> None:
    (drawing,) = drawn(make(by_block, MPTCP, LTE_FIRST, RENO), "deng2014-fig14")
    check(drawing)
    found = {(row[0], row[3], round(row[4], 9)) for row in drawing.rows}
    assert found == {(size, *curve) for size in SIZES for curve in (("Network", 0.375), ("CC", 0.25))}


def test_classes_stand_in_their_order_and_every_cell_is_in_the_data(make: Make) -> None:
    (drawing,) = drawn(make(downloads, MPTCP, MINRTT), "nikravesh2016-fig14")
    assert list(dict.fromkeys(row[1] for row in drawing.rows)) == ["50 kB", "1 MB", "10 MB"]
    assert len(drawing.rows) == 2 * 2 * len(SIZES)
    assert "n = 2 each" in drawing.caption
    (pages_drawn,) = drawn(make(pages, MPTCP, MINRTT, name="pages"), "nikravesh2016-fig16")
    assert list(dict.fromkeys(row[1] for row in pages_drawn.rows)) == ["news-2", "news-10", "wiki"]


def test_places_of_the_proxy_say_how_far_it_is(make: Make) -> None:
    links = [link("near", 20, 40, core=60), link("far", 70, 90)]
    (drawing,) = drawn(make(downloads, MPTCP, MINRTT, links=links), "nikravesh2016-fig19")
    assert list(dict.fromkeys(row[1] for row in drawing.rows)) == ["near · 20 / 40 ms + 60 ms", "far · 70 / 90 ms"]
    assert {row[0] for row in drawing.rows} == set(SIZES)


def test_a_policy_is_seen_in_the_bytes_of_each_interface(make: Make) -> None:
    (drawing,) = drawn(make(interfaces, MPTCP, POLICY), "nikravesh2016-fig18")
    lte = {(row[1], row[2]): row[4] for row in drawing.rows}
    assert lte["mptcp", "rmnet0"] == pytest.approx(80_000, rel=0.1)
    assert lte["policy", "rmnet0"] == pytest.approx(400, rel=0.1)
    assert "LTE" in drawing.svg


def test_copies_are_drawn_where_the_records_have_them(make: Make) -> None:
    traces = make(downloads, MPTCP, BARE, SMART)
    counts = {"bytes_up": 0, "bytes_down": 500_000, "copied_up": 0, "copied_down": 7_500}
    for cell in traces.scored:
        if cell.transport == "smart":
            path = cell.directory / "cell.json"
            record = json.loads(path.read_text())
            record["proof"] = {"session": {"paths": {"wlan0": counts, "rmnet0": counts}, "events": []}}
            path.write_text(json.dumps(record))
    again = traces_of(read_run(traces.scored[0].directory.parent.parent))
    times, copies = drawn(again, "nikravesh2016-sec54")
    assert times.stem == "paper-nikravesh2016-sec54"
    assert {row[2:] for row in copies.rows} == {
        ("smart", cell.name, 0.015) for cell in again.scored if cell.transport == "smart"
    }


@pytest.mark.parametrize(
    ("name", "values", "transports", "reason"),
    [
        ("han2015-fig3", pages, (MPTCP, MINRTT), "fewer than two link conditions"),
        ("han2015-fig2", pages, (MPTCP, MINRTT), "fewer than two scenarios"),
        ("nikravesh2016-fig6", by_block, (MPTCP,), "there are none"),
        ("nikravesh2016-fig7", bitrates, (MPTCP,), "there are none"),
        ("deng2014-fig14", by_block, (MPTCP, WIFI), "there are none"),
        ("nikravesh2016-fig14", None, (MPTCP, MINRTT), "no ok cell has scores: 'mplab analyze' makes them"),
        ("nikravesh2016-fig14", downloads, (WIFI, MPTCP), "no ok cell of mpflex has a download_time"),
        ("nikravesh2016-fig14", bundles, (MPTCP, MINRTT), "no ok cell of mptcp or mpflex has a download_time"),
        ("nikravesh2016-fig14", lambda c: list(downloads(c))[:1], (MPTCP, MINRTT), "no scenario has two sizes"),
        ("nikravesh2016-fig15", downloads, (MPTCP, MINRTT), "no ok cell of mptcp or mpflex has a bundle_time"),
        ("nikravesh2016-fig16", downloads, (MPTCP, MINRTT), "no ok cell of mptcp or mpflex has a page_load_time"),
        ("nikravesh2016-fig17", downloads, (MPTCP, MINRTT), "no ok cell has mpflex:txdelay"),
        ("nikravesh2016-fig17", downloads, (MPTCP, TXDELAY), "no ok cell has mpflex:minrtt"),
        ("nikravesh2016-fig18", interfaces, (MPTCP, MINRTT), "no transport with ok cells has a policy"),
        ("nikravesh2016-fig18", downloads, (MPTCP, POLICY), "no ok cell has counted the bytes of its interfaces"),
        ("nikravesh2016-fig19", downloads, (MPTCP, MINRTT), "no two link conditions of other round trips"),
        ("nikravesh2016-sec54", downloads, (MPTCP, BARE), "no ok cell is with it"),
        ("nikravesh2016-sec54", downloads, (MPTCP, SMART), "no ok cell is without it"),
        ("nikravesh2016-sec54", bundles, (BARE, SMART), "no file was downloaded"),
    ],
)
def test_without_the_data_a_figure_is_left_out_with_its_reason(
    make: Make, name: str, values: Values | None, transports: Sequence[Mapping[str, Any]], reason: str
) -> None:
    (missing,) = draw(make(values, *transports), figures([name]))
    assert isinstance(missing, LeftOut)
    assert reason in missing.reason


def test_what_a_transport_is_taken_for_depends_on_its_record_and_not_on_its_name(make: Make) -> None:
    both = ["wlan0", "rmnet0"]
    tunnel = {"label": "tunnel", "name": "my-tunnel", "title": "Tunnel", "paths": both, "sessions": True}
    kernel = {"label": "kernel", "name": "other-kernel", "title": "Other kernel", "paths": both}
    single = {"label": "single", "name": "mpflex-single", "title": "One path", "paths": ["rmnet0"], "sessions": False}
    traces = make(downloads, kernel, tunnel)
    assert len(drawn(traces, "nikravesh2016-fig14")) == 1
    assert [trace.session for trace in traces.one_per_transport()] == [False, True]
    (missing,) = draw(make(downloads, single, tunnel, name="x"), figures(["nikravesh2016-fig14"]))
    assert isinstance(missing, LeftOut)
    assert "no ok cell of mptcp has a download_time" in missing.reason


def test_cells_that_are_not_ok_are_not_shown(make: Make) -> None:
    traces = make(downloads, MPTCP, MINRTT, outcome=lambda c: "invalid" if c["repetition"] == 1 else "ok")
    (drawing,) = drawn(traces, "nikravesh2016-fig14")
    assert len(drawing.rows) == 2 * len(SIZES)
    assert "n = 1 each" in drawing.caption
    (missing,) = draw(make(downloads, MPTCP, MINRTT, outcome=lambda _: "failed", name="x"), figures([drawing.stem[6:]]))
    assert isinstance(missing, LeftOut)
    assert missing.reason == "no ok cell"


def test_the_files_are_called_as_the_figures(make: Make, tmp_path: Path) -> None:
    written, _ = write_figures(make(downloads, MPTCP, MINRTT), ["nikravesh2016-fig14"], tmp_path / "out")
    assert [entry.files for entry in written] == [(tmp_path / "out" / "nikravesh2016-fig14.svg",)]
    assert (tmp_path / "out" / "nikravesh2016-fig14.csv").read_text().startswith("facet,class,transport,cell,value\n")


def test_the_bytes_depend_on_the_data_alone(make: Make) -> None:
    traces = make(downloads, MPTCP, MINRTT)
    first, second = (drawn(traces, "nikravesh2016-fig14")[0].svg for _ in range(2))
    assert first == second


PAPER_SCORES = '''"""Scores of a toy download, named as those of the paper's experiment."""

from mplab.analysis.metric import Metric, Value

METRICS = (Metric("download_time", "Download time", "s", "lower", ("size",), headline=True),)


def score(observations, tables, folder):
    return [Value("download_time", o["seconds"], {"size": o["size"]}) for o in observations if o["event"] == "done"]
'''


@pytest.mark.parametrize(("experiment", "shown"), [("nikravesh2016-fig14-short", True), ("demo", False)])
def test_a_figure_is_on_the_page_of_its_own_experiment_alone(
    tmp_path: Path, foreign: Foreign, experiment: str, shown: bool
) -> None:
    builder = Synthetic(tmp_path, name=experiment, repetitions=1, transports=(MPTCP, MINRTT))
    directory = builder.build()
    foreign.scenario("toy", PAPER_SCORES)
    analyze(directory)
    page = (directory / "report" / "index.html").read_text()
    assert ("After nikravesh2016 figure 14" in page) is shown
    assert (directory / "report" / "figures" / "paper-nikravesh2016-fig14.svg").is_file() is shown
    assert ("The paper's figure" in page) is shown


def test_every_figure_of_a_paper_has_an_experiment_of_its_name() -> None:
    experiments = {path.stem for path in (Path(__file__).parents[4] / "experiments").glob("*.yaml")}
    of_papers = [named for named in catalog().of_traces if named.figure.of_paper]
    assert len(of_papers) == 14
    assert {named.name for named in of_papers} <= experiments
