"""The other side of a chat: signs in as the second account and confirms every message.

``python -m tests.device.contact URL ACCOUNTS CACERT``.
"""

import json
import sys
from pathlib import Path

from mplab.device.apps.chat import XmppSession

_RECEIPTS = "urn:xmpp:receipts"


class Contact(XmppSession):
    """Answers each message with its receipt (XEP-0184)."""

    def answer(self) -> None:
        self._socket.settimeout(None)
        while True:
            stanza = self._read()
            if stanza.find(f"{{{_RECEIPTS}}}request") is not None:
                receipt = f"<received xmlns='{_RECEIPTS}' id='{stanza.get('id')}'/>"
                self._write(f"<message xmlns='jabber:client' to='{stanza.get('from')}'>{receipt}</message>")


def main() -> None:
    url, accounts, cacert = sys.argv[1:]
    passwords = json.loads(Path(accounts).read_text())
    Contact(url, dict(reversed(passwords.items())), cacert).answer()


if __name__ == "__main__":
    main()
