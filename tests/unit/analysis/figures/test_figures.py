"""Every figure, over every kind of run that can exist."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from mplab.analysis.figures.catalog import draw_all
from mplab.analysis.figures.style import PAGE_COLOURS, Drawing, inline
from mplab.analysis.record.run import read_run
from mplab.analysis.report import htmlpage as pages
from mplab.analysis.scores.plugins import load
from mplab.analysis.scores.scoring import score_cell
from mplab.analysis.scores.shares import interface_shares
from mplab.analysis.statistics.summaries import Analysis, summarise
from mplab.drivers.transport import DRIVERS
from mplab.drivers.transport.mpflex.driver import LOOKS
from mplab.format.palette import BROWN, COLOURS, PALETTE, RED, TEAL, VIOLET
from tests.unit.analysis.synthetic import LTE, MPTCP, SIZES, WIFI, Synthetic

Drawn = Callable[[str], list[Drawing]]
RUNS: dict[str, dict[str, Any]] = {
    "five repetitions": {},
    "ten repetitions": {"repetitions": 10, "labels": ["10 kB", "1 MB"]},
    "one repetition": {"repetitions": 1, "labels": ["1 MB"]},
    "one transport": {"transports": (MPTCP,), "repetitions": 3, "labels": ["1 MB"]},
    "no multipath": {"transports": (WIFI, LTE), "repetitions": 3, "labels": ["1 MB"]},
    "a transport without ok cells": {
        "labels": ["1 MB"],
        "outcome": lambda c: "failed" if c["transport"] == "mptcp" else "ok",
    },
    "all invalid": {"repetitions": 2, "outcome": lambda _: "invalid"},
    "nothing run": {"repetitions": 2, "outcome": lambda _: "missing"},
    "all cut off": {"repetitions": 1, "outcome": lambda _: "partial"},
    "two links": {"repetitions": 2, "links": ("baseline", "lossy-wifi_and-co"), "labels": SIZES[:2]},
    "a sweep": {"repetitions": 3, "links": [f"loss-{i}" for i in range(5)], "losses": [0.0, 0.5, 1.0, 5.0, 20.0]},
    "many labels": {"repetitions": 2, "labels": [f"site-{i}" for i in range(9)]},
}


def drawings(builder: Synthetic) -> list[Drawing]:
    run = read_run(builder.build())
    plugin = load("toy")
    scores = [score_cell(cell, plugin) for cell in run.cells if cell.ok]
    groups = tuple(summarise(run, {"files": plugin.metrics}, scores))
    results = list(draw_all(Analysis(run, groups, tuple(interface_shares(run)))))
    drawn = [result for result in results if isinstance(result, Drawing)]
    assert drawn == results
    return drawn


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Return the drawings of one of `RUNS`; each run is drawn once."""

    @cache
    def find(name: str) -> list[Drawing]:
        return drawings(Synthetic(tmp_path_factory.mktemp("run"), **RUNS[name]))

    return find


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_every_figure_is_sound(drawn: Drawn, name: str) -> None:
    drawings = drawn(name)
    stems = [drawing.stem for drawing in drawings]
    assert len(set(stems)) == len(stems)
    for drawing in drawings:
        root = ET.fromstring(drawing.svg)  # noqa: S314 - our own
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "<metadata" not in drawing.svg
        assert "Matplotlib v" not in drawing.svg
        assert drawing.rows
        assert all(len(row) == len(drawing.columns) for row in drawing.rows)
        assert drawing.caption


def test_a_run_with_all_has_all_figures(drawn: Drawn) -> None:
    drawings = {drawing.stem: drawing for drawing in drawn("five repetitions")}
    assert set(drawings) == {
        "gain",
        *(f"strip-files-baseline-{m}" for m in ("time", "goodput", "flows")),
        "byte-share-baseline",
        "links",
        "timeline",
        *(f"trace-{n}" for n in ("bytes-over-time", "rtt-samples", "join-delay", "time-sequence", "waterfall")),
    }
    strip = drawings["strip-files-baseline-time"]
    assert "TCP over WiFi" in strip.svg
    assert "Download time (s), log scale" in strip.svg
    assert strip.metric == "time"


def test_many_values_have_a_distribution_and_boxes(drawn: Drawn) -> None:
    stems = {drawing.stem for drawing in drawn("ten repetitions")}
    assert {"cdf-files-baseline-time", "box-files-baseline-time"} <= stems
    assert not [stem for stem in stems if stem.startswith("strip-")]


def test_each_mark_names_its_cell(drawn: Drawn) -> None:
    for stem in ("strip-files-baseline-time", "timeline", "links"):
        (drawing,) = (d for d in drawn("five repetitions") if d.stem == stem)
        root = ET.fromstring(inline(drawing))  # noqa: S314 - our own
        marks = [group for group in root.iter() if group.get("class") == "cell"]
        place = drawing.columns.index("cell")
        assert sorted(mark.get("data-cell", "") for mark in marks) == sorted(row[place] for row in drawing.rows)
        for mark in marks:
            assert mark[0].tag.endswith("title")
            assert str(mark[0].text).startswith(f"{mark.get('data-cell')}: ")


def test_an_inlined_figure_follows_a_dark_page(drawn: Drawn) -> None:
    for drawing in drawn("five repetitions"):
        inlined = inline(drawing)
        assert "var(--ink)" in inlined
        assert not [colour for colour in PAGE_COLOURS if colour in inlined]


def _luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colours_of_data_are_seen_on_both_pages() -> None:
    own = [driver.colour for driver in DRIVERS.values()]
    own += [look.colour for look in LOOKS.values()]
    style = (Path(pages.__file__).parent / "templates" / "report.css").read_text()
    dark = re.findall(r"--figure: (#[0-9a-f]{6})", style)
    assert len(dark) == 2, "of the light and of the dark page"
    for colour in (*PALETTE, *COLOURS, VIOLET, BROWN, TEAL, RED, *own):
        for page in dark:
            light, low = sorted((_luminance(colour), _luminance(page)), reverse=True)
            assert (light + 0.05) / (low + 0.05) >= 3, (colour, page)


def test_many_labels_are_pooled_and_ranked(drawn: Drawn) -> None:
    drawings = {d.stem: d for d in drawn("many labels")}
    assert "gain" not in drawings
    gains = [row[6] for row in drawings["gain-files-baseline-time"].rows]
    assert gains == sorted(gains, reverse=True)
    assert len(drawings["cdf-files-baseline-time"].rows) == 9 * 3


@pytest.mark.parametrize("name", ["all invalid", "nothing run"])
def test_without_ok_cells_nothing_is_averaged(drawn: Drawn, name: str) -> None:
    sections = {drawing.section for drawing in drawn(name)}
    assert sections <= {"links", "timeline"}


def test_the_bytes_depend_on_the_data_alone(drawn: Drawn, tmp_path: Path) -> None:
    first = drawn("five repetitions")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.grid": False}):
        second = drawings(Synthetic(tmp_path / "again"))
    assert [d.svg for d in first] == [d.svg for d in second]


def test_inlined_figures_share_no_identifier(drawn: Drawn) -> None:
    page = [inline(drawing) for drawing in drawn("five repetitions")]
    identifiers = [{e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")} for svg in page]  # noqa: S314
    assert sum(map(len, identifiers)) == len(set().union(*identifiers))
    assert all(re.search(r'<svg role="(img|group)" aria-label="', svg) for svg in page)


def test_a_sweep_has_a_line_per_transport(drawn: Drawn) -> None:
    by_stem = {drawing.stem: drawing for drawing in drawn("a sweep")}
    times, shares = by_stem["sweep-files-time"], by_stem["sweep-files-bytes"]
    assert [row[6] for row in times.rows if row[3:5] == ("1 MB", "mptcp")] == [0.0, 0.5, 1.0, 5.0, 20.0]
    assert len(times.rows) == 5 * len(SIZES) * 3
    assert {row[7] for row in times.rows} == {3}
    assert all(row[9] <= row[8] <= row[10] for row in times.rows)
    assert {row[4] for row in shares.rows} == {"mptcp"}
    for loss in (0.0, 20.0):
        assert sum(row[8] for row in shares.rows if row[6] == loss) == pytest.approx(1.0)
    assert not any(stem.startswith("sweep") for stem in (d.stem for d in drawn("two links")))
