"""Estimate how long cells take, from earlier runs of the experiment."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from mplab.base.errors import InputError
from mplab.format.events import read_events
from mplab.format.plan import CellSpec, Plan
from mplab.format.record import json_of
from mplab.format.runevents import CellFinished, CellStarted, RunEvent, RunPlanned, RunStarted
from mplab.userfiles.experiment import Experiment

_MOST_RUNS = 10
_ID = "[0-9a-f]" * 6


def learn(plan: Plan, experiment: Experiment, runs: Path) -> tuple[Plan, int]:
    """Return the plan with an estimate from earlier runs, and the number of cells used; if 0, the plan is unchanged.

    A cell is expected to take the median time of earlier cells with its scenario, transport and link. If there are
    none, earlier cells with its scenario and transport count; without these, the scenario's own estimate. Cells whose
    scenario had other parameters do not count.

    Args:
        plan: the plan of the experiment.
        experiment: the experiment that is planned.
        runs: folder of runs; the newest runs of this experiment in it are read.
    """
    uses = {use.label: json_of(use.record()) for use in experiment.scenarios}
    exactly: dict[tuple[str, ...], list[float]] = defaultdict(list)
    roughly: dict[tuple[str, ...], list[float]] = defaultdict(list)
    count = 0
    folders = sorted(runs.glob(f"*-{experiment.name}-{_ID}"), key=lambda path: path.name, reverse=True)
    for folder in folders[:_MOST_RUNS]:
        for cell, took_s in _finished(folder, uses):
            exactly[cell.scenario, cell.transport, cell.link].append(took_s)
            roughly[cell.scenario, cell.transport].append(took_s)
            count += 1

    def expected_s(cell: CellSpec) -> float:
        found = exactly.get((cell.scenario, cell.transport, cell.link)) or roughly.get((cell.scenario, cell.transport))
        planned_s = experiment.scenario(cell.scenario).estimate_s + experiment.overhead_s
        return statistics.median(found) if found else planned_s

    return (replace(plan, estimate_s=sum(map(expected_s, plan.cells))), count) if count else (plan, 0)


def _finished(folder: Path, uses: Mapping[str, Mapping[str, JsonValue]]) -> Iterator[tuple[CellSpec, float]]:
    """Yield the cells of a run whose scenarios are unchanged, with the seconds that all their attempts took."""
    with suppress(OSError, ValueError, KeyError, TypeError, InputError):
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        same = {use["label"] for use in manifest["experiment"]["scenarios"] if use == uses.get(use["label"])}
        cells: dict[str, CellSpec] = {}
        begun: dict[str, float] = {}
        for event in read_events(folder / "events.jsonl", RunEvent):
            match event:
                case RunPlanned():
                    cells = {cell.id: cell for cell in event.cells if cell.scenario in same}
                case RunStarted():
                    begun.clear()
                case CellStarted():
                    begun.setdefault(event.cell, event.t)
                case CellFinished() if event.cell in begun and event.cell in cells:
                    yield cells[event.cell], event.t - begun.pop(event.cell)
