"""Key ``notify:`` of a campaign file: recipients and kinds of messages."""

import re
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.format.hosts import Host, is_loopback
from mplab.format.patterns import pattern_schema, text_like

Kind = Literal["failed", "worse", "quarantined", "disk", "finished", "interrupted"]
"""Kinds of message; `NotifyFile.on` selects from them."""

KINDS: tuple[Kind, ...] = get_args(Kind)

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
        """Configured port, or the usual one for `tls`."""
        return self.port or _PORTS[self.tls]


class NotifyFile(BaseModel):
    """Recipients of a campaign's messages, and the kinds of message that they get."""

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
