"""How the report shows cells with several values: cells × repetitions, never as independent values."""

from collections.abc import Callable

import pytest

from mplab.analysis.metric import Metric, Value
from mplab.analysis.record.run import read_run
from mplab.analysis.report.data import STATISTICS_COLUMNS, VALUES_COLUMNS, tables
from mplab.analysis.report.view import metric_tables
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.statistics.summaries import Analysis, summarise
from tests.unit.analysis.synthetic import MPTCP, WIFI, Synthetic

TIME = Metric("time", "Time", "s", "lower", headline=True)


@pytest.fixture
def analysis(synthetic: Callable[..., Synthetic]) -> Analysis:
    """Three cells of each transport, with repetitions 1, 2 and 4 (the third has failed)."""
    run = read_run(synthetic(repetitions=3, transports=(WIFI, MPTCP)).build())
    scores = [
        CellScores(
            cell.id, tuple(Value("time", float(cell.spec.repetition + repeat), repeat=repeat) for repeat in (1, 2, 4))
        )
        for cell in run.cells
        if cell.spec is not None
    ]
    return Analysis(run, tuple(summarise(run, {"files": (TIME,)}, scores)))


def test_the_page_counts_cells_and_has_the_mean_of_all_values_apart(analysis: Analysis) -> None:
    (table,) = metric_tables(analysis, {})
    assert [row.n.replace("\u00a0", " ") for row in table.rows] == ["3 × 3", "3 × 3"]
    assert [(row.cells, row.values) for row in table.pooled] == [("3", "9"), ("3", "9")]
    assert table.pooled[0].mean.startswith("4.33")
    assert analysis.groups[0].contrasts[0].pairs == 3, "repetitions do not make more blocks"


def test_the_files_have_every_value_with_its_number(analysis: Analysis) -> None:
    files = tables(analysis, ())
    rows = [dict(zip(VALUES_COLUMNS, row, strict=True)) for row in files["values"][1]]
    assert [row["repeat"] for row in rows[:3]] == [1, 2, 4]
    assert len(rows) == 18
    first = dict(zip(STATISTICS_COLUMNS, files["statistics"][1][0], strict=True))
    assert (first["cells"], first["n"], first["values"]) == (3, 3, 9)
    assert first["pooled_mean"] == pytest.approx(13 / 3)
    assert first["pooled_mean_low"] < first["pooled_mean"] < first["pooled_mean_high"]  # type: ignore[operator]
    assert first["median"] == 4.0
