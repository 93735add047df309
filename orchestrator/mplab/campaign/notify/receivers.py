"""Deliver messages by HTTP POST (Slack, Mattermost, ntfy, programs) and e-mail; check the files of their secrets."""

import base64
import html
import json
import re
import smtplib
import ssl
from collections.abc import Callable
from email.header import Header
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from urllib.parse import urlsplit

import requests

from mplab.base.errors import InputError
from mplab.base.files import read_secret
from mplab.campaign.notify.message import URGENT, Message, NotDeliveredError, connection_problem
from mplab.format.campaignfile import MailFile, NotifyFile, WebhookFile
from mplab.format.names import is_loopback
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import KeyPath


def beside(folder: Path, path: str) -> Path:
    """Return `path` with ``~`` expanded; if it is relative, `folder` is put in front of it."""
    return folder / Path(path).expanduser()


def read_url(path: Path) -> str:
    """Return the URL in a private file.

    Raises:
        InputError: the file is unusable, or its content is not a URL to which a secret may be sent.
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
        raise InputError(
            f"{path}: an https URL is needed: the URL is a secret, and http is allowed only for this machine"
        )
    return url


def check_notify(checker: Checker, path: KeyPath, notify: NotifyFile, folder: Path) -> None:
    """Add the problems of the files that ``notify:`` names to `checker`.

    Args:
        checker: checker of the campaign file.
        path: path of the key ``notify`` in the file.
        notify: value of the key.
        folder: folder of the campaign file, to which names of files are relative.
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
    """A receiver of messages by HTTP POST."""

    name = "webhook"

    def __init__(self, settings: WebhookFile, folder: Path) -> None:
        """Read the receiver's URL from its file. Raises InputError: the file is unusable or holds no valid URL."""
        self._url = read_url(beside(folder, settings.url_file))
        self._format = settings.format
        self._verify = str(beside(folder, settings.ca_file)) if settings.ca_file else True

    def deliver(self, message: Message, timeout_s: float) -> None:
        """Try to post a message once.

        Args:
            message: the message to send.
            timeout_s: time limit for the connection, and for each part of the answer, seconds.

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
    """Return HTTP headers and body for a message as JSON.

    Chat programs show the key ``text``, in which ``&``, ``<`` and ``>`` are escaped as they require.
    """
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
    """Return HTTP headers and body for a message in the form of ntfy: https://docs.ntfy.sh/publish/."""
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


_MOST_WORDS = 120
_FIRST_PERMANENT = 500


class Mail:
    """One mail server with its recipients."""

    name = "mail"

    def __init__(self, settings: MailFile, folder: Path) -> None:
        """Read the user's password from its file. Raises InputError: the file is unusable."""
        self._settings = settings
        self._password = read_secret(beside(folder, settings.password_file)) if settings.password_file else ""
        self._authorities = str(beside(folder, settings.ca_file)) if settings.ca_file else None
        self._last: tuple[Message, EmailMessage] | None = None

    def deliver(self, message: Message, timeout_s: float) -> None:
        """Try to send a message once. A second try has the same Message-ID, so that mailboxes recognise the duplicate.

        Args:
            message: the message to send.
            timeout_s: time limit for the connection, and for each answer of the server, seconds.

        Raises:
            NotDeliveredError: the server refused the message, or some of its recipients.
        """
        if self._last is None or self._last[0] is not message:
            self._last = message, self.compose(message)
        try:
            with self._connect(timeout_s) as server:
                if self._settings.user:
                    server.login(self._settings.user, self._password)
                refused = server.send_message(self._last[1])
        except smtplib.SMTPAuthenticationError as error:
            again = error.smtp_code < _FIRST_PERMANENT
            raise NotDeliveredError(f"user or password refused ({error.smtp_code})", again=again) from None
        except smtplib.SMTPRecipientsRefused as error:
            raise self._refused(error.recipients) from None
        except smtplib.SMTPResponseException as error:
            again = error.smtp_code < _FIRST_PERMANENT
            raise NotDeliveredError(self._answer(error.smtp_code, error.smtp_error), again=again) from None
        except smtplib.SMTPNotSupportedError as error:
            raise NotDeliveredError(f"the server cannot do it: {error}", again=False) from None
        except smtplib.SMTPServerDisconnected as error:
            late = isinstance(error.__context__, TimeoutError)
            problem = "no answer in time" if late else "the server has closed the connection"
            raise NotDeliveredError(problem, again=True) from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NotDeliveredError(connection_problem(error), again=not isinstance(error, ValueError)) from None
        if refused:
            raise self._refused(refused)

    def compose(self, message: Message) -> EmailMessage:
        """Return the e-mail for a message."""
        mail = EmailMessage()
        mail["From"] = self._settings.sender
        mail["To"] = ", ".join(self._settings.to)
        mail["Subject"] = f"[mplab] {message.line}"
        mail["Date"] = formatdate()
        mail["Message-ID"] = make_msgid("mplab", self._settings.sender.rpartition("@")[2])
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic reply
        if message.kind in URGENT:
            mail["Importance"] = "high"
        mail.set_content(f"{message.body}\n", cte="quoted-printable")
        return mail

    def _connect(self, timeout_s: float) -> smtplib.SMTP:
        settings = self._settings
        where = settings.server, settings.port_used
        if settings.tls == "none":
            return smtplib.SMTP(*where, timeout=timeout_s)
        context = ssl.create_default_context(cafile=self._authorities)
        if settings.tls == "tls":
            return smtplib.SMTP_SSL(*where, timeout=timeout_s, context=context)
        server = smtplib.SMTP(*where, timeout=timeout_s)
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server

    def _refused(self, recipients: dict[str, tuple[int, bytes]]) -> NotDeliveredError:
        texts = [f"{who}: {self._answer(code, words)}" for who, (code, words) in recipients.items()]
        again = len(recipients) == len(self._settings.to) and all(
            code < _FIRST_PERMANENT for code, _ in recipients.values()
        )
        return NotDeliveredError("; ".join(texts), again=again)

    def _answer(self, code: int, words: bytes | str) -> str:
        """Return the mail server's answer as text, without secrets that the server may have repeated."""
        text = words.decode(errors="replace") if isinstance(words, bytes) else words
        for secret in self._secrets():
            text = text.replace(secret, "…")
        return f"answered {code} {' '.join(text.split())[:_MOST_WORDS]}"

    def _secrets(self) -> list[str]:
        if not self._password:
            return []
        user, password = self._settings.user, self._password
        sent = (password, f"\0{user}\0{password}")
        return [password, *(base64.b64encode(text.encode()).decode() for text in sent)]
