"""Chat by XMPP over WebSocket (RFC 7395) with delivery receipts (XEP-0184), without a screen.

This program imports nothing of mplab. ``chat.py URL --accounts FILE`` signs in and keeps running. It prints
``state=online`` when the contact is online. ``chat.py send TEXT`` sends a message through this running process, which
must be in the same network namespace. It prints ``state=sent``, and exits with 0 when the receipt has arrived.

FILE is a JSON object, account → password, readable only by its owner. The first account is that of this program, the
second that of the contact.
"""

import argparse
import base64
import json
import socket
import ssl
import sys
import threading
import time
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

_ADDRESS = "\0mplab-chat"
"""Abstract unix socket of the process that has signed in. As an abstract socket it belongs to the network namespace."""
_FRAMING = "urn:ietf:params:xml:ns:xmpp-framing"
_RECEIPTS = "urn:xmpp:receipts"
_TIMEOUT_S = 20.0
_SIGN_IN_S = 8.0
_PATIENCE_S = 120.0
_POLL_S = 0.05


class XmppSession:
    """An XMPP session: the connection with which an account has signed in.

    Args:
        url: URL of the messenger's page; the WebSocket is on the same server.
        accounts: account → password; the first account signs in, the second is the contact.
        cacert: file with the certificate authority of the server; "": use the authorities of the system.

    Raises:
        OSError: the server refuses the account, or cannot be reached.
    """

    def __init__(self, url: str, accounts: dict[str, str], cacert: str) -> None:
        from websocket import create_connection

        self._domain = urlsplit(url).hostname or ""
        me, *others = accounts
        self.contact = f"{others[0]}@{self._domain}"
        address = f"wss://{urlsplit(url).netloc}/xmpp-websocket"
        options = {"cert_reqs": ssl.CERT_REQUIRED, **({"ca_certs": cacert} if cacert else {})}
        self._socket = create_connection(
            address, timeout=_TIMEOUT_S, subprotocols=["xmpp"], sslopt=options, http_no_proxy=["*"]
        )
        self._lock = threading.Lock()
        self._waiting: dict[str, socket.socket] = {}
        self._sign_in(me, accounts[me])

    def _sign_in(self, name: str, password: str) -> None:
        self._open()
        plain = base64.b64encode(f"\0{name}\0{password}".encode()).decode()
        self._write(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>")
        if not self._read().tag.endswith("}success"):
            raise OSError("the account was refused")
        self._open()
        bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        self._write(f"<iq xmlns='jabber:client' type='set' id='bind'>{bind}</iq>")
        while self._read().get("id") != "bind":
            pass
        self._write("<presence xmlns='jabber:client'/>")

    def _open(self) -> None:
        self._write(f"<open xmlns='{_FRAMING}' to='{self._domain}' version='1.0'/>")
        while not self._read().tag.endswith("}features"):
            pass

    def _write(self, stanza: str) -> None:
        self._socket.send(stanza)

    def _read(self) -> ET.Element:
        text = self._socket.recv()
        if not text:
            raise OSError("the server has closed the connection")
        return ET.fromstring(text)  # noqa: S314 - Python's expat refuses what expands

    def listen(self) -> None:
        """Read XMPP stanzas until the connection ends: report the contact's presence, receipts and errors.

        Raises:
            OSError: the connection has ended.
        """
        self._socket.settimeout(None)
        while True:
            stanza = self._read()
            sender = (stanza.get("from") or "").partition("/")[0]
            if stanza.tag.endswith("}presence") and sender == self.contact and not stanza.get("type"):
                _tell("state=online")
            received = stanza.find(f"{{{_RECEIPTS}}}received")
            if received is not None:
                self._answer(received.get("id", ""), "delivered")
            elif stanza.tag.endswith("}message") and stanza.get("type") == "error":
                self._answer(stanza.get("id", ""), "refused")

    def send(self, text: str, asker: socket.socket) -> None:
        """Send a message to the contact. Write ``sent`` to the socket `asker`; later ``delivered`` or ``refused``."""
        number = str(uuid.uuid4())
        with self._lock:
            self._waiting[number] = asker
        body = f"<body>{escape(text)}</body><request xmlns='{_RECEIPTS}'/>"
        self._write(f"<message xmlns='jabber:client' to='{self.contact}' type='chat' id='{number}'>{body}</message>")
        asker.sendall(b"sent\n")

    def _answer(self, number: str, outcome: str) -> None:
        with self._lock:
            asker = self._waiting.pop(number, None)
        if asker is not None:
            asker.sendall(f"{outcome}\n".encode())
            asker.close()


def stay(url: str, accounts: Path, cacert: str) -> None:
    """Sign in, and send messages for calls of ``chat.py send`` until the connection ends. Raises OSError then."""
    session = XmppSession(url, json.loads(accounts.read_text()), cacert)
    server = socket.socket(socket.AF_UNIX)
    server.bind(_ADDRESS)
    server.listen()
    _tell("state=signed_in")

    def serve() -> None:
        while True:
            asker, _ = server.accept()
            session.send(asker.makefile("rb").readline().decode().strip(), asker)

    threading.Thread(target=serve, daemon=True).start()
    session.listen()


def send(text: str) -> int:
    """Send a message through the process that has signed in. Return the exit code: 0 if it was delivered, else 1."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_PATIENCE_S)
        _connect(sock)
        sock.sendall(" ".join(text.split()).encode() + b"\n")
        for line in sock.makefile():
            _tell(f"state={line.strip()}")
            if line.strip() == "delivered":
                return 0
    return 1


def _connect(sock: socket.socket) -> None:
    """Connect `sock` to the process that has signed in. Raises OSError if no process accepts it within 8 s."""
    deadline = time.monotonic() + _SIGN_IN_S
    while sock.connect_ex(_ADDRESS):
        if time.monotonic() > deadline:
            raise OSError("not signed in")
        time.sleep(_POLL_S)


def main() -> int:
    """Run the program. Return the exit code: 0 if a message was delivered, 1 after an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="the messenger's URL, or 'send'")
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--accounts", type=Path)
    parser.add_argument("--cacert", default="")
    options = parser.parse_args()
    try:
        if options.url == "send":
            return send(options.text)
        stay(options.url, options.accounts, options.cacert)
    except (OSError, ValueError, KeyError, IndexError, ET.ParseError) as error:
        _tell(str(error) or type(error).__name__)
    except Exception as error:
        _tell(f"{type(error).__name__}: {error}")
    return 1


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
