"""What is told, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mplab.format.notify import Kind

URGENT: frozenset[Kind] = frozenset({"quarantined", "disk", "interrupted"})
"""Nothing more happens, on a phone or at all, until somebody comes."""


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        kind: what it is about.
        title: one line.
        text: some lines; "": the title says it all.
        campaign: name of the campaign directory.
        facts: further values by their names: numbers, texts, truths.
    """

    kind: Kind
    title: str
    text: str
    campaign: str
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The title without line ends: it goes into headers."""
        return " ".join(self.title.split())

    @property
    def body(self) -> str:
        """For people: the text, the facts, whose they are."""
        facts = "\n".join(f"{name}: {value}" for name, value in self.facts.items())
        return "\n\n".join(part for part in (self.text.strip(), facts, f"campaign {self.campaign}") if part)


@dataclass(frozen=True)
class Delivery:
    """What became of a message at one receiver.

    Attributes:
        to: ``webhook``, ``mail``.
        ok: the receiver has taken it.
        error: why not, without any secret; "" when it has.
        tries: how often it was offered.
    """

    to: str
    ok: bool
    error: str = ""
    tries: int = 1


class NotDeliveredError(Exception):
    """A receiver has not taken a message. The text has no secret in it.

    Args:
        text: why, for people.
        again: another try may help.
    """

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


def connection_problem(error: BaseException) -> str:
    """Why there was no connection, in words that hold neither address nor path: libraries put both into theirs."""
    seen: set[int] = set()
    current: BaseException | None = error
    found = ""
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        verified = getattr(current, "verify_message", "")
        if verified:
            return f"its certificate is not trusted: {verified}"
        if isinstance(current, TimeoutError):
            found = found or "no answer in time"
        elif isinstance(current, OSError) and current.strerror and isinstance(current.errno, int):
            found = current.strerror
        inner = [item for item in (*current.args, getattr(current, "reason", None)) if isinstance(item, BaseException)]
        current = inner[0] if inner else current.__cause__ or current.__context__
    return found or f"no connection ({type(error).__name__})"
