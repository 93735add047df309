"""The service `upload`: a file store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mplab.base.configs import render
from mplab.base.errors import DeviceError
from mplab.base.programs import CURL
from mplab.drivers.services import Service, ServiceContext, fetch

FOLDER = Path(__file__).resolve().parent
PORT = 8105
"""On the origin's loopback."""


class UploadService(Service):
    """`Service`: takes files; under a name for each of the apps, so that rules of a policy can tell them apart."""

    name = "upload"
    title = "File store"
    network = "10.65.105.0/24"
    hosts: Mapping[str, str] = {"dropbox.lab": "10.65.105.1", "drive.lab": "10.65.105.2"}
    programs = (CURL,)

    def prepare(self, context: ServiceContext) -> None:
        """Certificate."""
        context.authority.issue(self.name, list(self.hosts))

    def nginx(self, context: ServiceContext) -> str:
        """A server for each name."""
        return render(
            FOLDER,
            "nginx.conf.j2",
            hosts=self.hosts,
            certificate=context.installed.path(context.authority.issued(self.name)),
            www=context.installed.path(FOLDER / "www"),
            port=PORT,
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """The server behind nginx."""
        where = context.installed
        return {"upload": [where.python(), "-I", where.path(FOLDER / "server.py"), str(PORT)]}

    def check(self, context: ServiceContext) -> None:
        """The server answers through nginx."""
        host = next(iter(self.hosts))
        answer = fetch(self, context, f"https://{host}/files/", "--fail")
        if answer.exit_code != 0:
            raise DeviceError(self.name, f"https://{host}/files/ does not answer", stderr=answer.stderr)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Where each app's store is."""
        return {host.removesuffix(".lab"): f"https://{host}" for host in self.hosts}


SERVICE = UploadService()
