"""Send a message by HTTP POST: to Slack, Mattermost and similar services, ntfy, or a program."""

import html
import json
from email.header import Header
from pathlib import Path

import requests

from mplab.campaign.notify.file import beside, read_url
from mplab.campaign.notify.message import URGENT, Message, NotDeliveredError, connection_problem
from mplab.format.campaignfile import WebhookFile

_MOST_CHARACTERS = 3500
"""Limit of a message: Slack shows 4000 characters, ntfy accepts 4096 bytes as text."""
_TAGS = {
    "failed": "x",
    "worse": "chart_with_downwards_trend",
    "quarantined": "no_entry",
    "disk": "floppy_disk",
    "finished": "checkered_flag",
    "interrupted": "octagonal_sign",
}
_TRY_AGAIN = frozenset({408, 425, 429})
_FIRST_ERROR, _FIRST_SERVER_ERROR = 300, 500


class Webhook:
    """A receiver with a URL."""

    name = "webhook"

    def __init__(self, settings: WebhookFile, folder: Path) -> None:
        """Read the URL from its file. Raises InputError when the file is unusable or holds no valid URL."""
        self._url = read_url(beside(folder, settings.url_file))
        self._format = settings.format
        self._verify = str(beside(folder, settings.ca_file)) if settings.ca_file else True

    def deliver(self, message: Message, timeout_s: float) -> None:
        """Try to post a message once.

        Args:
            message: the message to send.
            timeout_s: limit for the connection, and for each part of the answer, seconds.

        Raises:
            NotDeliveredError: the receiver did not accept the message.
        """
        headers, body = as_text(message) if self._format == "text" else as_json(message)
        try:
            # Only the status is read. Redirects are not followed: they could disclose the secret URL.
            with requests.post(
                self._url,
                data=body,
                headers={"User-Agent": "mplab", **headers},
                timeout=timeout_s,
                verify=self._verify,
                allow_redirects=False,
                stream=True,
            ) as answer:
                status = answer.status_code
        except requests.Timeout:
            raise NotDeliveredError("no answer in time", again=True) from None
        except (requests.RequestException, OSError, ValueError) as error:
            raise NotDeliveredError(connection_problem(error), again=not isinstance(error, ValueError)) from None
        if status >= _FIRST_ERROR:
            again = status in _TRY_AGAIN or status >= _FIRST_SERVER_ERROR
            where = ": the URL leads elsewhere" if status < 400 else ""
            raise NotDeliveredError(f"answered {status}{where}", again=again)


def as_json(message: Message) -> tuple[dict[str, str], bytes]:
    """Return headers and body. Chat programs show ``text``, with ``&``, ``<``, ``>`` escaped as they require."""
    content = {
        "text": html.escape(_cut(f"{message.line}\n{message.body}"), quote=False),
        "kind": message.kind,
        "title": message.line,
        "message": message.text,
        "campaign": message.campaign,
        "facts": dict(message.facts),
    }
    return {"Content-Type": "application/json"}, json.dumps(content).encode()


def as_text(message: Message) -> tuple[dict[str, str], bytes]:
    """Return headers and body in the form of ntfy: https://docs.ntfy.sh/publish/."""
    title = message.line[:200]
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Title": title if title.isascii() else Header(title, "utf-8", maxlinelen=2**16).encode(),
        "Priority": "high" if message.kind in URGENT else "default",
        "Tags": _TAGS[message.kind],
    }
    return headers, _cut(message.body).encode(errors="replace")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
