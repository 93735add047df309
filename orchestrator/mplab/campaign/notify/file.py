"""The key ``notify:`` of a campaign file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.base.errors import InputError
from mplab.base.private import read_secret
from mplab.campaign.notify.message import KINDS, Kind
from mplab.format.patterns import pattern_schema, text_like
from mplab.userfiles.check import Checker
from mplab.userfiles.machine_fields import Host, is_loopback
from mplab.userfiles.yaml import KeyPath

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PORTS = {"starttls": 587, "tls": 465, "none": 25}

MailAddress = Annotated[
    str, text_like(_ADDRESS, "address", "one mail address is needed, like 'lab@example.org'"), pattern_schema(_ADDRESS)
]


class WebhookFile(BaseModel):
    """Messages by HTTP POST."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url_file: str = Field(min_length=1, description="File with the URL, a secret, in one line; mode 600.")
    format: Literal["json", "text"] = Field(
        "json", description="json: an object with text, for Slack, Mattermost and programs; text: for ntfy."
    )
    ca_file: str = Field("", description="Certificates (PEM) that it is known by, when no public authority vouches.")


class MailFile(BaseModel):
    """Messages by e-mail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: tuple[MailAddress, ...] = Field(min_length=1, description="Who gets it.")
    sender: MailAddress = Field(alias="from", description="Who it is from.")
    server: Host = Field(description="The mail server: name or address.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Of the server; 587 with starttls, 465 with tls, 25 with none."
    )
    user: str = Field("", description="Who logs in there; without it, nobody does.")
    password_file: str = Field("", description="File with the user's password in one line; mode 600.")
    tls: Literal["starttls", "tls", "none"] = Field("starttls", description="none: on this machine alone.")
    ca_file: str = Field("", description="Certificates (PEM) that it is known by, when no public authority vouches.")

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if bool(self.user) != bool(self.password_file):
            raise ValueError("user and password_file: both or none")
        if self.tls == "none" and not is_loopback(self.server):
            raise ValueError(f"tls none: for a server on this machine alone, not for '{self.server}'")
        if self.tls == "none" and self.ca_file:
            raise ValueError("ca_file: not with 'tls: none'")
        return self

    @property
    def port_used(self) -> int:
        """The port, or what is usual."""
        return self.port or _PORTS[self.tls]


class NotifyFile(BaseModel):
    """Who is told what of a campaign."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    webhook: WebhookFile | None = Field(None, description="By HTTP POST.")
    mail: MailFile | None = Field(None, description="By e-mail.")
    on: tuple[Kind, ...] = Field(
        KINDS, min_length=1, description="What is told. 'finished' comes once a night: that it is missing says a lot."
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.webhook is None and self.mail is None:
            raise ValueError("notify needs 'webhook' or 'mail': who is told?")
        return self


def beside(folder: Path, path: str) -> Path:
    """A path of a file in `folder`: relative to it, ``~`` is home."""
    return folder / Path(path).expanduser()


def read_url(path: Path) -> str:
    """The URL in a private file.

    Raises:
        InputError: the file is not usable, or what is in it is no URL that a secret may be sent to.
    """
    url = read_secret(path)
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        good = False
    if not good or parts.scheme not in {"https", "http"}:
        raise InputError(f"{path}: an https URL is needed in it")
    if parts.scheme == "http" and not is_loopback(str(parts.hostname)):
        raise InputError(f"{path}: an https URL is needed: the URL is a secret, http is for this machine alone")
    return url


def check_notify(checker: Checker, path: KeyPath, notify: NotifyFile, folder: Path) -> None:
    """Note what is wrong with the files that `notify`, which stands at `path`, names.

    Args:
        checker: of the campaign file.
        path: where the key stands.
        notify: what it says.
        folder: what the names of files are relative to: where the campaign file lies.
    """
    if notify.webhook is not None:
        _note(checker, (*path, "webhook", "url_file"), read_url, beside(folder, notify.webhook.url_file))
        _check_authorities(checker, (*path, "webhook", "ca_file"), notify.webhook.ca_file, folder)
    if notify.mail is not None:
        if notify.mail.password_file:
            _note(checker, (*path, "mail", "password_file"), read_secret, beside(folder, notify.mail.password_file))
        _check_authorities(checker, (*path, "mail", "ca_file"), notify.mail.ca_file, folder)


def _check_authorities(checker: Checker, path: KeyPath, name: str, folder: Path) -> None:
    if name and not beside(folder, name).is_file():
        checker.add(path, f"no such file: {beside(folder, name)}")


def _note(checker: Checker, path: KeyPath, read: Callable[[Path], str], file: Path) -> None:
    try:
        read(file)
    except InputError as error:
        checker.add(path, str(error))
