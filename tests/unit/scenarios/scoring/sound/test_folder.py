"""Scores that read files of the cell's folder."""

from collections.abc import Callable

from mplab.analysis.record.run import read_run
from mplab.analysis.scores.plugins import load
from mplab.analysis.scores.scoring import score_cell
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import Synthetic

BODY = (
    'from mplab.analysis.metric import Metric, Value\nMETRICS = (Metric("m", "M", "bytes", "lower"),)\n'
    "def score(o, t, folder):\n    return [Value('m', (folder / 'kept.bin').stat().st_size)]\n"
)


def test_a_score_is_given_the_folder_of_its_cell(synthetic: Callable[..., Synthetic], foreign: Foreign) -> None:
    cell = read_run(synthetic(repetitions=1).build()).cells[0]
    foreign.scenario("reader", BODY)
    plugin = load("reader")
    missing = score_cell(cell, plugin)
    assert missing.problem is not None
    assert "kept.bin" in missing.problem.message
    assert cell.directory is not None
    (cell.directory / "kept.bin").write_bytes(b"12345")
    assert [value.value for value in score_cell(cell, plugin).values] == [5.0]
