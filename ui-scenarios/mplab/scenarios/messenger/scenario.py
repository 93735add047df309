"""Send rounds of text, smiley and photo to a second phone, then texts at a steady pace."""

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from mplab.base.errors import StepError
from mplab.drivers.origin.content import png
from mplab.drivers.ui import BrowserUi
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from mplab.userfiles.experiments.app import load_app

from .messages import Kind, MessengerReport, PlannedMessage, observations, unshown

APP = load_app(Path(__file__).parent)
MAX_TEST_S = 120.0
"""Smallest time limit of a test, s: the longest test of an app in baerts2015 §4.3."""
MIN_PHOTO_BYTES, MAX_PHOTO_BYTES = 1000, 10_000_000
_REPORT_SCRIPT = "return messenger.report();"
_STORAGE_SCRIPT = """
const count = (name, promise) => promise.then(found => [name, found.length]);
const resources = performance.getEntriesByType('resource').filter(entry => entry.name.startsWith('http'));
return Promise.all([
  count('cookies', Promise.resolve(document.cookie.split(';').filter(Boolean))),
  count('local_storage', Promise.resolve(Object.keys(localStorage))),
  count('session_storage', Promise.resolve(Object.keys(sessionStorage))),
  count('databases', indexedDB.databases()),
  count('caches', caches.keys()),
  count('service_workers', navigator.serviceWorker.getRegistrations()),
  count('from_cache', Promise.resolve(resources.filter(entry => entry.transferSize === 0))),
]).then(Object.fromEntries);
"""
_TEXT = "Hello, this is a test"
_OPEN_S, _SIGN_IN_S, _CONTACT_S, _SHOW_S = 40.0, 20.0, 10.0, 5.0
_START_S, _END_S = 4.0, 1.0
_MESSAGE_S = 1.2
_USUAL_UP_KBPS = 2000.0
_ONLINE = "online"
_QUIET_S = 0.3
"""Time after a tap for which the browser is not queried, s: automation and app share a processor."""


_PHOTO_BOUNDS = between(
    "photo", MIN_PHOTO_BYTES, MAX_PHOTO_BYTES, "at least {least} and at most {most} is needed", write=format_size
)


class MessengerParameters(Parameters):
    """Parameters of the scenario `messenger`."""

    rounds: int = Field(3, ge=0, le=50, description="Number of rounds: a text, a smiley and a photo.")
    photo: Annotated[SizeBytes, _PHOTO_BOUNDS] = Field(
        50_000,
        description="Size of each photo, 1 kB to 10 MB. In baerts2015 table 4.1 three rounds sent 168 kB in all.",
    )
    pause: DurationS = Field(
        1.0,
        le=60,
        description="Rest before each message of a round, after the delivery of the previous one; at most 60 s.",
    )
    periodic: int = Field(3, ge=0, le=1000, description="Number of texts at a steady pace, after the rounds.")
    period: DurationS = Field(30.0, ge=1, le=600, description="Time from one periodic text to the next, 1 s to 10 min.")
    patience: DurationS = Field(
        15.0,
        ge=1,
        le=60,
        description="Longest wait for the delivery of a message before the next one is sent, 1 s to 60 s.",
    )

    @model_validator(mode="after")
    def _something_to_send(self) -> "MessengerParameters":
        if not self.rounds and not self.periodic:
            raise ValueError("nothing to send: give 'rounds' or 'periodic'")
        return self

    @property
    def waiting_s(self) -> float:
        """Return the time from the first to the last periodic message, s."""
        return max(0, self.periodic - 1) * self.period


class MessengerScenario(Scenario[MessengerParameters]):
    """Chat with a second phone, both with the web app of the lab's messenger."""

    name = "messenger"
    title = "Messages"
    parameters = MessengerParameters
    needs_ui = True
    services = ("xmpp",)

    def time_limit_s(self, parameters: MessengerParameters) -> float:
        """Return the time limit, s: 120 s, or longer if the messages need more time."""
        others = self.estimate_s(parameters) - parameters.waiting_s
        return math.ceil(max(MAX_TEST_S, parameters.waiting_s + parameters.patience + 1.5 * others))

    def estimate_s(self, parameters: MessengerParameters) -> float:
        """Return the time to start the app and to send all messages, with an uplink of 2 Mbit/s, s."""
        photos = parameters.rounds * parameters.photo * 8 / 1000 / _USUAL_UP_KBPS
        messages = parameters.rounds * 3 * (_MESSAGE_S + parameters.pause) + photos
        return _START_S + messages + parameters.waiting_s + _END_S

    @contextmanager
    def open(self, context: Context, parameters: MessengerParameters) -> Iterator["_Session"]:
        """Start both browsers, and sign in on the second phone, which is wired. At exit store both pages' reports."""
        with context.open_peer_ui() as peer, context.open_ui() as phone:
            session = _Session(context, parameters, phone, peer)
            try:
                session.plan()
                facts = context.service("xmpp")
                peer.open(APP.start.format(**facts), timeout_s=_OPEN_S)
                sign_in(peer, facts["peer"], facts["peer_password"])
                yield session
            finally:
                reports = {"phone": _last_report(phone), "second phone": _last_report(peer)}
                path = context.cell_dir / "logs" / "messenger.json"
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(reports, indent=1))


@dataclass
class _Session(Session[MessengerParameters]):
    phone: BrowserUi
    peer: BrowserUi
    deadline: float = 0.0
    planned: list[PlannedMessage] = field(default_factory=list)
    photos: list[Path] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Return the remaining time in which messages can be sent, s."""
        return self.deadline - time.monotonic()

    def plan(self) -> None:
        """Plan all messages in order, and generate the photos, so that the scenario does not wait for them later."""
        context, parameters = self.context, self.parameters
        kinds: list[Kind] = ["text", "smiley", "photo"] * parameters.rounds
        kinds += ["periodic"] * parameters.periodic
        rng = np.random.Generator(np.random.PCG64(context.rng.getrandbits(64)))
        for number, kind in enumerate(kinds, 1):
            if kind == "photo":
                picture = png(parameters.photo, rng)
                path = context.scratch_dir / f"photo-{number}.png"
                path.write_bytes(picture)
                self.photos.append(path)
                sha256 = hashlib.sha256(picture).hexdigest()
                self.planned.append(PlannedMessage(number, kind, size_bytes=len(picture), sha256=sha256))
            else:
                self.planned.append(PlannedMessage(number, kind, "" if kind == "smiley" else f"{_TEXT} {number}"))

    def run(self) -> None:
        """Send all messages that fit into the time.

        Raises:
            StepError: the app does not start, the second phone loses its connection to the service, or a message
                arrives with other content.
        """
        context = self.context
        self.deadline = time.monotonic() + context.time_limit_s - _SHOW_S - _END_S
        self._start()
        self._send_rounds()
        self._send_periodic()
        for fields in observations(self.planned, self.phone.evaluate(_REPORT_SCRIPT), self._receiver_report()):
            context.observe("message", **fields)

    def _start(self) -> None:
        facts, ui = self.context.service("xmpp"), self.phone
        started = time.monotonic()
        ui.open(APP.start.format(**facts), timeout_s=min(_OPEN_S, self.left_s))
        self.context.observe("clean", **check_clean(ui))
        sign_in(ui, facts["phone"], facts["phone_password"])
        self.context.observe("signed_in", duration_s=round(time.monotonic() - started, 4))
        ui.tap(APP.elements["contact who is there"], timeout_s=_CONTACT_S)

    def _send_rounds(self) -> None:
        parameters, photos = self.parameters, iter(self.photos)
        for message in self.planned:
            if message.kind == "periodic" or self.left_s < parameters.pause:
                return
            time.sleep(parameters.pause)
            self._compose(message, next(photos) if message.kind == "photo" else None)
            self._tap_send(message)
            self._await_delivery(message, parameters.patience)

    def _send_periodic(self) -> None:
        parameters = self.parameters
        messages = [message for message in self.planned if message.kind == "periodic"]
        begin = time.monotonic() + parameters.pause
        for index, message in enumerate(messages):
            due = begin + index * parameters.period
            if due > self.deadline:
                return
            self._compose(message)
            time.sleep(max(0.0, due - time.monotonic()))
            self._tap_send(message)
            last = index == len(messages) - 1
            patience_s = parameters.patience if last else min(parameters.patience, parameters.period / 2)
            self._await_delivery(message, patience_s)

    def _compose(self, message: PlannedMessage, picture: Path | None = None) -> None:
        ui = self.phone
        if message.kind == "smiley":
            ui.tap(APP.elements["smileys"])
        elif picture:
            ui.type(APP.elements["photo"], str(picture))
        else:
            ui.type(APP.elements["text"], message.body)

    def _tap_send(self, message: PlannedMessage) -> None:
        self.phone.tap(APP.elements["smiley"] if message.kind == "smiley" else APP.elements["send"])

    def _await_delivery(self, message: PlannedMessage, patience_s: float) -> None:
        """Wait until the phone shows that the message was delivered, at most `patience_s`.

        A message that is not delivered in this time is a result, not an error.

        Raises:
            StepError: the message was not delivered, because the second phone has lost its connection to the service.
        """
        time.sleep(_QUIET_S)
        try:
            self.phone.wait(APP.elements["last one delivered"], timeout_s=max(0.0, min(patience_s, self.left_s)))
        except StepError as error:
            status, other = self.phone.read(APP.elements["connection"]), self.peer.read(APP.elements["connection"])
            if other != _ONLINE:
                raise StepError(
                    f"messenger: message {message.number} ({message.kind}) was not delivered: the second phone "
                    f"lost its wired connection to the service (its state: {other}; the phone's: {status})"
                ) from error

    def _receiver_report(self) -> MessengerReport:
        """Wait until the second phone shows all messages that it received, at most 5 s. Return its report."""
        deadline = time.monotonic() + _SHOW_S
        while True:
            report: MessengerReport = self.peer.evaluate(_REPORT_SCRIPT)
            if not any(unshown(report)) or time.monotonic() > deadline:
                return report
            time.sleep(0.1)


def sign_in(ui: BrowserUi, account: str, password: str) -> None:
    """Sign in on the messenger's page with an account. Raises StepError if the contact list does not appear."""
    ui.type(APP.elements["account"], account)
    ui.type(APP.elements["password"], password, secret=True)
    ui.tap(APP.elements["sign in"])
    try:
        ui.wait(APP.elements["contact"], timeout_s=_SIGN_IN_S)
    except StepError as error:
        status, problem = ui.read(APP.elements["connection"]), ui.read(APP.elements["problem"])
        raise StepError(f"messenger: {account} could not sign in ({status}; {problem or 'no reason given'})") from error


def _last_report(ui: BrowserUi) -> MessengerReport | None:
    with contextlib.suppress(StepError):
        report: MessengerReport = ui.evaluate(_REPORT_SCRIPT)
        return report
    return None


SCENARIO = MessengerScenario()


def check_clean(ui: BrowserUi) -> Mapping[str, int]:
    """Check that the open page has stored nothing in the browser. Return kind of storage → number of items, all 0.

    Raises:
        StepError: a kind of storage has items.
    """
    counts: dict[str, int] = ui.evaluate(_STORAGE_SCRIPT)
    left = [f"{name}: {number}" for name, number in counts.items() if number]
    if left:
        raise StepError(f"messenger: the app has stored data before its start: {', '.join(left)}")
    return counts
