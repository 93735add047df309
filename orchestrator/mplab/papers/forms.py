"""Write the campaign files that run the papers' experiments in their quick or full form, in parts."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mplab.base.files import explained, replace
from mplab.base.places import EXPERIMENTS
from mplab.run.planning import PlannedRun, load, plan_experiment
from mplab.userfiles.experiments.layers import merged, read_layers
from mplab.userfiles.papers.paper import Catalogue, Form, RowFile

TAG = "papers-"
"""Start of the tag of a run in one of the forms: ``papers-quick``."""
_STALL = "30 min"
"""Longer than the longest cell."""


@dataclass(frozen=True)
class PlannedJob:
    """An experiment in one form, with the rows that it repeats and its plan."""

    experiment: str
    rows: tuple[RowFile, ...]
    file: Path
    """The experiment file of this form."""
    plan: PlannedRun

    @property
    def may_end_early(self) -> bool:
        """Return whether a stop rule can end the run before its plan is done, so that its time is a maximum."""
        return self.plan.experiment.ending.interval is not None


@dataclass(frozen=True)
class PlanPart:
    """A part of the papers' experiments that one campaign runs."""

    number: int
    jobs: tuple[PlannedJob, ...]

    @property
    def estimate_s(self) -> float:
        """Return the estimated time of all jobs, seconds."""
        return sum(job.plan.estimate_s for job in self.jobs)


def plan_parts(
    catalogue: Catalogue, rows: Sequence[RowFile], form: Form, folder: Path, *, runs: Path, part_s: float
) -> list[PlanPart]:
    """Write the experiment files of a form, plan them, and divide them into parts.

    Args:
        catalogue: the catalogue.
        rows: rows whose experiments are planned; rows without an experiment are left out.
        form: the form.
        folder: folder that gets the experiment files.
        runs: folder of earlier runs, from which times are estimated.
        part_s: maximum estimated time of a part, seconds. An experiment that needs more is a separate part.

    Raises:
        InputError: an experiment file is wrong.
        LabNotReadyError: no transport of an experiment can run here.
        MplabError: a file cannot be written.
    """
    wanted = dict.fromkeys(name for row in rows for name in row.experiments)
    jobs = []
    for experiment in wanted:
        file = write_form(experiment, form, catalogue.forms[experiment][form], folder)
        mine = tuple(row for row in rows if experiment in row.experiments)
        jobs.append(PlannedJob(experiment, mine, file, plan_experiment(load(file), runs)))
    return [PlanPart(number, tuple(part)) for number, part in enumerate(_divided(jobs, part_s), 1)]


def _divided(jobs: Iterable[PlannedJob], part_s: float) -> list[list[PlannedJob]]:
    parts: list[list[PlannedJob]] = []
    left_s = 0.0
    for job in jobs:
        if not parts or job.plan.estimate_s > left_s:
            parts.append([])
            left_s = part_s
        parts[-1].append(job)
        left_s -= job.plan.estimate_s
    return parts


def write_form(experiment: str, form: Form, keys: Mapping[str, Any], folder: Path) -> Path:
    """Write the experiment file of a form in `folder`: it extends the experiment's file. Return its path.

    Raises:
        MplabError: the file cannot be written.
    """
    base = EXPERIMENTS / f"{experiment}.yaml"
    data = merged(read_layers(base)).data
    own = {
        "mplab": 1,
        "name": experiment,
        "title": data.get("title", experiment),
        "extends": str(base),
        "tags": [f"{TAG}{form}"],
        **{key: value for key, value in keys.items() if key != "parameters"},
    }
    if changed := keys.get("parameters"):
        own["scenarios"] = [_with_parameters(use, changed) for use in data["scenarios"]]
    return _write(folder / f"{experiment}.yaml", own)


def _with_parameters(use: Any, changed: Mapping[str, Mapping[str, object]]) -> Any:  # noqa: ANN401 - YAML values
    """Return an entry of ``scenarios`` with the parameters that `changed` has for its label."""
    name, given = (use, {}) if isinstance(use, str) else next(iter(use.items()))
    parameters = {**(given or {}), **changed.get((given or {}).get("label", name), {})}
    return {name: parameters} if parameters else name


def write_campaign(part: PlanPart, form: Form, folder: Path) -> Path:
    """Write the campaign file of a part in `folder`. Return its path, which is the same for the same jobs.

    Raises:
        MplabError: the file cannot be written.
    """
    names = "\n".join(job.experiment for job in part.jobs)
    name = f"papers-{form}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"
    keys = {
        "mplab_campaign": 1,
        "name": name,
        "title": f"The papers again, {form} form",
        "experiments": [job.file.name for job in part.jobs],
        "stall": _STALL,
    }
    return _write(folder / f"{name}.yaml", keys)


def _write(path: Path, keys: Mapping[str, object]) -> Path:
    """Write the keys of a YAML file, each in one line."""
    text = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items())
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            replace(path, text.encode())
    return path
