"""Figures of other distributions: drawn as mplab's own; a broken one does no harm."""

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from mplab.analysis.errors import FigureError
from mplab.analysis.figures.catalog import catalog, figures
from mplab.analysis.pipeline import analyze
from mplab.cli.main import app
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import Synthetic, summary_json

OF_RUN = """
from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import Canvas, Drawing


def draw(analysis):
    with Canvas("Cells", 2.0) as canvas:
        canvas.facets(1)[0].plot([0, len(analysis.run.cells)])
        svg = canvas.svg("foreign")
    yield Drawing("foreign", "timeline", "Number of cells", "A line.", svg, ("cells",), [(len(analysis.run.cells),)])


FIGURE = RunFigure(order=1, title="Number of cells", draw=draw)
"""
OF_TRACES = """
import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=1,
    shape=Cdf(
        title="Packets of connections",
        paper="",
        axis=Axis("Packets", ""),
        share="Share of connections",
        caption="A line.",
        values=lambda traces: traces.pooled("connections", pl.col("bytes_up").cast(pl.Float64).alias("value")),
        nothing="no connection",
    ),
)
"""
FAILS = OF_RUN.replace('    with Canvas("Cells", 2.0)', '    1 / 0\n    with Canvas("Cells", 2.0)')


def test_a_foreign_figure_is_on_the_page(synthetic: Callable[..., Synthetic], foreign: Foreign) -> None:
    foreign.figure("cell_count", OF_RUN)
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    analyze(run)
    assert summary_json(run)["problems"] == []
    assert (run / "report" / "figures" / "foreign.svg").is_file()
    assert "Number of cells" in (run / "report" / "index.html").read_text()
    assert [named.name for named in catalog().of_run if named.origin] == ["cell-count"]


BROKEN = {
    "fails": (FAILS, "figure fails cannot be drawn: ZeroDivisionError: division by zero"),
    "imports": ("import no_such_module", "(of imports 1.0) cannot be imported: ModuleNotFoundError: No module named"),
    "syntax": ("def draw(", "(of syntax 1.0) cannot be imported: SyntaxError"),
    "number": ("FIGURE = 3", "(of number 1.0): FIGURE is neither a RunFigure nor a TraceFigure"),
    "empty": ("", "(of empty 1.0) has no FIGURE"),
    "columns": (
        OF_TRACES.replace("order=1,", "order=1, in_report=True,").replace('"connections"', '"nothing"'),
        "figure columns cannot be drawn: KeyError: 'nothing'",
    ),
}


def test_foreign_figures_that_are_broken_are_problems_of_the_report(
    synthetic: Callable[..., Synthetic], foreign: Foreign
) -> None:
    for name, (text, _) in BROKEN.items():
        foreign.figure(name, text)
    foreign.register("mplab.figures", "lost", "no_such_package")
    run = synthetic(repetitions=1, labels=["1 MB"]).build()
    analyze(run)
    problems = summary_json(run)["problems"]
    assert {problem["cell"] for problem in problems} == {"report"}
    messages = {problem["message"].split()[1].rstrip(":"): problem["message"] for problem in problems}
    expected = {name: words for name, (_, words) in BROKEN.items()}
    expected["lost"] = "no_such_package (of lost 1.0) cannot be imported: ModuleNotFoundError"
    assert set(messages) == set(expected)
    assert [name for name, words in expected.items() if words not in messages[name]] == []
    assert {"gain.svg", "timeline.svg"} <= {path.name for path in (run / "report" / "figures").iterdir()}


def test_a_foreign_figure_is_listed_with_its_distribution_and_drawn_by_name(
    synthetic: Callable[..., Synthetic], foreign: Foreign
) -> None:
    runner = CliRunner()
    assert "origin" not in runner.invoke(app, ["figures", "--list"]).stdout
    foreign.figure("packet_count", OF_TRACES)
    foreign.figure("broken", "import no_such_module")
    foreign.figure("failing", OF_TRACES.replace('"connections"', '"nothing"'))
    run = synthetic(repetitions=1).build()
    listed = runner.invoke(app, ["figures", "--list"])
    assert "packet_count 1.0" in listed.stdout
    assert "figure broken: " in listed.stderr
    as_json = json.loads(runner.invoke(app, ["figures", "--list", "--json"]).stdout)
    assert {figure["name"]: figure["origin"] for figure in as_json if figure["origin"]} == {
        "packet-count": "packet_count 1.0",
        "failing": "failing 1.0",
    }
    drawn = runner.invoke(app, ["figures", str(run), "-f", "packet-count", "-f", "failing"])
    assert drawn.exit_code == 0, drawn.output
    assert (run / "figures" / "packet-count.svg").is_file()
    assert "failing is left out: KeyError: 'nothing'" in drawn.stderr
    with pytest.raises(FigureError, match=r"figure broken: .* cannot be imported"):
        figures(["broken"])


def test_the_products_own_figures_are_registered_by_the_same_group() -> None:
    registered = catalog()
    assert [named.name for named in registered.of_run][:3] == ["gain", "sweep", "cdf"]
    assert len(registered.of_run) == 9
    assert registered.unusable == {}
    origins = [*(figure.origin for figure in registered.of_run), *(figure.origin for figure in registered.of_traces)]
    assert set(origins) == {""}
