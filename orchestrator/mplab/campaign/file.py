"""Read a campaign file and plan its campaign."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import InputError
from mplab.campaign.notify import check_notify
from mplab.format.campaign import Job
from mplab.format.campaignfile import CampaignFile, ExperimentEntry
from mplab.format.experiment import Ending
from mplab.format.names import VIRTUAL_NAME, is_name
from mplab.format.plan import Plan
from mplab.lab.resources import resources_of
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.layers import kept_files
from mplab.userfiles.labs.labuse import NoSuchLabError
from mplab.userfiles.strict.check import Checker, check_kind, raise_lines
from mplab.userfiles.strict.yaml import load_yaml

Load = Callable[[Path, str, str, Mapping[str, object]], Experiment]
"""Function (experiment file, lab file, phone, variables) → experiment.

Lab file "": the lab that the experiment file names. Phone "": the only phone of the lab file.
"""
MakePlan = Callable[[Experiment], Plan]


@dataclass(frozen=True)
class Campaign:
    """A campaign file with its planned jobs."""

    path: Path
    source: bytes
    """Content of the campaign file, byte for byte."""
    file: CampaignFile
    jobs: tuple[Job, ...]
    """Jobs in the order of the file."""

    @property
    def name(self) -> str:
        """Return the campaign's name, which is part of the name of its directory."""
        return self.file.name

    @property
    def title(self) -> str:
        """Return the campaign's title; without a title, its name."""
        return self.file.title or self.file.name

    @property
    def ending(self) -> Ending:
        """Return the time limits that end the campaign even if jobs are left."""
        return Ending(max_s=self.file.max, until=self.file.until)

    @property
    def estimate_s(self) -> float:
        """Return an estimate of the campaign's duration, seconds: the time for which its busiest resource is needed."""
        load_s: dict[str, float] = {}
        for job in self.jobs:
            for name in job.resources:
                load_s[name] = load_s.get(name, 0.0) + job.estimate_s
        return max(load_s.values())


def read_campaign_file(path: Path) -> tuple[CampaignFile, Checker]:
    """Read a campaign file. Return its content, and a checker that collects the problems that later steps find.

    Raises:
        InputError: the file is wrong.
    """
    document = load_yaml(path)
    check_kind(document, "campaign")
    checker = Checker(document)
    file = checker.model(CampaignFile, checker.document.data)
    checker.raise_problems()
    assert file is not None  # noqa: S101 - raise_problems has raised otherwise
    return file, checker


def load_campaign(path: Path, *, load: Load, plan: MakePlan) -> Campaign:
    """Read the campaign file at `path`, and read and plan every experiment in it.

    Args:
        path: path of the campaign file.
        load: function that reads an experiment.
        plan: function that plans the cells of an experiment.

    Raises:
        InputError: the campaign file or a file that it names is wrong; the message has one line for each problem.
        LabNotReadyError: an experiment has no transport that can run.
    """
    file, checker = read_campaign_file(path)
    base = path.parent
    jobs: list[Job] = []
    wrong: list[str] = []
    for index, entry in enumerate(file.entries()):
        try:
            planned, longest_s = _jobs(entry, base, len(jobs), load, plan)
            jobs += planned
            if longest_s >= file.stall:
                text = f"a cell of {entry.file} may take {longest_s:g} s (cell_timeout): more is needed"
                checker.add(("stall",), f"{file.stall:g} s without a sign of life, but {text}")
        except NoSuchLabError as error:
            checker.add(("experiments", index, "lab"), str(error))
        except _NoSuchFileError as error:
            checker.add(("experiments", index, "file"), str(error))
        except InputError as error:
            wrong.append(str(error))
    if file.notify is not None:
        check_notify(checker, ("notify",), file.notify, base)
    raise_lines([*checker.lines(), *dict.fromkeys(wrong)])
    return Campaign(path, checker.document.source, file, tuple(jobs))


def fingerprint(experiment: Experiment) -> str:
    """Return the SHA-256, in hex, of all files and variables from which an experiment was read."""
    digest = hashlib.sha256(experiment.source)
    read = {**kept_files(experiment.parents, experiment.given), "lab": experiment.lab.source}
    for name, content in read.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class _NoSuchFileError(Exception):
    pass


def _jobs(entry: ExperimentEntry, base: Path, before: int, load: Load, plan: MakePlan) -> tuple[list[Job], float]:
    """Return one job for each phone of a campaign file's entry, and the longest cell timeout of the jobs, seconds.

    `base` is the folder of the campaign file. `before` is the number of jobs of earlier entries; the ids of the jobs
    begin with the next numbers.

    Raises:
        _NoSuchFileError: the experiment file does not exist.
    """
    path = base / Path(entry.file).expanduser()
    if not path.is_file():
        raise _NoSuchFileError(f"no such file: {path}")
    jobs: list[Job] = []
    longest_s = 0.0
    for phone in entry.phones or ("",):
        lab = str(base / Path(entry.lab).expanduser()) if entry.lab not in {"", VIRTUAL_NAME} else entry.lab
        experiment = load(path, lab, phone, entry.vars)
        planned = plan(experiment)
        longest_s = max(longest_s, experiment.cell_timeout_s)
        words = [f"{before + len(jobs) + 1:02}", entry.label or experiment.name, phone or experiment.lab.phone]
        jobs.append(
            Job(
                id="-".join(word for word in words if word and is_name(word)),
                experiment=experiment.name,
                title=experiment.title,
                file=str(path.resolve()),
                sha256=fingerprint(experiment),
                lab=str(Path(lab).resolve()) if lab not in {"", VIRTUAL_NAME} else lab,
                phone=phone,
                given=entry.vars,
                resources=resources_of(experiment),
                cells=len(planned.cells),
                blocks=experiment.repetitions,
                estimate_s=planned.estimate_s,
            )
        )
    return jobs, longest_s
