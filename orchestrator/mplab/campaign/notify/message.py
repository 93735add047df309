"""Define the messages of a campaign, and the outcome of sending one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mplab.format.campaignfile import Kind

URGENT: frozenset[Kind] = frozenset({"quarantined", "disk", "interrupted"})
"""Kinds of messages after which a phone or the whole campaign stays idle until someone acts."""


@dataclass(frozen=True)
class Message:
    """A message about a campaign.

    Attributes:
        kind: kind of event that the message reports.
        title: the message in one line.
        text: details, some lines; "": the title says all.
        campaign: name of the campaign directory.
        facts: name → value of details for programs and for the end of `body`, such as the run's name.
    """

    kind: Kind
    title: str
    text: str
    campaign: str
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Return the title in one line, for use in headers."""
        return " ".join(self.title.split())

    @property
    def body(self) -> str:
        """Return the text for people: message text, facts, name of the campaign."""
        facts = "\n".join(f"{name}: {value}" for name, value in self.facts.items())
        return "\n\n".join(part for part in (self.text.strip(), facts, f"campaign {self.campaign}") if part)


@dataclass(frozen=True)
class Delivery:
    """Outcome of sending a message to one receiver.

    Attributes:
        to: kind of receiver: ``webhook`` or ``mail``.
        ok: True if the receiver accepted the message.
        error: why the receiver did not accept the message, without any secret; "": it did.
        tries: number of tries to send the message.
    """

    to: str
    ok: bool
    error: str = ""
    tries: int = 1


class NotDeliveredError(Exception):
    """A receiver did not accept a message. The text of this error contains no secret.

    Args:
        text: reason, for people.
        again: True if another try may succeed.
    """

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


def connection_problem(error: BaseException) -> str:
    """Return why a connection failed, without the address and path that messages of libraries contain."""
    seen: set[int] = set()
    current: BaseException | None = error
    problem = ""
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        verified = getattr(current, "verify_message", "")
        if verified:
            return f"its certificate is not trusted: {verified}"
        if isinstance(current, TimeoutError):
            problem = problem or "no answer in time"
        elif isinstance(current, OSError) and current.strerror and isinstance(current.errno, int):
            problem = current.strerror
        inner = [item for item in (*current.args, getattr(current, "reason", None)) if isinstance(item, BaseException)]
        current = inner[0] if inner else current.__cause__ or current.__context__
    return problem or f"no connection ({type(error).__name__})"
