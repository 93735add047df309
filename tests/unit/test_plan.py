"""The plan: randomised complete blocks, the same for the same file on every machine."""

from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mplab.base.errors import LabNotReadyError
from mplab.format.experiment import CELL_OVERHEAD_S, FACTORS, Cells, Factor, Matrix, Tolerance
from mplab.format.link import LinkCondition
from mplab.format.path import PathCondition
from mplab.format.plan import Plan
from mplab.format.record import json_of
from mplab.run.blocks import EstimateTracker, cell_seed, make_plan
from mplab.userfiles.experiments.experiment import Experiment, ScenarioUse, TransportUse
from mplab.userfiles.experiments.transport import SocketsFile
from mplab.userfiles.labs.lab import LabFile
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse


class Parameters(BaseModel):
    size: int = 1


class Options(BaseModel):
    primary: str = "wifi"


def transport(label: str, options: BaseModel | None = None) -> TransportUse:
    return TransportUse(label, label.partition("-")[0], options, "#000000", "o", label)


BENCH = LabFile.model_validate({"mplab": 1, "name": "bench", "phones": {"one": {"driver": "virtual"}}})


def experiment(
    *, scenarios: int = 2, transports: int = 3, links: int = 2, repetitions: int = 3, seed: int = 1
) -> Experiment:
    path = PathCondition.of(7040.0, 2020.0, 50.0)
    return Experiment(
        path=Path("example.yaml"),
        source=b"",
        name="example",
        title="Example",
        seed=seed,
        repetitions=repetitions,
        lab=VIRTUAL,
        transports=tuple(transport(f"t{n}", Options()) for n in range(transports)),
        links=tuple(LinkCondition(f"l{n}", "", "", path, path) for n in range(links)),
        scenarios=tuple(ScenarioUse(f"s{n}", f"s{n}", Parameters(), 60.0, 10.0 * (n + 1)) for n in range(scenarios)),
    )


sizes = st.fixed_dictionaries(
    {
        "scenarios": st.integers(1, 4),
        "transports": st.integers(1, 4),
        "links": st.integers(1, 3),
        "repetitions": st.integers(1, 5),
        "seed": st.integers(0, 2**32 - 1),
    }
)


@given(sizes)
def test_every_block_holds_every_combination_once(size: dict[str, int]) -> None:
    plan = make_plan(experiment(**size))
    seen = Counter((cell.block, cell.scenario, cell.transport, cell.link) for cell in plan.cells)
    assert set(seen.values()) == {1}
    assert len(seen) == size["scenarios"] * size["transports"] * size["links"] * size["repetitions"]
    assert [cell.block for cell in plan.cells] == sorted(cell.block for cell in plan.cells)
    assert all(cell.repetition == cell.block for cell in plan.cells)


@given(sizes)
def test_the_same_experiment_gives_the_same_plan(size: dict[str, int]) -> None:
    assert make_plan(experiment(**size)) == make_plan(experiment(**size))


@given(sizes)
def test_one_more_repetition_changes_no_earlier_block(size: dict[str, int]) -> None:
    shorter = make_plan(experiment(**size)).cells
    longer = make_plan(experiment(**{**size, "repetitions": size["repetitions"] + 1})).cells
    assert longer[: len(shorter)] == shorter


@given(sizes)
def test_transports_are_compared_like_for_like(size: dict[str, int]) -> None:
    seeds: dict[tuple[int, str, str], set[int]] = {}
    for cell in make_plan(experiment(**size)).cells:
        seeds.setdefault((cell.block, cell.scenario, cell.link), set()).add(cell.seed)
    assert all(len(cell_seeds) == 1 for cell_seeds in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)


def test_another_seed_gives_another_order_and_other_cell_seeds() -> None:
    first, second = make_plan(experiment(seed=1)).cells, make_plan(experiment(seed=2)).cells
    assert [cell.id[5:] for cell in first] != [cell.id[5:] for cell in second]
    assert not {cell.seed for cell in first} & {cell.seed for cell in second}


def test_blocks_differ_in_order() -> None:
    cells = make_plan(experiment(scenarios=4)).cells
    orders = {tuple((c.scenario, c.transport, c.link) for c in cells if c.block == block) for block in (1, 2, 3)}
    assert len(orders) == 3


def test_order_and_seeds_are_those_of_earlier_versions() -> None:
    plan = make_plan(experiment(scenarios=1, transports=2, links=1, repetitions=2))
    order = [(cell.transport, cell.repetition) for cell in plan.cells]
    assert order == [("t1", 1), ("t0", 1), ("t1", 2), ("t0", 2)]
    assert cell_seed(1, "web", "baseline", 1) == 4_148_889_824
    assert plan.cells[0].hash == "f1c8d9cde83a7c45d01c58129affa5a99329c1764f842586312d469719b5f831"


def test_ids_count_from_one_with_four_digits_or_more() -> None:
    assert make_plan(experiment()).cells[6].id.startswith("0007-")
    many = make_plan(experiment(scenarios=4, transports=3, links=1, repetitions=1000)).cells
    assert (many[0].id[:6], many[-1].id[:6]) == ("00001-", "12000-")
    assert len({cell.id for cell in many}) == len(many)


def digest(changed: Experiment) -> str:
    return make_plan(changed).cells[0].hash


ONE = experiment(scenarios=1, transports=1, links=1, repetitions=1)


@pytest.mark.parametrize(
    "change",
    [
        {"scenarios": (replace(ONE.scenarios[0], parameters=Parameters(size=2)),)},
        {"scenarios": (replace(ONE.scenarios[0], name="other"),)},
        {"transports": (replace(ONE.transports[0], options=Options(primary="lte")),)},
        {"transports": (replace(ONE.transports[0], options=None),)},
        {"links": (replace(ONE.links[0], lte=PathCondition.of(7040.0, 2020.0, 51.0)),)},
        {"links": (replace(ONE.links[0], wifi=PathCondition.of(None, 2020.0, 50.0)),)},
        {"links": (replace(ONE.links[0], core_rtt_ms=20.0),)},
        {"tolerance": Tolerance(10.0, 11.0)},
        {"congestion_control": "bbr"},
        {"receive_buffer_bytes": 65536},
        {
            "transports": (
                replace(ONE.transports[0], sockets=SocketsFile(congestion_control="reno", receive_buffer=None)),
            )
        },
        {"capture": "payload"},
        {"lab": LabUse(BENCH, phone="one")},
        {"seed": 2},
    ],
)
def test_the_hash_changes_with_what_determines_the_cell(change: dict[str, Any]) -> None:
    assert digest(replace(ONE, **change)) != digest(ONE)


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another title"},
        {"repetitions": 9},
        {"retries": 5},
        {"cell_timeout_s": 500.0},
        {"links": (replace(ONE.links[0], title="Another", source="elsewhere"),)},
        {"transports": (replace(ONE.transports[0], colour="#ffffff", marker="x", title="Another"),)},
    ],
)
def test_the_hash_stays_with_what_does_not(change: dict[str, Any]) -> None:
    assert digest(replace(ONE, **change)) == digest(ONE)


def test_skipped_transports_are_left_out_with_the_reason() -> None:
    both = (transport("mptcp"), transport("mptcp-lte"), transport("sptcp-wifi"))
    requested = replace(experiment(), transports=both)
    plan = make_plan(requested, skipped={"mptcp": "no net.mptcp in this kernel", "quic": "not asked for"})
    assert {cell.transport for cell in plan.cells} == {"sptcp-wifi"}
    assert [asdict(item) for item in plan.skipped] == [
        {"transport": "mptcp", "reason": "no net.mptcp in this kernel"},
        {"transport": "mptcp-lte", "reason": "no net.mptcp in this kernel"},
    ]
    assert plan.cells[0].index == 1
    only_one = make_plan(requested, skipped={"mptcp-lte": "no second path"})
    assert {cell.transport for cell in only_one.cells} == {"mptcp", "sptcp-wifi"}


def test_nothing_left_to_run() -> None:
    with pytest.raises(LabNotReadyError, match=r"no transport of experiment 'example' can run .* t0: no kernel"):
        make_plan(experiment(transports=1), skipped={"t0": "no kernel"})


def test_the_estimate_adds_up_scenarios_and_overhead() -> None:
    plan = make_plan(experiment(scenarios=2, transports=3, links=2, repetitions=4))
    assert plan.estimate_s == pytest.approx(4 * 3 * 2 * (10.0 + 20.0 + 2 * CELL_OVERHEAD_S))


def test_the_plan_as_json() -> None:
    content: Any = json_of(make_plan(ONE))
    assert set(content) == {"cells", "chosen", "estimate_s", "skipped"}
    assert list(content["cells"][0]) == [
        *("id", "index", "block", "scenario", "transport", "link", "repetition", "seed", "hash"),
    ]


class TestEstimate:
    plan: Plan = make_plan(experiment(scenarios=2, transports=2, links=1, repetitions=4))

    def cells(self, scenario: str, label: str) -> list[str]:
        return [cell.id for cell in self.plan.cells if (cell.scenario, cell.transport) == (scenario, label)]

    def tracker(self) -> EstimateTracker:
        return EstimateTracker(self.plan.cells, self.plan.estimate_s)

    def test_begins_with_the_plan(self) -> None:
        assert self.tracker().remaining_s() == pytest.approx(self.plan.estimate_s)

    def test_finished_cells_tell_of_those_of_their_kind(self) -> None:
        tracker = self.tracker()
        for scenario, label, duration_s in (("s0", "t0", 1.0), ("s0", "t1", 2.0), ("s1", "t0", 3.0), ("s1", "t1", 4.0)):
            tracker.finished(self.cells(scenario, label)[0], duration_s)
        assert tracker.remaining_s() == pytest.approx(3 * (1.0 + 2.0 + 3.0 + 4.0))

    def test_the_median_is_not_moved_by_one_slow_cell(self) -> None:
        tracker = EstimateTracker([c for c in self.plan.cells if c.id in self.cells("s0", "t0")], 400.0)
        for cell, duration_s in zip(self.cells("s0", "t0"), (5.0, 1000.0, 6.0), strict=False):
            tracker.finished(cell, duration_s)
        assert tracker.remaining_s() == 6.0

    def test_an_unseen_transport_is_taken_like_the_others_of_its_scenario(self) -> None:
        tracker = self.tracker()
        for scenario in ("s0", "s1"):
            tracker.finished(self.cells(scenario, "t0")[0], 7.0)
        assert tracker.remaining_s() == pytest.approx(7.0 * 14)

    def test_nothing_remains_at_the_end_until_a_cell_is_reopened(self) -> None:
        tracker = self.tracker()
        for cell in self.plan.cells:
            tracker.finished(cell.id, 9.0)
        tracker.finished("unknown", 1.0)
        tracker.reopened("unknown")
        assert tracker.remaining_s() == 0.0
        tracker.reopened(self.plan.cells[0].id)
        assert tracker.remaining_s() == 9.0


def some(**given: Any) -> Plan:
    return make_plan(replace(experiment(), **given))


def combinations(plan: Plan) -> set[tuple[str, str, str]]:
    return {(cell.scenario, cell.transport, cell.link) for cell in plan.cells}


def test_a_matrix_leaves_combinations_out_of_every_block() -> None:
    everything = combinations(make_plan(experiment()))
    without = Matrix(exclude=(Cells(scenario=("s1",), link=("l0",)), Cells(transport=("t[12]",), link=("l1",))))
    left = {
        combination
        for combination in everything
        if combination[::2] != ("s1", "l0") and (combination[1] == "t0" or combination[2] == "l0")
    }
    plan = some(matrix=without)
    assert combinations(plan) == left
    assert Counter(cell.block for cell in plan.cells) == dict.fromkeys((1, 2, 3), len(left))
    within = Matrix(include=(Cells(link=("l0",)), Cells(scenario=("s0",), transport=("t*",), link=("l1",))))
    assert combinations(some(matrix=within)) == {
        combination for combination in everything if combination[2] == "l0" or combination[0] == "s0"
    }
    both = Matrix(include=(Cells(link=("l0",)),), exclude=(Cells(transport=("t0",)),))
    assert combinations(some(matrix=both)) == {
        combination for combination in everything if combination[2] == "l0" and combination[1] != "t0"
    }


def test_a_matrix_without_a_cell_that_this_lab_can_run() -> None:
    requested = replace(experiment(), matrix=Matrix(include=(Cells(transport=("t0",)),)))
    with pytest.raises(LabNotReadyError, match=r"no cell that can run in this lab without t0 \(no kernel\)"):
        make_plan(requested, skipped={"t0": "no kernel"})


orders = st.permutations(FACTORS).flatmap(lambda factors: st.integers(1, 3).map(lambda most: factors[:most]))


@given(sizes, orders)
def test_what_is_grouped_is_switched_least(size: dict[str, int], factors: list[Factor]) -> None:
    requested = experiment(**size)
    plan = make_plan(replace(requested, grouped_by=tuple(factors)))
    assert combinations(plan) == combinations(make_plan(requested))
    for block in range(1, size["repetitions"] + 1):
        levels = [tuple(getattr(cell, factor) for factor in factors) for cell in plan.cells if cell.block == block]
        for depth in range(1, len(factors) + 1):
            outer = [level[:depth] for level in levels]
            switches = sum(before != after for before, after in pairwise(outer))
            assert switches == len(set(outer)) - 1


def test_grouping_keeps_chance() -> None:
    firsts = {make_plan(replace(experiment(seed=seed), grouped_by=("link",))).cells[0].link for seed in range(20)}
    assert firsts == {"l0", "l1"}
