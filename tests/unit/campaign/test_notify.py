"""Messages reach real servers; a server that is down, slow or wrong is an outcome without secrets."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from email import message_from_string, policy
from pathlib import Path
from typing import Any

import pytest
import trustme

from mplab.base.errors import InputError
from mplab.campaign.notify import Delivery, Message, Notifier, check_notify
from mplab.format.campaignfile import KINDS, MailFile, NotifyFile
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import load_yaml
from tests.unit.campaign.receivers import HttpReceiver, SmtpReceiver, http_receiver, silent_server, smtp_receiver

SECRET = "s3cr3t-Token"  # noqa: S105 - made up
MESSAGE = Message(
    "failed", "Job 01-apps:\r\nBcc: x@y.z", "phone-1 <!channel> does not answer — 3 tries", "night-1", {"cells": 12}
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return "ca.pem"


def private(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(f"{text}\n", encoding="utf-8")
    path.chmod(mode)
    return path.name


def notifier(folder: Path, *, timeout_s: float = 20.0, whole_s: float = 60.0, **keys: Any) -> Notifier:
    file = NotifyFile.model_validate(keys)
    return Notifier(file, folder, timeout_s=timeout_s, whole_s=whole_s, pauses_s=(0.01, 0.01))


def by_webhook(folder: Path, port: int, *, scheme: str = "http", **keys: Any) -> Notifier:
    url = private(folder / "url", f"{scheme}://127.0.0.1:{port}/hooks/{SECRET}")
    own = {key: keys.pop(key) for key in ("format", "ca_file") if key in keys}
    return notifier(folder, webhook={"url_file": url, **own}, **keys)


def by_mail(folder: Path, port: int, *, whole_s: float = 60.0, timeout_s: float = 20.0, **keys: Any) -> Notifier:
    mail = {"to": ["lab@example.org"], "from": "mplab@example.org", "server": "127.0.0.1", "port": port, **keys}
    return notifier(folder, mail={"tls": "none", **mail}, whole_s=whole_s, timeout_s=timeout_s)


def one(deliveries: list[Delivery]) -> Delivery:
    (delivery,) = deliveries
    assert SECRET not in repr(delivery)
    return delivery


def test_json_has_what_chats_show_and_what_programs_read(tmp_path: Path) -> None:
    with http_receiver(HttpReceiver()) as receiver:
        assert one(by_webhook(tmp_path, receiver.port).send(MESSAGE)) == Delivery("webhook", ok=True)
    (posted,) = receiver.posted
    content = json.loads(posted.body)
    assert posted.path == f"/hooks/{SECRET}"
    assert posted.headers["Content-Type"] == "application/json"
    assert content["text"].startswith("Job 01-apps: Bcc: x@y.z\nphone-1 &lt;!channel&gt; does")  # escaped mention
    assert content["message"] == MESSAGE.text
    assert (content["kind"], content["campaign"], content["facts"]) == ("failed", "night-1", {"cells": 12})


def test_text_is_as_ntfy_takes_it(tmp_path: Path) -> None:
    message = Message("disk", "Läuft nicht\nmehr", "x" * 9000, "night-1")
    with http_receiver(HttpReceiver()) as receiver:
        assert one(by_webhook(tmp_path, receiver.port, format="text").send(message)).ok
    (posted,) = receiver.posted
    assert len(posted.body) < 4096
    assert posted.headers["Title"].startswith("=?utf-8?")
    assert (posted.headers["Priority"], posted.headers["Tags"]) == ("high", "floppy_disk")


@pytest.mark.parametrize(
    ("statuses", "delivery"),
    [
        ([500, 429, 200], Delivery("webhook", ok=True, tries=3)),
        ([503], Delivery("webhook", ok=False, error="answered 503", tries=3)),
        ([404], Delivery("webhook", ok=False, error="answered 404", tries=1)),
        ([302], Delivery("webhook", ok=False, error="answered 302: the URL leads elsewhere", tries=1)),
    ],
)
def test_what_may_get_better_is_tried_again(tmp_path: Path, statuses: list[int], delivery: Delivery) -> None:
    with http_receiver(HttpReceiver(statuses, headers={"Location": "/elsewhere"})) as receiver:
        assert one(by_webhook(tmp_path, receiver.port).send(MESSAGE)) == delivery
    assert len(receiver.posted) == delivery.tries


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        refused = "Connection refused"
        assert one(by_webhook(tmp_path, port).send(MESSAGE)) == Delivery("webhook", ok=False, error=refused, tries=3)
        assert one(by_mail(tmp_path, port).send(MESSAGE)) == Delivery("mail", ok=False, error=refused, tries=3)


def test_slow_receivers(tmp_path: Path) -> None:
    with http_receiver(HttpReceiver(slow=threading.Event())) as receiver:
        delivery = one(by_webhook(tmp_path, receiver.port, timeout_s=0.2).send(MESSAGE))
        assert delivery == Delivery("webhook", ok=False, error="no answer in time", tries=3)
    with silent_server() as port:
        assert one(by_mail(tmp_path, port, timeout_s=0.2).send(MESSAGE)).error == "no answer in time"
        assert one(by_mail(tmp_path, port, whole_s=0.2).send(MESSAGE)).error == "it took too long: given up"


def test_certificates_are_verified(tmp_path: Path, server_context: ssl.SSLContext, ca_file: str) -> None:
    with http_receiver(HttpReceiver(), server_context) as receiver:
        delivery = one(by_webhook(tmp_path, receiver.port, scheme="https").send(MESSAGE))
        assert "its certificate is not trusted" in delivery.error
        assert not receiver.posted
        assert one(by_webhook(tmp_path, receiver.port, scheme="https", ca_file=ca_file).send(MESSAGE)).ok


def test_only_what_is_wanted(tmp_path: Path) -> None:
    with http_receiver(HttpReceiver()) as receiver:
        some = by_webhook(tmp_path, receiver.port, on=["disk"])
        assert some.send(MESSAGE) == []
        assert one(some.send(MESSAGE, always=True)).ok
    assert Notifier(None, tmp_path).send(MESSAGE) == []
    assert NotifyFile.model_validate({"webhook": {"url_file": "url"}}).on == KINDS


def test_a_mail(tmp_path: Path) -> None:
    with smtp_receiver(SmtpReceiver()) as receiver:
        keys: dict[str, Any] = {"to": ["lab@example.org", "chief@example.org"]}
        assert one(by_mail(tmp_path, receiver.port, **keys).send(MESSAGE)) == Delivery("mail", ok=True)
    (text,) = receiver.mails
    mail = message_from_string(text, policy=policy.default)
    assert len(receiver.recipients[0]) == 2
    assert mail["Subject"] == "[mplab] Job 01-apps: Bcc: x@y.z"
    assert mail["Bcc"] is None
    assert "— 3 tries" in mail.get_content()
    assert "cells: 12" in mail.get_content()


def test_starttls_and_a_login(tmp_path: Path, server_context: ssl.SSLContext, ca_file: str) -> None:
    password = private(tmp_path / "password", SECRET)
    login: dict[str, Any] = {"user": "mplab", "password_file": password, "tls": "starttls"}
    with smtp_receiver(SmtpReceiver(server_context, password=SECRET)) as receiver:
        assert "not trusted" in one(by_mail(tmp_path, receiver.port, **login).send(MESSAGE)).error
        assert one(by_mail(tmp_path, receiver.port, **login, ca_file=ca_file).send(MESSAGE)).ok
        assert receiver.encrypted == [True]
    with smtp_receiver(SmtpReceiver(password=SECRET)) as receiver:  # a man in the middle has removed STARTTLS
        delivery = one(by_mail(tmp_path, receiver.port, **login, ca_file=ca_file).send(MESSAGE))
        assert "STARTTLS" in delivery.error
        assert not receiver.mails


@pytest.mark.parametrize(
    ("answers", "error", "tries"),
    [
        ({"AUTH": ["535 5.7.8 LINE"]}, "user or password refused (535)", 1),
        ({"AUTH": ["454 4.7.0 LINE"]}, "user or password refused (454)", 3),
        ({"RCPT": ["550 no such user"]}, "lab@example.org: answered 550 no such user", 1),
        ({"RCPT": ["450 wait", "250 ok"]}, "", 2),
        ({"MAIL": ["451 disk full"]}, "answered 451 disk full", 3),
        ({"MAIL": ["550 password is s3cr3t-Token"]}, "answered 550 password is …", 1),
        ({"DATA": ["554 no"]}, "answered 554 no", 1),
        ({"CONNECT": ["421 busy"]}, "answered 421 busy", 3),
    ],
)
def test_servers_that_refuse(tmp_path: Path, answers: dict[str, list[str]], error: str, tries: int) -> None:
    login: dict[str, Any] = {"user": "mplab", "password_file": private(tmp_path / "password", SECRET)}
    with smtp_receiver(SmtpReceiver(password=SECRET, answers=answers)) as receiver:
        delivery = one(by_mail(tmp_path, receiver.port, **login).send(MESSAGE))
    assert delivery == Delivery("mail", ok=not error, error=error, tries=tries)


def test_one_of_two_is_refused(tmp_path: Path) -> None:
    with smtp_receiver(SmtpReceiver(answers={"RCPT": ["250 ok", "451 later"]})) as receiver:
        keys: dict[str, Any] = {"to": ["lab@example.org", "chief@example.org"]}
        delivery = one(by_mail(tmp_path, receiver.port, **keys).send(MESSAGE))
    assert delivery == Delivery("mail", ok=False, error="chief@example.org: answered 451 later", tries=1)
    assert len(receiver.mails) == 1  # a recipient of the first try gets no second mail


def test_both_are_told_though_one_is_down(tmp_path: Path) -> None:
    url = private(tmp_path / "url", "http://127.0.0.1:9/x")
    with smtp_receiver(SmtpReceiver()) as receiver:
        mail = {"to": ["lab@example.org"], "from": "a@b.c", "server": "localhost", "port": receiver.port, "tls": "none"}
        deliveries = notifier(tmp_path, webhook={"url_file": url}, mail=mail).send(MESSAGE)
    assert [(delivery.to, delivery.ok) for delivery in deliveries] == [("webhook", False), ("mail", True)]


def problems(tmp_path: Path, text: str) -> Iterator[str]:
    file = tmp_path / "campaign.yaml"
    file.write_text(text, encoding="utf-8")
    document = load_yaml(file)
    checker = Checker(document)
    notify = checker.model(NotifyFile, document.data["notify"], ("notify",))
    if notify is not None:
        check_notify(checker, ("notify",), notify, tmp_path)
    return (line.removeprefix(f"{file}:") for line in checker.lines())


@pytest.mark.parametrize(
    ("notify", "expected"),
    [
        ("{}", "1: notify: notify needs a receiver: 'webhook' or 'mail'"),
        ("{webhook: {url_file: open}}", "1: notify.webhook.url_file: others may read DIR/open: chmod 600 DIR/open"),
        ("{webhook: {url_file: none}}", "1: notify.webhook.url_file: no such file: DIR/none"),
        ("{webhook: {url_file: plain}}", "1: notify.webhook.url_file: DIR/plain: an https URL is needed: the URL is"),
        ("{webhook: {url_file: lines}}", "1: notify.webhook.url_file: DIR/lines: one line of text is needed"),
        ("{webhook: {url_file: good, ca_file: x}}", "1: notify.webhook.ca_file: no such file: DIR/x"),
        ("{webhook: {url_file: good}, on: [done]}", "1: notify.on[0]: found 'done'. Allowed: failed, worse,"),
        ("{webhook: {url_file: good}, on: []}", "1: notify.on: empty: at least 1 needed"),
        (
            "{mail: {to: [x], from: a@b, server: h}}",
            "1: notify.mail.to[0]: address 'x': one mail address is needed, like 'lab@example.org'",
        ),
        (
            "{mail: {to: [a@b], from: a@b, server: h, tls: none}}",
            "1: notify.mail: tls none: only for a server on this machine, not for 'h'",
        ),
        (
            "{mail: {to: [a@b], from: a@b, server: h, user: u}}",
            "1: notify.mail: user and password_file: only one of them is given. Give both or none",
        ),
        ("{mail: {to: [a@b], sender: a@b, server: h}}", "1: notify.mail: key 'from' is missing"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, notify: str, expected: str) -> None:
    private(tmp_path / "open", f"https://x.example/{SECRET}", 0o640)
    private(tmp_path / "plain", f"http://x.example/{SECRET}")
    private(tmp_path / "lines", f"https://x.example/{SECRET}\nmore")
    private(tmp_path / "good", f"https://x.example/{SECRET}")
    message = "\n".join(problems(tmp_path, f"notify: {notify}\n"))
    assert message.replace(str(tmp_path), "DIR").startswith(expected)
    assert SECRET not in message


def test_a_good_file_has_no_problems(tmp_path: Path) -> None:
    private(tmp_path / "good", "https://user:word@ntfy.example/lab")
    assert list(problems(tmp_path, "notify: {webhook: {url_file: good, format: text}, on: [failed, disk]}\n")) == []


def test_a_secret_that_is_gone_when_the_campaign_begins(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        notifier(tmp_path, webhook={"url_file": "none"})


def test_usual_ports() -> None:
    keys = {"to": ["a@b"], "from": "a@b", "server": "::1"}
    ports = [MailFile.model_validate({**keys, "tls": tls}).port_used for tls in ("starttls", "tls", "none")]
    assert ports == [587, 465, 25]
