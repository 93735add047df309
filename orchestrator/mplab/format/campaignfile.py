"""Models of the campaign file, with its keys `notify` and `retention`, and of the log ``retention.jsonl``.

The log records each capture that was compressed or removed, and each removed run.
"""

import re
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator

from mplab.format.events import Event
from mplab.format.experiment import TimeOfDay
from mplab.format.names import (
    MAPPING,
    TEXT,
    VIRTUAL_NAME,
    FileModel,
    Host,
    Name,
    format_number,
    is_loopback,
    pattern_schema,
    text_like,
)
from mplab.format.units import AgeS, DurationS, SizeBytes, format_age_s


class RetentionFile(FileModel):
    """Maximum age of runs and their captures. Without a limit, they are kept forever."""

    compress_after: AgeS | None = Field(None, description="Age of a run at which its captures are compressed (gzip).")
    captures: AgeS | None = Field(
        None,
        description="Age of a run at which its captures are removed; tables, scores and reports stay. Runs that were "
        "not analysed keep theirs.",
    )
    runs: AgeS | None = Field(None, description="Age at which a whole run is removed.")
    keep_last: int = Field(5, ge=1, description="Number of newest finished runs of each experiment that lose nothing.")
    keep: tuple[Name, ...] = Field((), description="Tags of experiments whose runs are never changed.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        limits = {"compress_after": self.compress_after, "captures": self.captures, "runs": self.runs}
        ages = [(key, age) for key, age in limits.items() if age is not None]
        if not ages:
            raise ValueError("retention needs 'compress_after', 'captures' or 'runs'")
        for (earlier, age), (later, other) in pairwise(ages):
            if other <= age:
                raise ValueError(f"{later} {format_age_s(other)}: must be more than {earlier}, {format_age_s(age)}")
        return self


class RetentionEvent(Event):
    """An event in ``retention.jsonl``, a log that is in a run directory or next to the run directories."""


class CaptureCompressed(RetentionEvent):
    """A capture was compressed; logged in the directory of its run."""

    file: str
    """Path relative to the run directory."""
    to: str
    rule: str
    """Rule as in the campaign file: ``compress_after: 7 d``."""
    bytes: int
    sha256: str
    compressed_bytes: int


class CaptureRemoved(RetentionEvent):
    """A capture is removed; logged in the directory of its run before the removal."""

    file: str
    rule: str
    bytes: int
    sha256: str


class RunRemoved(RetentionEvent):
    """A run is removed; logged next to the run directories before the removal."""

    run: str
    rule: str
    bytes: int
    manifest_sha256: str


Kind = Literal["failed", "worse", "quarantined", "disk", "finished", "interrupted"]
"""Kinds of message; `NotifyFile.on` selects from them."""

KINDS: tuple[Kind, ...] = get_args(Kind)

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PORTS = {"starttls": 587, "tls": 465, "none": 25}

MailAddress = Annotated[
    str, text_like(_ADDRESS, "address", "one mail address is needed, like 'lab@example.org'"), pattern_schema(_ADDRESS)
]


class WebhookFile(FileModel):
    """Receiver of messages by HTTP POST."""

    url_file: str = Field(
        min_length=1, description="File with the URL, a secret, in one line; mode 600. https, or http to loopback."
    )
    format: Literal["json", "text"] = Field(
        "json", description="json: an object with text, for Slack, Mattermost and programs; text: for ntfy."
    )
    ca_file: str = Field(
        "", description="Certificate authorities (PEM) of the server, if it has no certificate of a public one."
    )


class MailFile(FileModel):
    """Receivers of messages by e-mail, and their mail server."""

    to: tuple[MailAddress, ...] = Field(min_length=1, description="Addresses of the recipients.")
    sender: MailAddress = Field(alias="from", description="Address of the sender.")
    server: Host = Field(description="The mail server: name or address.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Port of the server; 587 with starttls, 465 with tls, 25 with none."
    )
    user: str = Field("", description="User name for the login, with password_file; empty: no login.")
    password_file: str = Field("", description="File with the user's password in one line; mode 600.")
    tls: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="Encryption; none: only for a server on this machine."
    )
    ca_file: str = Field(
        "", description="Certificate authorities (PEM) of the server, if it has no certificate of a public one."
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if bool(self.user) != bool(self.password_file):
            raise ValueError("user and password_file: only one of them is given. Give both or none")
        if self.tls == "none" and not is_loopback(self.server):
            raise ValueError(f"tls none: only for a server on this machine, not for '{self.server}'")
        if self.tls == "none" and self.ca_file:
            raise ValueError("ca_file: not allowed with 'tls: none'")
        return self

    @property
    def port_used(self) -> int:
        """Port of the mail server: the configured one, or the usual one for the encryption `tls`."""
        return self.port or _PORTS[self.tls]


class NotifyFile(FileModel):
    """Recipients of a campaign's messages, and the kinds of message that they get."""

    webhook: WebhookFile | None = Field(None, description="By HTTP POST.")
    mail: MailFile | None = Field(None, description="By e-mail.")
    on: tuple[Kind, ...] = Field(
        KINDS,
        min_length=1,
        description="Kinds of messages. 'finished' is sent once a night, so that a missing one shows a failure.",
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.webhook is None and self.mail is None:
            raise ValueError("notify needs a receiver: 'webhook' or 'mail'")
        return self


FORMAT = 1
_GB = 10**9


class ExperimentEntry(FileModel):
    """One experiment of the campaign, and the lab and phones on which it runs."""

    file: str = Field(min_length=1, description="Experiment file; relative to the campaign file.")
    lab: str = Field("", description="Lab file, or 'virtual'; default: the lab that the experiment names.")
    phones: tuple[Name, ...] = Field(
        (), description="Phones of the lab file, with a run on each; default: its only phone."
    )
    vars: dict[str, Any] = Field({}, description="Values of the experiment's variables.")
    label: Name | None = Field(None, description="Name of its jobs; default: the experiment's name.")

    @model_validator(mode="after")
    def _phones_are_somewhere(self) -> Self:
        if self.phones and self.lab in {"", VIRTUAL_NAME}:
            raise ValueError("phones: needs a lab file: name it with 'lab'")
        if len(set(self.phones)) < len(self.phones):
            raise ValueError("phones: a phone is named twice")
        return self


def _kind(value: object) -> str:
    return MAPPING if isinstance(value, dict | BaseModel) else TEXT


Entry = Annotated[
    Annotated[str, Field(min_length=1), Tag(TEXT)] | Annotated[ExperimentEntry, Tag(MAPPING)], Discriminator(_kind)
]


class BreakerFile(FileModel):
    """Circuit breaker: rules by which a phone, router, server or lab that fails repeatedly is taken out of use."""

    failures: int = Field(
        2, ge=1, description="Number of consecutive starts without an ok cell after which the resource rests."
    )
    rest: Annotated[DurationS, Field(gt=0)] = Field(600.0, description="Duration of a rest; one try follows it.")
    rests: int = Field(
        2,
        ge=0,
        description="Number of consecutive rests; the next failure quarantines the resource until it is released.",
    )


class CompareFile(FileModel):
    """Comparison of each run with earlier runs of its experiment."""

    window: int = Field(10, ge=1, le=1000, description="Number of earlier runs.")


class CampaignFile(FileModel):
    """Several experiments that run one after the other, or in parallel where phones, routers and servers allow it."""

    model_config = ConfigDict(title="mplab campaign")

    mplab_campaign: Annotated[int, format_number("mplab_campaign", FORMAT), WithJsonSchema({"const": FORMAT})] = Field(
        description="Format of this file.", exclude=True
    )
    name: Name = Field(description="Part of the campaign directory's name.")
    title: str = Field("", description="For people; default: the name.")
    experiments: tuple[Entry, ...] = Field(min_length=1, description="The experiments.")
    order: Literal["written", "shuffled"] = Field(
        "written",
        description="Order in which they start. shuffled: a new one each night, so that no experiment always runs "
        "late.",
    )
    at_once: int | None = Field(None, ge=1, description="Maximum number of runs at the same time; default: no limit.")
    tries: int = Field(3, ge=1, le=20, description="Maximum number of times that a run is started or resumed.")
    stall: Annotated[DurationS, Field(gt=0)] = Field(
        600.0, description="Time without a sign of life after which a run is ended and resumed."
    )
    breaker: BreakerFile = Field(
        default_factory=lambda: BreakerFile.model_validate({}),
        description="When a resource that fails repeatedly is not used.",
    )
    keep_free: SizeBytes = Field(2 * _GB, description="Free space on the disk of the runs below which runs wait.")
    at: TimeOfDay | None = Field(
        None, description="Time of day at which the units of 'mplab campaign install' start it."
    )
    max: Annotated[DurationS, Field(gt=0)] | None = Field(
        None, description="Maximum duration: a run that would end later is not started."
    )
    until: TimeOfDay | None = Field(None, description="Latest end, as a time of day of this host's clock.")
    compare: CompareFile | None = Field(None, description="Compare each run with earlier ones; not by default.")
    notify: NotifyFile | None = Field(None, description="Receivers of messages, and the kinds of messages.")

    retention: RetentionFile | None = Field(
        None, description="How long all runs in the folder of the runs are kept; default: for ever."
    )

    def entries(self) -> list[ExperimentEntry]:
        """Return the entries of `experiments`; an entry that is only a path is converted to the long form.

        Raises:
            ValidationError: an entry is wrong.
        """
        short = [{"file": entry} if isinstance(entry, str) else entry for entry in self.experiments]
        return [ExperimentEntry.model_validate(entry) for entry in short]
