"""Define the service `upload`: a server that receives the files of the scenarios `dropbox` and `drive`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.configs import render
from mplab.base.errors import DeviceError
from mplab.base.programs import CURL
from mplab.drivers.services import Service, ServiceContext, fetch

FOLDER = Path(__file__).resolve().parent
PORT = 8105
"""TCP port of ``server.py`` on the origin's loopback interface."""


class UploadService(Service):
    """A server for uploads with one host name per app, so that the rules of a policy can distinguish the apps."""

    name = "upload"
    title = "File store"
    network = "10.65.105.0/24"
    hosts: Mapping[str, str] = {"dropbox.lab": "10.65.105.1", "drive.lab": "10.65.105.2"}
    programs = (CURL,)

    def prepare(self, context: ServiceContext) -> None:
        """Issue the TLS certificate of all host names."""
        context.authority.issue(self.name, list(self.hosts))

    def nginx(self, context: ServiceContext) -> str:
        """Return one nginx ``server`` block for each host name."""
        return render(
            FOLDER,
            "nginx.conf.j2",
            hosts=self.hosts,
            certificate=context.installed.path(context.authority.issued(self.name)),
            www=context.installed.path(FOLDER / "www"),
            port=PORT,
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the name and the command line of the only program, ``server.py``."""
        where = context.installed
        return {"upload": [where.python(), "-I", where.path(FOLDER / "server.py"), str(PORT)]}

    def check(self, context: ServiceContext) -> None:
        """Check that ``server.py`` answers through nginx. Raises DeviceError if it does not."""
        host = next(iter(self.hosts))
        answer = fetch(self, context, f"https://{host}/files/", "--fail")
        if answer.exit_code != 0:
            raise DeviceError(self.name, f"https://{host}/files/ does not answer", stderr=answer.stderr)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return name of the app → URL to which it uploads."""
        return {host.removesuffix(".lab"): f"https://{host}" for host in self.hosts}


SERVICE = UploadService()
