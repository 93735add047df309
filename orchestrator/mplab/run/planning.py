"""Plan a run: read an experiment file, list the cells of a run, and estimate their time from earlier runs."""

import json
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from mplab.base import congestion
from mplab.base.deferred import deferred
from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.places import EXPERIMENTS, by_name
from mplab.base.suggest import did_you_mean, unknown
from mplab.drivers.transport import DRIVERS
from mplab.format.events import read_events
from mplab.format.plan import CellSpec, Plan
from mplab.format.record import json_of
from mplab.format.runevents import CellFinished, CellStarted, RunEvent, RunPlanned, RunStarted
from mplab.lab.catalog import catalog
from mplab.lab.driver import missing_on_phone
from mplab.run.blocks import make_plan
from mplab.run.run_directory import RUNS, RunDirectory
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.labs.labuse import find_lab, use_lab
from mplab.userfiles.strict.check import raise_lines
from mplab.userfiles.strict.yaml import load_yaml


@dataclass(frozen=True)
class PlannedRun:
    """An experiment, and the cells that a run of it would have on this host.

    Attributes:
        experiment: the experiment, with the options of `plan` applied.
        plan: cells in order, their estimated time, and the transports that this lab cannot run.
        runs: folder that gets the run directory.
        learnt: number of earlier cells whose times the estimate uses; 0: it uses only the scenarios' own estimates.
    """

    experiment: Experiment
    plan: Plan
    runs: Path
    learnt: int = 0

    @property
    def cells(self) -> tuple[CellSpec, ...]:
        """Return the cells in order."""
        return self.plan.cells

    @property
    def estimate_s(self) -> float:
        """Return the estimated time of all cells, in seconds."""
        return self.plan.estimate_s


def plan(
    file: Path | str,
    *,
    lab: Path | str = "",
    phone: str = "",
    variables: Mapping[str, object] | None = None,
    repetitions: int | None = None,
    runs: Path | str = RUNS,
) -> PlannedRun:
    """Read an experiment file and plan its cells. Nothing is run or written.

    Args:
        file: experiment file; its name, if it comes with mplab (``demo``); or ``experiment.yaml`` of a run directory,
            which is planned in that run's lab.
        lab: lab file, or ``virtual``; "": the lab that the experiment names.
        phone: name of a phone in the lab file; "": its only phone.
        variables: values of variables of the experiment file, by name.
        repetitions: number of repetitions, instead of the file's.
        runs: folder of runs. Earlier runs in it give the estimate; `execute` writes into it.

    Raises:
        InputError: a file is wrong, or a budget or stop rule names a metric that no scenario has.
        LabNotReadyError: no transport of the experiment can run here.
    """
    path = find_experiment(Path(file))
    if repetitions is None:
        return plan_experiment(load(path, str(lab), phone, variables), Path(runs))
    with TemporaryDirectory(prefix="mplab-plan-") as folder:
        changed = _with_repetitions(path, repetitions, Path(folder))
        experiment = load(changed, str(lab), phone, variables)
    return plan_experiment(replace(experiment, path=path), Path(runs))


def only_cells(planned: PlannedRun, names: Collection[str]) -> PlannedRun:
    """Return a plan of only the cells that `names` names, by id or number, in the order of the plan.

    The cells keep their ids, seeds and hashes. The plan records that they were chosen, unless they are all cells.

    Raises:
        InputError: a name is no cell of the plan.
    """
    known = {name: cell.id for cell in planned.cells for name in (cell.id, str(cell.index))}
    for name in names:
        if name not in known:
            raise InputError(
                f"{planned.experiment.path}: no cell of the plan is called {name!r}.{did_you_mean(name, known)} "
                "'mplab plan FILE' lists the cells"
            )
    chosen = {known[name] for name in names}
    cells = tuple(cell for cell in planned.cells if cell.id in chosen)
    estimate_s = planned.estimate_s * len(cells) / len(planned.cells)
    chosen_some = planned.plan.chosen or len(cells) < len(planned.cells)
    return replace(planned, plan=replace(planned.plan, cells=cells, estimate_s=estimate_s, chosen=chosen_some))


def find_experiment(file: Path) -> Path:
    """Return the path of an experiment file that a user names by its path or by its name (`places.by_name`).

    Raises:
        InputError: a name without ``.yaml`` is neither a file nor the name of an experiment that comes with mplab.
    """
    found = by_name(file, EXPERIMENTS)
    if len(found.parts) == 1 and not found.suffix and not found.exists():
        raise InputError(unknown("experiment", str(file), (path.stem for path in EXPERIMENTS.glob("*.yaml"))))
    return found


def _with_repetitions(file: Path, repetitions: int, folder: Path) -> Path:
    """Write a file in `folder` that extends `file` and sets `repetitions`. Return its path. Raises InputError."""
    content = load_yaml(file).data
    name = content.get("name") if isinstance(content, Mapping) else None
    if not isinstance(name, str):
        return file  # it is refused when it is read
    lines = {"mplab": 1, "name": name, "title": content.get("title", name), "extends": str(file.resolve())}
    changed = folder / file.name
    text = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in lines.items())
    changed.write_text(f"{text}repetitions: {repetitions}\n", encoding="utf-8")
    return changed


def plan_experiment(experiment: Experiment, runs: Path) -> PlannedRun:
    """Plan the cells of an experiment that has been read. Raises the errors of `plan`."""
    if experiment.budgets or experiment.claims or experiment.ending.interval is not None:
        with deferred("slow to import, and many experiments do not need it"):
            from mplab.run.hostside.metrics import check_metrics
        check_metrics(experiment)
    plan_made, learnt = learn(plan_of(experiment), experiment, runs)
    return PlannedRun(experiment, plan_made, runs, learnt)


def load(file: Path, lab: str = "", phone: str = "", variables: Mapping[str, object] | None = None) -> Experiment:
    """Read an experiment file, for a run in the lab that the file names, or in another lab.

    The experiment file of a run directory is read with that run's lab and variables.

    Args:
        file: the experiment file.
        lab: path of a lab file, or ``virtual``; "": the lab that the experiment file names.
        phone: name of a phone in the lab file.
        variables: values of the experiment's variables.

    Raises:
        InputError: one of the files is wrong.
    """
    directory = RunDirectory(file.parent)
    use = find_lab(lab, Path(), phone) if lab else None
    if file.name == directory.experiment_file.name and directory.manifest_file.is_file():
        if use is None and phone:
            use = use_lab(directory.lab_file, phone)
        return directory.load_experiment(catalog(), lab=use, given=variables)
    return load_experiment(file, catalog=catalog(), lab=use, phone=phone, given=variables)


def plan_of(experiment: Experiment) -> Plan:
    """Plan the cells of an experiment on this host.

    Raises:
        InputError: mpflex refuses one of the experiment's policy files.
        LabNotReadyError: no cell of the experiment can run here.
    """
    raise_lines([text for use in experiment.transports for text in DRIVERS[use.name].problems_in(use.files)])
    names = {use.name for use in experiment.transports}
    real = experiment.lab.real  # a real phone has another kernel than this host
    if not real:
        _check_congestion_control(experiment)
    reasons = {
        name: ("" if real else DRIVERS[name].missing_reason()) or missing_on_phone(experiment.lab, name)
        for name in sorted(names)
    }
    return make_plan(experiment, skipped={name: reason for name, reason in reasons.items() if reason})


def _check_congestion_control(experiment: Experiment) -> None:
    """Raise LabNotReadyError if the kernel of this host lacks a congestion control of the experiment."""
    labels: dict[str, list[str]] = defaultdict(list)
    for use in experiment.transports:
        labels[experiment.sockets(use.label).congestion_control].append(use.label)
    with suppress(OSError):  # the kernel may hide its settings
        for name, users in labels.items():
            if (problem := congestion.missing(name)) is not None:
                raise LabNotReadyError(
                    f"congestion_control of {', '.join(users)}: {problem.text}. To change this: {problem.remedy}"
                )


_MOST_RUNS = 10
_ID = "[0-9a-f]" * 6


def learn(plan: Plan, experiment: Experiment, runs: Path) -> tuple[Plan, int]:
    """Estimate the time of a plan from the durations of cells of earlier runs.

    A cell is expected to take the median time of earlier cells with its scenario, transport and link. If there are
    none, earlier cells with its scenario and transport count; without these, the scenario's own estimate. Cells whose
    scenario had other parameters do not count.

    Args:
        plan: the plan of the experiment.
        experiment: the experiment that is planned.
        runs: folder of runs; the ten newest runs of this experiment in it are read.

    Returns:
        The plan with this estimate, and the number of earlier cells used; if it is 0, the plan is unchanged.
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
        durations = exactly.get((cell.scenario, cell.transport, cell.link)) or roughly.get(
            (cell.scenario, cell.transport)
        )
        planned_s = experiment.scenario(cell.scenario).estimate_s + experiment.overhead_s
        return statistics.median(durations) if durations else planned_s

    return (replace(plan, estimate_s=sum(map(expected_s, plan.cells))), count) if count else (plan, 0)


def _finished(folder: Path, uses: Mapping[str, Mapping[str, JsonValue]]) -> Iterator[tuple[CellSpec, float]]:
    """Yield each finished cell of the run in `folder`, and the seconds that all its attempts took.

    Cells whose scenario had other parameters than in `uses` are left out.
    """
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
