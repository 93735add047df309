"""Campaign file. Its keys `notify` and `retention` are in `mplab.format.notify` and `mplab.format.retention`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator

from mplab.base.suggest import show
from mplab.format.experiment import TimeOfDay
from mplab.format.names import MAPPING, TEXT, VIRTUAL_NAME, Name
from mplab.format.notify import NotifyFile
from mplab.format.retention import RetentionFile
from mplab.format.units import DurationS, SizeBytes

FORMAT = 1
_GB = 10**9


def _parse_format(found: object) -> int:
    if found is True or found != FORMAT:
        text = f"format {show(found)}: this program reads format {FORMAT}; write 'mplab_campaign: {FORMAT}'"
        raise ValueError(text)
    return FORMAT


class ExperimentEntry(BaseModel):
    """One experiment of the campaign, and where it runs."""

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
    """Circuit breaker: when a phone, router, server or lab that fails repeatedly rests or is quarantined."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int = Field(2, ge=1, description="After so many starts in a row without one good cell it rests.")
    rest: Annotated[DurationS, Field(gt=0)] = Field(600.0, description="So long; then it is tried once.")
    rests: int = Field(2, ge=0, description="So often; then it is in quarantine until somebody releases it.")


class CompareFile(BaseModel):
    """Comparison of each run with earlier runs of its experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int = Field(10, ge=1, le=1000, description="With so many.")


class CampaignFile(BaseModel):
    """Several experiments that run one after the other, or in parallel where phones, routers and servers allow it."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="mplab campaign")

    mplab_campaign: Annotated[int, BeforeValidator(_parse_format), WithJsonSchema({"const": FORMAT})] = Field(
        description="Format of this file.", exclude=True
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
        """Return the experiments, each as a mapping entry. Raises ValidationError: an entry is wrong."""
        short = [{"file": entry} if isinstance(entry, str) else entry for entry in self.experiments]
        return [ExperimentEntry.model_validate(entry) for entry in short]
