"""Make the plan: the cells in randomised complete blocks, and an estimate of their duration."""

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from random import Random

from mplab.base.errors import LabNotReadyError
from mplab.format.link import LinkCondition
from mplab.format.plan import CellSpec, Plan, SkippedTransport
from mplab.userfiles.experiments.experiment import Experiment, ScenarioUse, TransportUse

_SMALLEST_INDEX_WIDTH = 4

_Combination = tuple[ScenarioUse, TransportUse, LinkCondition]


def make_plan(experiment: Experiment, *, skipped: Mapping[str, str] | None = None) -> Plan:
    """Return the cells of `experiment` in randomised complete blocks.

    The order depends only on the seed. More repetitions add blocks at the end and change no earlier one.

    Args:
        experiment: the experiment to plan.
        skipped: name or label of a transport that the lab cannot run → reason; transports not in use are ignored.

    Raises:
        LabNotReadyError: every transport is skipped, or no combination is left after skipping.
    """
    reasons = _reasons(experiment.transports, skipped or {})
    transports = [use for use in experiment.transports if use.label not in reasons]
    left_out = tuple(SkippedTransport(label, reason) for label, reason in reasons.items())
    if not transports:
        listed = "; ".join(f"{item.transport}: {item.reason}" for item in left_out)
        raise LabNotReadyError(f"no transport of experiment '{experiment.name}' can run in this lab: {listed}")
    combinations: list[_Combination] = [
        (scenario, transport, link)
        for scenario in experiment.scenarios
        for transport in transports
        for link in experiment.links
        if experiment.matrix.has((scenario.label, transport.label, link.name))
    ]
    if not combinations:
        listed = ", ".join(f"{item.transport} ({item.reason})" for item in left_out)
        raise LabNotReadyError(f"experiment '{experiment.name}' has no cell that can run in this lab without {listed}")
    width = max(_SMALLEST_INDEX_WIDTH, len(str(len(combinations) * experiment.repetitions)))
    rng = Random(experiment.seed)  # noqa: S311 - an order that can be repeated, not a secret
    cells: list[CellSpec] = []
    for repetition in range(1, experiment.repetitions + 1):
        block = list(combinations)
        rng.shuffle(block)
        block = _grouped(block, experiment.grouped_by)
        for scenario, transport, link in block:
            index = f"{len(cells) + 1:0{width}}"
            cells.append(_cell(experiment, (scenario, transport, link), repetition, index))
    per_block_s = sum(scenario.estimate_s + experiment.overhead_s for scenario, _, _ in combinations)
    return Plan(tuple(cells), per_block_s * experiment.repetitions, left_out)


_LABEL: Mapping[str, Callable[[_Combination], str]] = {
    "scenario": lambda combination: combination[0].label,
    "transport": lambda combination: combination[1].label,
    "link": lambda combination: combination[2].name,
}


def _grouped(block: list[_Combination], factors: Iterable[str]) -> list[_Combination]:
    """Sort a block so that cells with the same level of a factor are adjacent; the first factor changes least often.

    The levels of a factor keep the order in which they first occur in the shuffled block.
    """
    ranks = []
    for factor in factors:
        levels = dict.fromkeys(map(_LABEL[factor], block))
        ranks.append((_LABEL[factor], {level: rank for rank, level in enumerate(levels)}))
    return sorted(block, key=lambda combination: [rank[label(combination)] for label, rank in ranks])


def _reasons(transports: Iterable[TransportUse], skipped: Mapping[str, str]) -> dict[str, str]:
    reasons = {}
    for use in transports:
        reason = skipped.get(use.label, skipped.get(use.name))
        if reason is not None:
            reasons[use.label] = reason
    return reasons


def _cell(experiment: Experiment, combination: _Combination, repetition: int, index: str) -> CellSpec:
    scenario, transport, link = combination
    seed = cell_seed(experiment.seed, scenario.label, link.name, repetition)
    return CellSpec(
        id=f"{index}-{scenario.label}-{transport.label}-{link.name}-r{repetition}",
        index=int(index),
        block=repetition,
        scenario=scenario.label,
        transport=transport.label,
        link=link.name,
        repetition=repetition,
        seed=seed,
        hash=_digest(_determinants(experiment, scenario, transport, link, seed)).hex(),
    )


def cell_seed(experiment_seed: int, scenario_label: str, link_name: str, repetition: int) -> int:
    """Return the seed of a cell, 0…2^32-1. Cells that differ only in their transport have the same seed."""
    return int.from_bytes(_digest([experiment_seed, scenario_label, link_name, repetition])[:4], "big")


def _determinants(
    experiment: Experiment, scenario: ScenarioUse, transport: TransportUse, link: LinkCondition, seed: int
) -> dict[str, object]:
    """Return every input that a cell's result may depend on, to be hashed.

    Titles, labels and time limits are left out.
    """
    contents = {**scenario.files, **transport.files}
    files = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    return {
        **({"files": files} if files else {}),
        "scenario": {"name": scenario.name, "parameters": scenario.record().parameters},
        "transport": {"name": transport.name, "options": transport.record().options},
        "link": link.determinants(),
        "lab": experiment.lab.determinants(),
        "seed": seed,
        **experiment.determinants(),
    }


def _digest(value: object) -> bytes:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).digest()


class EstimateTracker:
    """Estimates the time that a run still needs, from the durations of its finished cells.

    A cell that has not finished is expected to take the median time of the finished cells of its scenario and
    transport. If there are none, it is expected to take the median time of its scenario's finished cells; without
    these, the average time of a cell in the plan's estimate.
    """

    def __init__(self, cells: Iterable[CellSpec], estimate_s: float) -> None:
        """Start with the plan's estimate for all `cells` together, in seconds."""
        self._cells = {cell.id: cell for cell in cells}
        self._average_s = estimate_s / len(self._cells) if self._cells else 0.0
        self._open: dict[tuple[str, str], set[str]] = defaultdict(set)
        for cell in self._cells.values():
            self._open[cell.scenario, cell.transport].add(cell.id)
        self._durations_s: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def finished(self, cell_id: str, duration_s: float) -> None:
        """Record that a cell took `duration_s` seconds. Unknown cells are ignored."""
        cell = self._cells.get(cell_id)
        if cell is not None:
            kind = cell.scenario, cell.transport
            self._open[kind].discard(cell_id)
            self._durations_s[kind][cell_id] = duration_s

    def reopened(self, cell_id: str) -> None:
        """Forget the duration of a cell that is run again. Unknown cells are ignored."""
        cell = self._cells.get(cell_id)
        if cell is not None:
            kind = cell.scenario, cell.transport
            self._open[kind].add(cell_id)
            self._durations_s[kind].pop(cell_id, None)

    def expected_s(self, cells: Iterable[CellSpec]) -> float:
        """Return the expected time of `cells` together, in seconds."""
        return sum(self._expected_s((cell.scenario, cell.transport)) for cell in cells)

    def remaining_s(self) -> float:
        """Return the expected time of all cells that have not finished, together, in seconds."""
        return sum(len(ids) * self._expected_s(kind) for kind, ids in self._open.items() if ids)

    def _expected_s(self, kind: tuple[str, str]) -> float:
        own = self._durations_s.get(kind)
        if own:
            return statistics.median(own.values())
        scenario = [
            duration_s
            for (name, _), durations in self._durations_s.items()
            if name == kind[0]
            for duration_s in durations.values()
        ]
        return statistics.median(scenario) if scenario else self._average_s
