"""Send a message by e-mail (RFC 5321, RFC 5322)."""

import base64
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path

from mplab.base.files import read_secret
from mplab.campaign.notify.file import beside
from mplab.campaign.notify.message import URGENT, Message, NotDeliveredError, connection_problem
from mplab.format.campaignfile import MailFile

_MOST_WORDS = 120
_FIRST_PERMANENT = 500


class Mail:
    """One mail server with its recipients."""

    name = "mail"

    def __init__(self, settings: MailFile, folder: Path) -> None:
        """Read the password. Raises InputError."""
        self._settings = settings
        self._password = read_secret(beside(folder, settings.password_file)) if settings.password_file else ""
        self._authorities = str(beside(folder, settings.ca_file)) if settings.ca_file else None
        self._last: tuple[Message, EmailMessage] | None = None

    def deliver(self, message: Message, timeout_s: float) -> None:
        """Try to send a message once. A second try has the same Message-ID, so that mailboxes recognise the duplicate.

        Args:
            message: the message to send.
            timeout_s: limit for the connection, and for each answer, seconds.

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
        """Compose the e-mail for a message."""
        made = EmailMessage()
        made["From"] = self._settings.sender
        made["To"] = ", ".join(self._settings.to)
        made["Subject"] = f"[mplab] {message.line}"
        made["Date"] = formatdate()
        made["Message-ID"] = make_msgid("mplab", self._settings.sender.rpartition("@")[2])
        made["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic reply
        if message.kind in URGENT:
            made["Importance"] = "high"
        made.set_content(f"{message.body}\n", cte="quoted-printable")
        return made

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
        """Return a server's answer, without secrets that the server may have repeated."""
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
