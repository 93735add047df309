"""The campaign file as written, and the campaign that it asks for."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator

from mplab.base.errors import InputError
from mplab.base.suggest import show
from mplab.campaign.notify import NotifyFile, check_notify
from mplab.format.campaign import Job
from mplab.format.experiment import Ending
from mplab.format.names import Name, is_name
from mplab.format.plan import Plan
from mplab.format.retention import RetentionFile
from mplab.format.units import DurationS, SizeBytes
from mplab.lab.resources import resources_of
from mplab.userfiles.check import MAPPING, TEXT, Checker, raise_lines
from mplab.userfiles.ending import TimeOfDay
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.kinds import check_kind
from mplab.userfiles.labuse import VIRTUAL_NAME, NoSuchLabError
from mplab.userfiles.layers import kept_files
from mplab.userfiles.yaml import load_yaml

FORMAT = 1
_GB = 10**9

Load = Callable[[Path, str, str, Mapping[str, object]], Experiment]
"""An experiment file, a lab file ("": what it names), a phone ("": the lab's only one), variables → the experiment."""
MakePlan = Callable[[Experiment], Plan]


def _parse_format(found: object) -> int:
    if found is True or found != FORMAT:
        text = f"format {show(found)}: this program reads format {FORMAT}; write 'mplab_campaign: {FORMAT}'"
        raise ValueError(text)
    return FORMAT


class ExperimentEntry(BaseModel):
    """One of the experiments, and where it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str = Field(min_length=1, description="Experiment file; relative to the campaign file.")
    lab: str = Field("", description="Lab file, or 'virtual'; the one that the experiment names, when left out.")
    phones: tuple[Name, ...] = Field((), description="Of the lab file: a run on each; its only one, when left out.")
    vars: dict[str, Any] = Field({}, description="Values of the experiment's variables.")
    label: Name | None = Field(None, description="What its jobs are called; the experiment's name, when left out.")

    @model_validator(mode="after")
    def _phones_are_somewhere(self) -> Self:
        if self.phones and self.lab in {"", VIRTUAL_NAME}:
            raise ValueError("phones: of a lab file: name it with 'lab'")
        if len(set(self.phones)) < len(self.phones):
            raise ValueError("phones: names one twice")
        return self


def _kind(found: object) -> str:
    return MAPPING if isinstance(found, dict | BaseModel) else TEXT


Entry = Annotated[
    Annotated[str, Field(min_length=1), Tag(TEXT)] | Annotated[ExperimentEntry, Tag(MAPPING)], Discriminator(_kind)
]


class BreakerFile(BaseModel):
    """When a phone, router, server or lab that goes wrong again and again is left alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int = Field(2, ge=1, description="After so many starts in a row without one good cell it rests.")
    rest: Annotated[DurationS, Field(gt=0)] = Field(600.0, description="So long; then it is tried once.")
    rests: int = Field(2, ge=0, description="So often; then it is in quarantine until somebody releases it.")


class CompareFile(BaseModel):
    """Each run is compared with earlier ones of its experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int = Field(10, ge=1, le=1000, description="With so many.")


class CampaignFile(BaseModel):
    """Several experiments, one after the other or side by side, as their phones, routers and servers allow."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="mplab campaign")

    mplab_campaign: Annotated[int, BeforeValidator(_parse_format), WithJsonSchema({"const": FORMAT})] = Field(
        description="Format of this file."
    )
    name: Name = Field(description="Part of the campaign directory's name.")
    title: str = Field("", description="For people; default: the name.")
    experiments: tuple[Entry, ...] = Field(min_length=1, description="What is run.")
    order: Literal["written", "shuffled"] = Field(
        "written", description="In which order they are begun; 'shuffled': another one each night."
    )
    at_once: int | None = Field(None, ge=1, description="At most so many; as many as can, by default.")
    tries: int = Field(3, ge=1, le=20, description="How often a run is begun or gone on with, at most.")
    stall: Annotated[DurationS, Field(gt=0)] = Field(
        600.0, description="A run that shows no sign of life for so long is ended and gone on with."
    )
    breaker: BreakerFile = Field(
        default_factory=lambda: BreakerFile.model_validate({}),
        description="When what goes wrong again and again is left alone.",
    )
    keep_free: SizeBytes = Field(2 * _GB, description="With less space on the disk of the runs, runs wait.")
    at: TimeOfDay | None = Field(None, description="When 'mplab nightly install' has it begin.")
    max: Annotated[DurationS, Field(gt=0)] | None = Field(
        None, description="So long it may take: nothing is begun that would not end by then."
    )
    until: TimeOfDay | None = Field(None, description="The same, as a time of day of this host's clock.")
    compare: CompareFile | None = Field(None, description="Compare each run with earlier ones; not by default.")
    notify: NotifyFile | None = Field(None, description="Who is told what.")

    retention: RetentionFile | None = Field(
        None, description="How long all runs in the folder of the runs are kept; for ever by default."
    )

    def entries(self) -> list[ExperimentEntry]:
        """The experiments, each in its long form."""
        short = [{"file": entry} if isinstance(entry, str) else entry for entry in self.experiments]
        return [ExperimentEntry.model_validate(entry) for entry in short]


@dataclass(frozen=True)
class Campaign:
    """What is to be run."""

    path: Path
    source: bytes
    """The file, byte for byte."""
    file: CampaignFile
    jobs: tuple[Job, ...]
    """As written."""

    @property
    def name(self) -> str:
        """Part of the campaign directory's name."""
        return self.file.name

    @property
    def title(self) -> str:
        """For people."""
        return self.file.title or self.file.name

    @property
    def ending(self) -> Ending:
        """What ends it before everything is done."""
        return Ending(max_s=self.file.max, until=self.file.until)

    def to_json(self) -> dict[str, object]:
        """For programs: the file with all defaults."""
        return self.file.model_dump(mode="json", exclude={"mplab_campaign"})


def read_campaign_file(path: Path) -> tuple[CampaignFile, Checker]:
    """What a campaign file says, and what further problems of it are noted with. Raises InputError."""
    document = load_yaml(path)
    check_kind(document, "campaign")
    checker = Checker(document)
    file = checker.model(CampaignFile, checker.document.data)
    checker.raise_problems()
    assert file is not None  # noqa: S101 - raise_problems has raised otherwise
    return file, checker


def load_campaign(path: Path, *, load: Load, plan: MakePlan) -> Campaign:
    """The campaign that the file at `path` asks for, every experiment of it read and planned.

    Args:
        path: of the file.
        load: reads experiments.
        plan: plans them.

    Raises:
        InputError: with one line for every problem of the campaign file and of all files that it names.
        LabNotReadyError: an experiment has no transport that can run.
    """
    file, checker = read_campaign_file(path)
    base = path.parent
    jobs: list[Job] = []
    wrong: list[str] = []
    for index, entry in enumerate(file.entries()):
        try:
            made, longest_s = _jobs(entry, base, len(jobs), load, plan)
            jobs += made
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
    """SHA-256, hex, of everything that an experiment was read from."""
    digest = hashlib.sha256(experiment.source)
    read = {**kept_files(experiment.parents, experiment.given), "lab": experiment.lab.source}
    for name, content in read.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class _NoSuchFileError(Exception):
    pass


def _jobs(entry: ExperimentEntry, base: Path, before: int, load: Load, plan: MakePlan) -> tuple[list[Job], float]:
    """The jobs of an entry, of which there are `before` already; and how long a cell of them may take, seconds."""
    path = base / Path(entry.file).expanduser()
    if not path.is_file():
        raise _NoSuchFileError(f"no such file: {path}")
    made: list[Job] = []
    longest_s = 0.0
    for phone in entry.phones or ("",):
        lab = str(base / Path(entry.lab).expanduser()) if entry.lab not in {"", VIRTUAL_NAME} else entry.lab
        experiment = load(path, lab, phone, entry.vars)
        planned = plan(experiment)
        longest_s = max(longest_s, experiment.cell_timeout_s)
        words = [f"{before + len(made) + 1:02}", entry.label or experiment.name, phone or experiment.lab.phone]
        made.append(
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
    return made, longest_s
