"""Define the service `feed`: the social network of the scenario `facebook`."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mplab.base.configs import render
from mplab.base.errors import DeviceError
from mplab.base.programs import CURL, NGINX
from mplab.drivers.origin.config import has_http2_directive
from mplab.drivers.origin.content import MIN_PNG_BYTES, png
from mplab.drivers.services import Service, ServiceContext, fetch

FOLDER = Path(__file__).resolve().parent
APP_HOST, PICTURES_HOST = "feed.lab", "pictures.feed.lab"
PORT = 8104
"""TCP port of ``server.py`` on the origin's loopback interface."""

AVATARS, AVATAR_BYTES = 40, 2_500
PICTURES, PICTURE_BYTES = 60, 12_000
"""Number of pictures, and their mean size, bytes. Ten stories with ten avatars and six pictures load 97 kB of images;
in baerts2015 table 4.1, a round receives 332 kB / 3 = 111 kB."""

_SIGMA = 0.5
_SEED = 2015
_VERSION = "1"
"""Name of the folder in the cache that has the pictures. Change it whenever the output of `make_pictures` changes."""


class FeedService(Service):
    """A social network: the page of its web app, the server ``server.py``, and a host for pictures."""

    name = "feed"
    title = "Social network: stories, posts, photos"
    network = "10.65.104.0/24"
    hosts: Mapping[str, str] = {APP_HOST: "10.65.104.1", PICTURES_HOST: "10.65.104.2"}
    programs = (CURL,)

    def prepare(self, context: ServiceContext) -> None:
        """Issue the TLS certificate of both hosts, and generate the pictures unless the cache has them."""
        context.authority.issue(self.name, list(self.hosts))
        if not _index(context).exists():
            make_pictures(_index(context).parent)

    def nginx(self, context: ServiceContext) -> str:
        """Return two nginx ``server`` blocks with HTTP/2: one for the app and one for the pictures."""
        return render(
            FOLDER,
            "nginx.conf.j2",
            app_host=APP_HOST,
            app_address=self.hosts[APP_HOST],
            pictures_host=PICTURES_HOST,
            pictures_address=self.hosts[PICTURES_HOST],
            certificate=context.installed.path(context.authority.issued(self.name)),
            http2_directive=has_http2_directive(context.installed.version(NGINX)),
            www=context.installed.path(FOLDER / "www"),
            pictures=context.installed.path(_index(context).parent),
            port=PORT,
        )

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the name and the command line of the only program, ``server.py``."""
        where = context.installed
        server, index = where.path(FOLDER / "server.py"), where.path(_index(context))
        return {"feed": [where.python(), "-I", server, str(PORT), index]}

    def check(self, context: ServiceContext) -> None:
        """Check that ``server.py`` answers through nginx. Raises DeviceError if it does not."""
        answer = fetch(self, context, f"https://{APP_HOST}/api/health", "--fail")
        if answer.exit_code != 0:
            raise DeviceError(self.name, f"https://{APP_HOST}/ does not answer", stderr=answer.stderr)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return the URLs of the app (``url``) and of its pictures (``pictures``)."""
        return {"url": f"https://{APP_HOST}", "pictures": f"https://{PICTURES_HOST}"}


def _index(context: ServiceContext) -> Path:
    return context.cache / _VERSION / "index.json"


def make_pictures(folder: Path) -> None:
    """Write PNG files whose sizes are log-normal, and ``index.json`` (kind → path → bytes), to `folder`.

    The files are the same each time.
    """
    rng = np.random.Generator(np.random.PCG64(_SEED))
    index: dict[str, dict[str, int]] = {}
    for kind, count, mean in (("avatars", AVATARS, AVATAR_BYTES), ("pictures", PICTURES, PICTURE_BYTES)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        spread = rng.lognormal(-(_SIGMA**2) / 2, _SIGMA, count)
        sizes = [max(MIN_PNG_BYTES, math.floor(mean * factor)) for factor in spread / spread.mean()]
        index[kind] = {}
        for number, size in enumerate(sizes):
            path = f"{kind}/{number:02}.png"
            (folder / path).write_bytes(png(size, rng))
            index[kind][path] = size
    unfinished = folder / f"index.{os.getpid()}"
    unfinished.write_text(json.dumps(index, indent=1))
    unfinished.rename(folder / "index.json")


SERVICE = FeedService()
