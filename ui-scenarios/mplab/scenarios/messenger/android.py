"""Send texts in an Android messenger app, and measure when the app shows that they were delivered."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from mplab.base.errors import StepError
from mplab.base.hierarchy import UiNode
from mplab.drivers.ui import BrowserUi
from mplab.drivers.ui.matching import find_nodes
from mplab.format.selector import Selector
from mplab.scenarios.base import Context, Session
from mplab.scenarios.base.android import SHORT_EVERY_S, AndroidScenario, Visit
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S
from mplab.scenarios.base.sampling import ScreenSample, sample

from .messages import Kind, PlannedMessage
from .scenario import APP, SCENARIO, MessengerParameters, sign_in

_TEXT = "Hello, this is a test"
_SMILEY = "😀"
_MARGIN_S = 6.0
_THERE_S = 10.0
_REPORT_SCRIPT = "return messenger.report();"


@dataclass
class _Sent:
    """A planned message, and when it was sent and delivered.

    Attributes:
        message: the planned message.
        sent: unix time of the tap that sent it, s; None: it was not sent.
        receipt: unix time at which the app showed that it was delivered, s; None: the app did not show it.
        resolution_s: twice the largest error of `receipt`, s.
    """

    message: PlannedMessage
    sent: float | None = None
    receipt: float | None = None
    resolution_s: float | None = None


class AndroidMessengerScenario(AndroidScenario[MessengerParameters]):
    """Chat in an Android app with the contact that the app's section of ``app.yaml`` names.

    Sends rounds of a text and a smiley (typed as a character), then texts at a steady pace. It sends no photos, because
    galleries differ between phones. In a lab with a desktop peer, the contact is the lab's own messenger in the peer's
    browser; otherwise it is another phone.
    """

    @contextmanager
    def open(self, context: Context, parameters: MessengerParameters) -> Iterator["_Session"]:
        """Prepare the app. If the contact is the lab's own messenger, sign in to that messenger. Yield the session."""
        with self.visit(context) as visit:
            peer: BrowserUi | None = None
            with suppress(StepError):
                peer = visit.stack.enter_context(context.open_peer_ui())
            if peer is not None:
                facts = context.service("xmpp")
                peer.open(APP.start.format(**facts), timeout_s=OPEN_TIMEOUT_S)
                sign_in(peer, facts["peer"], facts["peer_password"])
            yield _Session(context, parameters, visit, peer, [_Sent(planned) for planned in _planned(parameters)])


@dataclass
class _Session(Session[MessengerParameters]):
    visit: Visit
    peer: BrowserUi | None
    """Browser with the lab's own messenger, which is the contact; None: the contact is another phone."""
    messages: list[_Sent]

    def run(self) -> None:
        """Send all messages that fit into the time.

        Raises:
            StepError: an element is missing.
        """
        context, parameters, visit = self.context, self.parameters, self.visit
        deadline = time.monotonic() + context.time_limit_s - _MARGIN_S
        started = time.monotonic()
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        visit.ui.tap(visit.element("contact"), timeout_s=OPEN_TIMEOUT_S)
        # Apps can be set not to show whether a contact is online.
        if "contact is there" in visit.app.elements and visit.shows("contact is there", timeout_s=_THERE_S):
            context.observe("signed_in", duration_s=round(time.monotonic() - started, 3), resolution_s=SHORT_EVERY_S)
        if parameters.rounds:
            context.observe("skipped", kind="photo", messages=parameters.rounds, reason="not done on Android")
        self._send_all(deadline)
        for fields in self._observations():
            context.observe("message", **fields)

    def _send_all(self, deadline: float) -> None:
        """Send the messages of the rounds one after the other, then the periodic messages, each when it is due."""
        parameters = self.parameters
        begin: float | None = None
        for message in self.messages:
            due, patience = time.monotonic() + parameters.pause, parameters.patience
            if message.message.kind == "periodic":
                begin = begin or due
                due = begin + parameters.period * (message.message.number - 1 - 2 * parameters.rounds)
                patience = patience if message is self.messages[-1] else min(patience, parameters.period / 2)
            if due > deadline:
                return
            self._send(message, due, min(patience, deadline - due))

    def _send(self, message: _Sent, due: float, patience_s: float) -> None:
        visit, ui, text = self.visit, self.visit.ui, message.message.body
        ui.type(visit.element("text"), text)
        time.sleep(max(0.0, due - time.monotonic()))
        ui.tap(visit.element("send"))
        message.sent = before = time.time()
        delivered = visit.element("last one delivered")
        seen = False

        def watch(windows: Sequence[UiNode]) -> bool:
            nonlocal seen
            if visit.watch(windows):
                return True
            seen = _is_delivered(windows, text, delivered)
            return False

        def until(look: ScreenSample) -> bool:
            nonlocal before
            if seen:
                message.receipt, message.resolution_s = (before + look.t) / 2, max(look.t - before, SHORT_EVERY_S)
            before = look.t
            return seen

        sample(ui, {}, for_s=max(SHORT_EVERY_S, patience_s), every_s=SHORT_EVERY_S, until=until, watch=watch)

    def _observations(self) -> Iterator[dict[str, object]]:
        """Yield the fields of an observation ``message`` for each message, the same as on the virtual phone.

        If the contact is another phone, the time at which that phone showed a message is unknown (None).
        """
        arrived: dict[str, float] = {}
        if self.peer is not None:
            report = self.peer.evaluate(_REPORT_SCRIPT)
            arrived = {
                message["body"]: message["shown_t"] for message in report["received"] if message["shown_t"] is not None
            }
        for message in self.messages:
            shown = arrived.get(message.message.body)
            yield {
                "number": message.message.number,
                "kind": message.message.kind,
                "sent": message.sent is not None,
                "delivered": message.receipt is not None,
                "sent_t": message.sent,
                "receipt_t": message.receipt,
                "shown_t": shown,
                "delivery_delay_s": _duration(message.sent, message.receipt),
                "one_way_delay_s": _duration(message.sent, shown),
                "upload_s": None,
                "size_bytes": len(message.message.body.encode()),
                "verified": shown is not None,
                "problem": "",
                "resolution_s": None if message.resolution_s is None else round(message.resolution_s, 3),
            }


def _is_delivered(windows: Sequence[UiNode], text: str, delivered: Selector) -> bool:
    """Return whether the screen shows the last bubble with `text` as delivered.

    This is so if the lowest delivery mark on the screen, an element `delivered`, ends below the top of the bubble.
    """
    bubbles = find_nodes(windows, Selector("contains", text))
    ticks = find_nodes(windows, delivered)
    if not bubbles or not ticks:
        return False
    return max(tick.bounds.bottom for tick in ticks) > max(bubble.bounds.top for bubble in bubbles)


def _planned(parameters: MessengerParameters) -> list[PlannedMessage]:
    """Return all messages to send, in order. Each text is unique, so that its bubble can be found on the screen."""
    kinds: list[Kind] = ["text", "smiley"] * parameters.rounds
    kinds += ["periodic"] * parameters.periodic
    return [
        PlannedMessage(number, kind, f"{_SMILEY} {number}." if kind == "smiley" else f"{_TEXT} {number}.")
        for number, kind in enumerate(kinds, 1)
    ]


def _duration(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(max(0.0, end - begin), 6)


ANDROID = AndroidMessengerScenario(SCENARIO)
