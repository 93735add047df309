"""Send messages about a campaign to its receivers within a bounded time."""

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from mplab.campaign.notify.message import Delivery, Message, NotDeliveredError
from mplab.campaign.notify.receivers import Mail, Webhook
from mplab.format.campaignfile import NotifyFile

TIMEOUT_S = 10.0
"""Limit for the connection, and for each answer of a receiver, seconds."""
WHOLE_S = 45.0
"""Limit for sending one message to all receivers, even if receivers or name servers hang, seconds."""
PAUSES_S = (1.0, 5.0)
"""Pauses before the second and the third try, seconds."""


class Receiver(Protocol):
    """A receiver of messages: a webhook or a mail server."""

    name: str

    def deliver(self, message: Message, timeout_s: float) -> None:
        """Try to deliver a message once. Raises NotDeliveredError."""


class Notifier:
    """Sender of messages to the receivers of a campaign."""

    def __init__(
        self,
        settings: NotifyFile | None,
        folder: Path,
        *,
        timeout_s: float = TIMEOUT_S,
        whole_s: float = WHOLE_S,
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        """Read the secrets of the receivers (URLs, passwords) from their files.

        Args:
            settings: receivers, and the kinds of messages that they get; None: no receiver.
            folder: folder of the campaign file, to which names of files are relative.
            timeout_s: time limit for a connection, and for each answer of a receiver, seconds.
            whole_s: time limit for sending a message to all receivers, with all tries, seconds.
            pauses_s: pauses before the second and each further try, seconds.

        Raises:
            InputError: a file with a secret is unusable.
        """
        self._on = frozenset(settings.on) if settings is not None else frozenset()
        self._receivers: list[Receiver] = []
        if settings is not None and settings.webhook is not None:
            self._receivers.append(Webhook(settings.webhook, folder))
        if settings is not None and settings.mail is not None:
            self._receivers.append(Mail(settings.mail, folder))
        self._timeout_s = timeout_s
        self._whole_s = whole_s
        self._pauses_s = pauses_s

    def send(self, message: Message, *, always: bool = False) -> list[Delivery]:
        """Send a message to all receivers in parallel. Return one outcome for each receiver.

        No outcome is returned if the receivers do not want messages of this kind. A failed delivery is an outcome,
        never an exception. The call takes at most `whole_s` seconds.

        Args:
            message: the message to send.
            always: True: send the message even if its kind is not wanted; for a test.
        """
        if not always and message.kind not in self._on:
            return []
        tellings = [_Telling(receiver, message, self._timeout_s, self._pauses_s) for receiver in self._receivers]
        return _finished(tellings, time.monotonic() + self._whole_s)


class _Telling(threading.Thread):
    """A thread that sends one message to one receiver.

    It is a daemon thread: after the deadline of `outcome` it is abandoned, and does not delay the end of the process.
    """

    def __init__(self, receiver: Receiver, message: Message, timeout_s: float, pauses_s: tuple[float, ...]) -> None:
        super().__init__(name=f"notify-{receiver.name}", daemon=True)
        self.receiver = receiver
        self._message = message
        self._timeout_s = timeout_s
        self._pauses_s = pauses_s
        self._given_up = threading.Event()
        self._delivery: Delivery | None = None
        self.start()

    def run(self) -> None:
        """Try to deliver the message; after a failure that may be temporary, pause and try again."""
        tries, problem = 0, ""
        for pause_s in (0.0, *self._pauses_s):
            if self._given_up.wait(pause_s):
                return
            tries += 1
            try:
                self.receiver.deliver(self._message, self._timeout_s)
            except NotDeliveredError as error:
                problem = str(error)
                if not error.again:
                    break
            except Exception as error:
                problem = f"not possible ({type(error).__name__})"
                break
            else:
                self._delivery = Delivery(self.receiver.name, ok=True, tries=tries)
                return
        self._delivery = Delivery(self.receiver.name, ok=False, error=problem, tries=tries)

    def outcome(self, deadline: float) -> Delivery:
        """Wait for the end of the delivery, at most until `deadline` (monotonic seconds), and return its outcome.

        If it has not ended by then, the outcome is a failure, and no further try is made.
        """
        self.join(max(0.0, deadline - time.monotonic()))
        self._given_up.set()
        return self._delivery or Delivery(self.receiver.name, ok=False, error="it took too long: given up")


def _finished(tellings: Iterable[_Telling], deadline: float) -> list[Delivery]:
    return [telling.outcome(deadline) for telling in tellings]
