"""Run one scenario once, without captures, as an experiment of one cell, and score the cell."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mplab.analysis.pipeline import score_run
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.plugins import load
from mplab.lab.catalog import catalog, programs_of
from mplab.run.hostside import ready
from mplab.run.hostside.beginning import begin, held
from mplab.run.hostside.hosting import run_cells
from mplab.run.planning import PlannedRun, plan_of
from mplab.run.progress import SILENT, RunCallbacks
from mplab.run.run_directory import RunDirectory, new_run_id
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import load_experiment

_BETTER = {"lower": "less", "higher": "more", "neither": ""}


@dataclass(frozen=True)
class Score:
    """One value of a metric of the cell. ``better`` is ``less``, ``more``, or "" if neither direction is better."""

    metric: str
    title: str
    value: float
    unit: str
    better: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Checked:
    """The result of running one scenario once (`check_alone`).

    Attributes:
        scenario: name of the scenario.
        parameters: all parameters of the scenario, defaults included, as an experiment file writes them.
        transport: label of the transport.
        link: name of the link condition.
        outcome: ``ok``, ``invalid`` or ``failed``.
        reasons: why the cell is not ok, or could not be scored.
        warnings: disturbances that did not make the cell invalid.
        scores: values of the scenario's metrics; none if the cell is not ok.
        directory: the cell's directory, with logs and screenshots; the run directory if the cell has none.
    """

    scenario: str
    parameters: Mapping[str, object]
    transport: str
    link: str
    outcome: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    scores: tuple[Score, ...]
    directory: Path

    @property
    def ok(self) -> bool:
        """Return whether the cell was completed as requested and could be scored."""
        return self.outcome == "ok" and not self.reasons

    def to_json(self) -> dict[str, object]:
        """Return the result in the form that ``--json`` prints."""
        return {**asdict(self), "directory": str(self.directory)}


def check_alone(
    name: str,
    parameters: Mapping[str, object],
    *,
    transport: str,
    link: str | Mapping[str, object],
    seed: int,
    folder: Path,
    watch: RunCallbacks = SILENT,
) -> Checked:
    """Run the scenario `name` once, in a virtual lab that is started for it.

    Args:
        name: name of the scenario.
        parameters: parameters of the scenario, as an experiment file writes them.
        transport: name of the transport, with an optional variant: ``mpflex:minrtt``.
        link: a link condition, as an experiment file writes it.
        seed: seed of all random choices.
        folder: folder that gets the run directory.
        watch: functions that are called while the cell runs.

    Raises:
        InputError: a parameter is wrong.
        LabNotReadyError: the scenario needs something that is missing.
        InterruptedRunError: SIGINT or SIGTERM.
    """
    scenario = catalog().scenarios[name]
    experiment = _experiment(name, parameters, transport=transport, link=link, seed=seed)
    ready.check_ready(needs_ui=scenario.needs_ui, further=programs_of(scenario, experiment.scenarios[0].parameters))
    planned = PlannedRun(experiment, plan_of(experiment), folder)
    run_id = new_run_id(experiment.name)
    with held(experiment, RunDirectory(folder / run_id)) as locks:
        directory = begin(planned, run_id=run_id, watch=watch)
        run_cells(directory, experiment, locks, watch=watch)
    return _result(experiment, directory.path)


def _experiment(
    name: str, parameters: Mapping[str, object], *, transport: str, link: str | Mapping[str, object], seed: int
) -> Experiment:
    scenario = catalog().scenarios[name]
    content = {
        "mplab": 1,
        "name": f"check-{name}"[:40],
        "title": f"{scenario.title}, alone",
        "seed": seed,
        "transports": [transport],
        "links": [link],
        "scenarios": [{name: parameters}],
        "capture": "off",
        "retries": 0,
    }
    lines = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in content.items())
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "experiment.yaml"
        file.write_text(lines, encoding="utf-8")
        return load_experiment(file, catalog=catalog())


def _result(experiment: Experiment, directory: Path) -> Checked:

    run = read_run(directory)
    (cell,) = run.cells
    (use,) = experiment.scenarios
    scored = score_run(run) if cell.ok else []
    metrics = {metric.name: metric for metric in load(use.name).metrics}
    problems = tuple(scores_of.problem.message for scores_of in scored if scores_of.problem)
    return Checked(
        scenario=use.name,
        parameters=use.record().parameters,
        transport=experiment.transports[0].label,
        link=experiment.links[0].name,
        outcome=cell.outcome,
        reasons=(*cell.reasons, *problems),
        warnings=cell.record.warnings if cell.record else (),
        scores=tuple(
            Score(
                metric=value.metric,
                title=metrics[value.metric].title,
                value=value.value,
                unit=metrics[value.metric].unit,
                better=_BETTER[metrics[value.metric].better],
                labels=dict(value.labels),
            )
            for scores_of in scored
            for value in scores_of.values
        ),
        directory=cell.directory or directory,
    )
