"""Define the service `xmpp`: the XMPP server Prosody with two accounts, and the web page of the lab's messenger."""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.configs import render, write_private
from mplab.base.errors import DeviceError
from mplab.base.programs import APPIUM_DIR, Program
from mplab.drivers.services import Service, ServiceContext, fetch

HERE = Path(__file__).parent
DOMAIN = "chat.lab"
MEDIA = "media.chat.lab"
LIBRARY = APPIUM_DIR / "node_modules" / "@xmpp" / "client" / "dist" / "xmpp.min.js"
NAMES: Mapping[str, str] = {"phone": "Phone", "peer": "Second phone"}
"""Account → its name in the other account's contact list."""

PROSODY = Program("prosody", ("prosody",), (), "prosody", "carries messages")

_PORT = 5280
_PASSWORD_BYTES = 16


class XmppService(Service):
    """A messenger for texts, photos and receipts between two phones: XMPP over WebSocket and TLS."""

    name = "xmpp"
    title = "Messages (XMPP)"
    network = "10.65.103.0/24"
    hosts: Mapping[str, str] = {DOMAIN: "10.65.103.1", MEDIA: "10.65.103.2"}
    programs = (PROSODY,)

    def prepare(self, context: ServiceContext) -> None:
        """Write two accounts with new passwords, their common contact list, the certificate and the configuration."""
        passwords = {name: secrets.token_urlsafe(_PASSWORD_BYTES) for name in NAMES}
        write_private(context.directory / "accounts.json", json.dumps(passwords))
        for name, password in passwords.items():
            write_private(_account_file(context.directory, name), f'return {{ ["password"] = "{password}"; }};\n')
        members = "".join(f"{name}@{DOMAIN}={shown}\n" for name, shown in NAMES.items())
        (context.directory / "groups.txt").write_text(f"[Contacts]\n{members}")
        context.authority.issue(self.name, [DOMAIN, MEDIA])
        directory = context.installed.path(context.directory)
        configuration = render(HERE, "prosody.cfg.lua.j2", directory=directory, **self._addresses())
        (context.directory / "prosody.cfg.lua").write_text(configuration)

    def nginx(self, context: ServiceContext) -> str:
        """Return the nginx ``server`` blocks for the messenger's page, the WebSocket and the photos."""
        return render(
            HERE,
            "nginx.conf.j2",
            certificate=context.installed.path(context.authority.issued(self.name)),
            www=context.installed.path(HERE / "www"),
            library=context.installed.path(LIBRARY),
            **self._addresses(),
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the command of Prosody."""
        configuration = context.installed.path(context.directory / "prosody.cfg.lua")
        return {"prosody": [context.installed.program(PROSODY), "-F", "--config", configuration]}

    def check(self, context: ServiceContext) -> None:
        """Check over TLS that nginx serves the messenger's page, and that Prosody answers for WebSocket and photos.

        Raises:
            DeviceError: a URL gives a wrong answer, or none.
        """
        expected_texts = {
            f"https://{DOMAIN}/": "</html>",
            f"https://{DOMAIN}/xmpp.js": "XMPP",
            f"https://{DOMAIN}/xmpp-websocket": "Websocket",
            f"https://{MEDIA}/file_share/none": "404",
        }
        for url, expected in expected_texts.items():
            answer = fetch(self, context, url, "--write-out", "\n%{http_code}")
            if answer.exit_code != 0 or expected.lower() not in answer.stdout.lower():
                problem = answer.stderr.strip() or f"HTTP status {answer.stdout.rpartition(chr(10))[2]}"
                raise DeviceError(self.name, f"{url} does not answer as it should: {problem}")

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return ``url`` of the messenger; the accounts as ``phone``, ``phone_password``, ``peer``, ``peer_password``;
        and ``accounts``, the private file that has both passwords.
        """
        file = context.directory / "accounts.json"
        passwords = json.loads(file.read_text())
        facts = {"url": f"https://{DOMAIN}/", "accounts": str(file)}
        for name, password in passwords.items():
            facts |= {name: f"{name}@{DOMAIN}", f"{name}_password": password}
        return facts

    def _addresses(self) -> dict[str, object]:
        return {
            "domain": DOMAIN,
            "media": MEDIA,
            "domain_address": self.hosts[DOMAIN],
            "media_address": self.hosts[MEDIA],
            "port": _PORT,
        }


def _account_file(directory: Path, name: str) -> Path:
    """Return the path of an account's file in Prosody's storage, whose folder names are percent-encoded."""
    return directory / "data" / DOMAIN.replace(".", "%2e") / "accounts" / f"{name}.dat"


SERVICE = XmppService()
