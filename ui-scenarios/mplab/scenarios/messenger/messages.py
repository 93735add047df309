"""Match the messages that the phone sent with those that the second phone received, by the reports of both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from mplab.base.errors import StepError

Kind = Literal["text", "smiley", "photo", "periodic"]
CLOCK_TOLERANCE_S = 0.02


class Sent(TypedDict):
    """A message in the report of the page that sent it; times are unix times in s."""

    id: str
    kind: str
    body: str
    sent_t: float
    uploaded_t: float | None
    receipt_t: float | None
    problem: str


class Received(TypedDict):
    """A message in the report of the page that received it; times are unix times in s."""

    id: str
    body: str
    photo: bool
    shown_t: float | None
    size_bytes: int | None
    sha256: str | None
    problem: str


class MessengerReport(TypedDict):
    """Report of a messenger page: the result of its function ``messenger.report()``, without the key ``state``."""

    clock_ahead_s: float
    sent: list[Sent]
    received: list[Received]


@dataclass(frozen=True)
class PlannedMessage:
    """A message that the scenario plans to send.

    Attributes:
        number: number of the message, from 1.
        kind: kind of the message.
        body: text of the message; "" for a photo, or if the app chooses the text (smiley).
        size_bytes: size of the photo; 0 for other kinds.
        sha256: SHA-256 of the photo, in hexadecimal; "" for other kinds.
    """

    number: int
    kind: Kind
    body: str = ""
    size_bytes: int = 0
    sha256: str = ""


def observations(
    planned: Sequence[PlannedMessage], sender: MessengerReport, receiver: MessengerReport
) -> list[dict[str, object]]:
    """Return the fields of an observation ``message`` for each planned message, in order; times are unix times in s.

    Args:
        planned: messages that were planned.
        sender: report of the phone.
        receiver: report of the second phone.

    Raises:
        StepError: a message was sent that was not planned, a message arrived with other content, or the time stamps of
            a browser differ from its system's clock by more than `CLOCK_TOLERANCE_S`.
    """
    for whose, report in (("the phone", sender), ("the second phone", receiver)):
        if abs(report["clock_ahead_s"]) > CLOCK_TOLERANCE_S:
            raise StepError(f"messenger: the clock of {whose}'s browser is {report['clock_ahead_s']:+.3f} s off")
    sent = sender["sent"]
    arrived = {entry["id"]: entry for entry in receiver["received"]}
    if len(sent) > len(planned):
        raise StepError(f"messenger: {len(sent)} messages were sent, {len(planned)} were planned")
    return [
        _observation(message, sent[index] if index < len(sent) else None, arrived)
        for index, message in enumerate(planned)
    ]


def unshown(receiver: MessengerReport) -> Iterator[str]:
    """Yield the ids of messages that have arrived at the receiver, but that its page does not show yet."""
    return (entry["id"] for entry in receiver["received"] if not (entry["problem"] or _is_shown(entry)))


def _is_shown(entry: Received) -> bool:
    return entry["shown_t"] is not None and (entry["sha256"] is not None or not entry["photo"])


def _observation(planned: PlannedMessage, sent: Sent | None, arrived: Mapping[str, Received]) -> dict[str, object]:
    got = arrived.get(sent["id"]) if sent else None
    if sent and sent["kind"] != ("text" if planned.kind == "periodic" else planned.kind):
        raise StepError(f"messenger: message {planned.number} is a {sent['kind']}, a {planned.kind} was meant")
    if sent and got:
        _check_content(planned, sent, got)
    began = sent["sent_t"] if sent else None
    receipt = sent["receipt_t"] if sent else None
    shown = got["shown_t"] if got else None
    return {
        "number": planned.number,
        "kind": planned.kind,
        "sent": sent is not None,
        "delivered": receipt is not None,
        "sent_t": began,
        "receipt_t": receipt,
        "shown_t": shown,
        "delivery_delay_s": _duration(began, receipt),
        "one_way_delay_s": _duration(began, shown),
        "upload_s": _duration(began, sent["uploaded_t"] if sent else None),
        "size_bytes": planned.size_bytes or len(str(sent["body"] if sent else planned.body).encode()),
        "verified": got is not None and _is_shown(got),
        "problem": (sent["problem"] if sent else "") or (got["problem"] if got else ""),
    }


def _check_content(planned: PlannedMessage, sent: Sent, got: Received) -> None:
    label = f"messenger: message {planned.number} ({planned.kind})"
    if planned.body and sent["body"] != planned.body:
        raise StepError(f"{label}: {sent['body']!r} was sent, {planned.body!r} was typed")
    if got["problem"]:
        raise StepError(f"{label}: the second phone could not show it: {got['problem']}")
    if got["body"] != sent["body"]:
        raise StepError(f"{label}: {got['body']!r} arrived, {sent['body']!r} was sent")
    if planned.sha256 and got["sha256"] not in {None, planned.sha256}:
        raise StepError(f"{label}: {got['size_bytes']} bytes arrived, but not the {planned.size_bytes} of the photo")


def _duration(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(end - begin, 6)
