"""A messenger's own app on Android: texts, and when the app shows that they have been delivered."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mplab.base.errors import StepError
from mplab.drivers.ui import Ui
from mplab.drivers.ui.hierarchy import Node
from mplab.drivers.ui.matching import find_nodes
from mplab.format.selector import Selector
from mplab.scenarios.base import Context
from mplab.scenarios.base.android import SHORT_EVERY_S, AndroidScenario, Visit
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S
from mplab.scenarios.base.sampling import Look, sample

from .messages import Kind, Planned
from .scenario import APP, SCENARIO, MessengerParameters, sign_in

_TEXT = "Hello, this is a test"
_SMILEY = "😀"
_MARGIN_S = 6.0
_THERE_S = 10.0
_REPORT_SCRIPT = "return messenger.report();"


@dataclass
class _Sent:
    """A message, and what came of it."""

    message: Planned
    sent: float | None = None
    receipt: float | None = None
    resolution_s: float | None = None


@dataclass
class _Chat:
    """What a cell has sent, and who answers."""

    peer: Ui | None
    messages: list[_Sent] = field(default_factory=list)


class AndroidMessengerScenario(AndroidScenario):
    """`Scenario`: a chat with a contact, the first of the app's list.

    Texts, smileys (typed as a character) and texts at a steady pace. Photos are left out: galleries differ from phone
    to phone. In a lab with a desktop, the contact is the page of the lab's own messenger; otherwise somebody's phone.
    """

    def __init__(self) -> None:
        super().__init__(SCENARIO)
        self._chats: dict[Path, _Chat] = {}

    def prepare(self, context: Context, parameters: MessengerParameters) -> None:
        """Start the app; the contact, where it is the lab's own, signs in."""
        visit = self.open(context)
        peer: Ui | None = None
        with contextlib.suppress(StepError):
            peer = visit.stack.enter_context(context.open_peer_ui())
        self._chats[context.cell_dir] = _Chat(peer, [_Sent(one) for one in _planned(parameters)])
        if peer is not None:
            facts = context.service("xmpp")
            peer.open(APP.start.format(**facts), timeout_s=OPEN_TIMEOUT_S)
            sign_in(peer, facts["peer"], facts["peer_password"])

    def run(self, context: Context, parameters: MessengerParameters) -> None:
        """Send everything.

        Raises:
            StepError: the app does not do its part.
        """
        visit, chat = self.visit(context), self._chats[context.cell_dir]
        deadline = time.monotonic() + context.time_limit_s - _MARGIN_S
        started = time.monotonic()
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        visit.ui.tap(visit.element("contact"), timeout_s=OPEN_TIMEOUT_S)
        # An app may be told not to show it.
        if "contact is there" in visit.app.elements and visit.shows("contact is there", timeout_s=_THERE_S):
            context.observe("signed_in", duration_s=round(time.monotonic() - started, 3), resolution_s=SHORT_EVERY_S)
        if parameters.rounds:
            context.observe("skipped", kind="photo", messages=parameters.rounds, reason="not done on Android")
        self._send_all(visit, chat, parameters, deadline)
        for found in _observations(chat):
            context.observe("message", **found)

    def _send_all(self, visit: Visit, chat: _Chat, parameters: MessengerParameters, deadline: float) -> None:
        """The rounds one after the other; then those at a steady pace, each at its time."""
        begin: float | None = None
        for one in chat.messages:
            due, patience = time.monotonic() + parameters.pause, parameters.patience
            if one.message.kind == "periodic":
                begin = begin or due
                due = begin + parameters.period * (one.message.number - 1 - 2 * parameters.rounds)
                patience = patience if one is chat.messages[-1] else min(patience, parameters.period / 2)
            if due > deadline:
                return
            self._send(visit, one, due, min(patience, deadline - due))

    def clean_up(self, context: Context, parameters: MessengerParameters) -> None:
        """End both."""
        self._chats.pop(context.cell_dir, None)
        super().clean_up(context, parameters)

    def _send(self, visit: Visit, one: _Sent, due: float, patience_s: float) -> None:
        ui, text = visit.ui, one.message.body
        ui.type(visit.element("text"), text)
        time.sleep(max(0.0, due - time.monotonic()))
        ui.tap(visit.element("send"))
        one.sent = before = time.time()
        delivered = visit.element("last one delivered")
        seen = False

        def watch(windows: Sequence[Node]) -> bool:
            nonlocal seen
            if visit.watch(windows):
                return True
            seen = _is_delivered(windows, text, delivered)
            return False

        def until(look: Look) -> bool:
            nonlocal before
            if seen:
                one.receipt, one.resolution_s = (before + look.t) / 2, max(look.t - before, SHORT_EVERY_S)
            before = look.t
            return seen

        sample(ui, {}, for_s=max(SHORT_EVERY_S, patience_s), every_s=SHORT_EVERY_S, until=until, watch=watch)


def _is_delivered(windows: Sequence[Node], text: str, delivered: Selector) -> bool:
    """Whether the bubble with this text is there, and beside or below it that it was delivered."""
    bubbles = find_nodes(windows, Selector("contains", text))
    ticks = find_nodes(windows, delivered)
    if not bubbles or not ticks:
        return False
    return max(tick.bounds.bottom for tick in ticks) > max(bubble.bounds.top for bubble in bubbles)


def _planned(parameters: MessengerParameters) -> list[Planned]:
    """All messages in order; each has a text of its own, by which it is found."""
    kinds: list[Kind] = ["text", "smiley"] * parameters.rounds
    kinds += ["periodic"] * parameters.periodic
    return [
        Planned(number, kind, f"{_SMILEY} {number}." if kind == "smiley" else f"{_TEXT} {number}.")
        for number, kind in enumerate(kinds, 1)
    ]


def _observations(chat: _Chat) -> list[dict[str, Any]]:
    """As those of the virtual phone; what only the lab's own contact knows is null without it."""
    arrived: dict[str, float] = {}
    if chat.peer is not None:
        report = chat.peer.evaluate(_REPORT_SCRIPT)
        arrived = {one["body"]: one["shown_t"] for one in report["received"] if one["shown_t"] is not None}
    found = []
    for one in chat.messages:
        shown = arrived.get(one.message.body)
        found.append(
            {
                "number": one.message.number,
                "kind": one.message.kind,
                "sent": one.sent is not None,
                "delivered": one.receipt is not None,
                "sent_t": one.sent,
                "receipt_t": one.receipt,
                "shown_t": shown,
                "delivery_delay_s": _duration(one.sent, one.receipt),
                "one_way_delay_s": _duration(one.sent, shown),
                "upload_s": None,
                "size_bytes": len(one.message.body.encode()),
                "verified": shown is not None,
                "problem": "",
                "resolution_s": None if one.resolution_s is None else round(one.resolution_s, 3),
            }
        )
    return found


def _duration(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(max(0.0, end - begin), 6)


ANDROID = AndroidMessengerScenario()
