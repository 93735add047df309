"""Define the service `turn`: coturn, the web page that makes calls, and recorded speech for them."""

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.configs import render, write_private
from mplab.base.errors import DeviceError
from mplab.base.programs import Program
from mplab.drivers.services import Service, ServiceContext

from .speech import ESPEAK, make_recording

HERE = Path(__file__).parent
HOST, TURN_HOST = "call.lab", "turn.lab"
PORT = 3478
USER = "mplab"

TURNSERVER = Program("turnserver", ("turnserver",), ("--version",), "coturn", "relays calls")

_PASSWORD_BYTES = 16
_CHECK_TIMEOUT_S = 5.0


class TurnService(Service):
    """A TURN server that accepts only TCP, and the web page that caller and callee open."""

    name = "turn"
    title = "Calls (WebRTC over TURN)"
    network = "10.65.102.0/24"
    hosts: Mapping[str, str] = {TURN_HOST: "10.65.102.1", HOST: "10.65.102.2"}
    ports = (PORT,)
    programs = (TURNSERVER, ESPEAK)

    def prepare(self, context: ServiceContext) -> None:
        """Generate the speech unless the cache has it. Issue the certificate. Configure coturn with a new password."""
        make_recording(context.cache)
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        context.authority.issue(self.name, [HOST])
        (context.directory / "rooms").mkdir(exist_ok=True)
        values = {"user": USER, "password": password, "realm": TURN_HOST, "port": self.ports[0]}
        directory = context.installed.path(context.directory)
        text = render(HERE, "turnserver.conf.j2", directory=directory, address=self.hosts[TURN_HOST], **values)
        write_private(context.directory / "turnserver.conf", text)
        server = {
            "urls": f"turn:{TURN_HOST}:{self.ports[0]}?transport=tcp",
            "username": USER,
            "credential": password,
        }
        # The page fetches the credentials itself: browser automation, which is logged, never carries them.
        write_private(
            context.directory / "config.json", json.dumps({"iceServers": [server], "iceTransportPolicy": "relay"})
        )

    def nginx(self, context: ServiceContext) -> str:
        """Return the nginx ``server`` block: it serves the page, and relays session descriptions between both ends."""
        return render(
            HERE,
            "nginx.conf.j2",
            host=HOST,
            address=self.hosts[HOST],
            certificate=context.installed.path(context.authority.issued(self.name)),
            www=context.installed.path(HERE / "www"),
            directory=context.installed.path(context.directory),
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the command of coturn."""
        where = context.installed
        return {"turn": [where.program(TURNSERVER), "-c", where.path(context.directory / "turnserver.conf")]}

    def check(self, context: ServiceContext) -> None:
        """Check that coturn answers over TCP and requires credentials. Raises DeviceError if it does not."""
        argv = [sys.executable, "-I", "-S", str(HERE / "probe.py"), self.hosts[TURN_HOST], str(self.ports[0])]
        answer = context.host.run(argv, timeout_s=_CHECK_TIMEOUT_S, check=False)
        if answer.exit_code != 0:
            problem = answer.stderr.strip() or f"exit code {answer.exit_code}"
            raise DeviceError(self.name, f"coturn does not answer as it should: {problem}")

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return ``url`` of the page, and the paths of the `SpeechFiles` by their names."""
        recording = make_recording(context.cache)
        files = ("sent", "reference", "utterances", "quiet")
        return {"url": f"https://{HOST}/", **{name: str(getattr(recording, name)) for name in files}}


SERVICE = TurnService()
