"""From scores to summaries: averages, comparisons and their order."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from mplab.analysis.metric import Metric, Value, label_sort_key
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.scores.shares import interface_shares
from mplab.analysis.statistics.summaries import Group, summarise
from tests.unit.analysis.synthetic import LTE, MPTCP, WIFI, Synthetic

TIME = Metric("time", "Time", "s", "lower", headline=True)
RATE = Metric("rate", "Rate", "Mbit/s", "higher")
Builder = Callable[..., Synthetic]


def scores(run: Run, by_transport: Mapping[str, list[float]], metric: str = "time") -> list[CellScores]:
    """Return scores with the r-th value of a transport for its cell of repetition r."""
    results = []
    for cell in run.cells:
        assert cell.spec is not None
        value = by_transport[cell.spec.transport][cell.spec.repetition - 1]
        results.append(CellScores(cell.id, (Value(metric, value),)))
    return results


def group_of(run: Run, by_transport: Mapping[str, list[float]], metric: Metric = TIME) -> Group:
    (group,) = summarise(run, {"files": (metric,)}, scores(run, by_transport, metric.name))
    return group


def test_the_gain_is_against_the_better_single_path(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=3).build())
    values = {"sptcp-wifi": [3.0, 4.0, 5.0], "sptcp-lte": [2.0, 2.0, 2.0], "mptcp": [1.0, 1.5, 9.0]}
    group = group_of(run, values)
    assert (group.best, group.baseline) == ("mptcp", "sptcp-lte")
    multipath = group.of("mptcp")
    assert multipath is not None
    assert multipath.comparison is not None
    assert multipath.comparison.gain == pytest.approx(0.25)
    assert multipath.comparison.difference == pytest.approx(-0.5)
    assert multipath.comparison.cliffs_delta == pytest.approx(-1 / 3)
    assert multipath.comparison.magnitude == "medium"
    wifi, lte = group.of("sptcp-wifi"), group.of("sptcp-lte")
    assert wifi is not None
    assert lte is not None
    assert wifi.comparison is not None
    assert wifi.comparison.gain is None
    assert lte.comparison is None


def test_where_more_is_better(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=3).build())
    values = {"sptcp-wifi": [4.0] * 3, "sptcp-lte": [8.0] * 3, "mptcp": [10.0] * 3}
    group = group_of(run, values, RATE)
    assert (group.best, group.baseline) == ("mptcp", "sptcp-lte")
    multipath = group.of("mptcp")
    assert multipath is not None
    assert multipath.comparison is not None
    assert multipath.comparison.gain == pytest.approx(0.25)


def test_only_ok_cells_count_and_lacking_values_show(synthetic: Builder) -> None:
    run = read_run(
        synthetic(
            repetitions=4, outcome=lambda c: "invalid" if c["repetition"] == 4 else "ok", transports=(WIFI,)
        ).build()
    )
    values = scores(run, {"sptcp-wifi": [1.0, 2.0, 3.0, 1000.0]})
    values[0] = CellScores(values[0].cell, ())
    (group,) = summarise(run, {"files": (TIME,)}, values)
    assert group.series[0].numbers == [2.0, 3.0]
    assert group.series[0].cells == 3


def test_a_cell_with_several_values_counts_once_by_their_median(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=1, transports=(MPTCP,)).build())
    values = tuple(Value("time", value) for value in (1.0, 2.0, 10.0))
    (group,) = summarise(run, {"files": (TIME,)}, [CellScores(run.cells[0].id, values)])
    assert group.series[0].numbers == [2.0]
    assert group.baseline is None


def test_all_values_of_a_cell_are_kept_with_their_repetitions(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=3, transports=(MPTCP,)).build())
    several = [
        CellScores(cell.id, tuple(Value("time", 1.0 + repeat, repeat=repeat) for repeat in (4, 1, 2)))
        for cell in run.cells
    ]
    (group,) = summarise(run, {"files": (TIME,)}, several)
    series = group.series[0]
    assert series.values[0].each == ((1, 2.0), (2, 3.0), (4, 5.0))
    assert series.numbers == [3.0] * 3, "a cell counts once"
    assert (len(series.values), series.count) == (3, 9)
    assert series.pooled is not None
    assert series.pooled.mean.value == pytest.approx(10 / 3)
    assert series.pooled.effective == 9, "all spread is inside the cells: their values are as good as independent"


def test_one_value_per_cell_is_not_pooled(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=3, transports=(MPTCP,)).build())
    assert group_of(run, {"mptcp": [1.0, 2.0, 3.0]}).series[0].pooled is None


def test_the_order_of_cells_does_not_matter(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=5).build())
    rng = np.random.default_rng(1)
    values = scores(run, {t["label"]: [float(v) for v in rng.uniform(1, 2, 5)] for t in (WIFI, LTE, MPTCP)})
    metrics = {"files": (TIME,)}
    assert summarise(run, metrics, values) == summarise(run, metrics, values[::-1])


def test_headlines_come_first_and_sizes_in_their_order(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=1, transports=(WIFI,)).build())
    sized = Metric("time", "Time", "s", "lower", ("size",), headline=True)
    values = [Value("rate", 1.0), *(Value("time", 1.0, {"size": s}) for s in ("10 MB", "2 MB", "10 kB"))]
    groups = summarise(run, {"files": (RATE, sized)}, [CellScores(run.cells[0].id, tuple(values))])
    assert [(g.metric.name, g.label_text) for g in groups] == [
        ("time", "10 kB"),
        ("time", "2 MB"),
        ("time", "10 MB"),
        ("rate", ""),
    ]


def test_words_with_numbers_are_sorted_as_people_do() -> None:
    names = ["site-10", "site-2", "1 MB", "news", "20 kB"]
    ordered = sorted(names, key=lambda name: label_sort_key((("k", name),)))
    assert ordered == ["20 kB", "1 MB", "news", "site-2", "site-10"]


def test_shares_are_means_of_the_cells_shares(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=3).build())
    shares = interface_shares(run)
    assert [(s.transport, s.interface) for s in shares] == [
        ("sptcp-wifi", "wlan0"),
        ("sptcp-lte", "rmnet0"),
        ("mptcp", "wlan0"),
        ("mptcp", "rmnet0"),
    ]
    assert shares[0].share == 1.0
    assert shares[2].share + shares[3].share == pytest.approx(1.0)
    assert shares[2].lowest <= shares[2].share <= shares[2].highest
    assert shares[2].cells == 3


def test_shares_leave_out_cells_without_tables(synthetic: Builder) -> None:
    path = synthetic(repetitions=1).build()
    for table in path.glob("cells/*/tables/subflows.parquet"):
        table.unlink()
    assert interface_shares(read_run(path)) == []
