"""Define the service `dash`: two video sites, each with a page that runs dash.js, and with clips in segments."""

from collections.abc import Mapping
from pathlib import Path

from mplab.base.configs import render
from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.fetched import SETUP
from mplab.base.programs import APPIUM_DIR, NGINX
from mplab.drivers.origin.config import has_http2_directive
from mplab.drivers.services import Service, ServiceContext, fetch

from .content import FFMPEG, SITES, build_content

HERE = Path(__file__).parent
LIBRARY = APPIUM_DIR / "node_modules" / "dashjs" / "dist" / "modern" / "umd" / "dash.mediaplayer.min.js"


class DashService(Service):
    """Two video sites that serve clips by MPEG-DASH, over HTTP/2 and TLS."""

    name = "dash"
    title = "Adaptive video (MPEG-DASH)"
    network = "10.65.101.0/24"
    rtt_ms = 9.5
    """Round-trip time between proxy and service, ms: the median in han2015 table 1."""
    hosts: Mapping[str, str] = {
        "www.tube.lab": "10.65.101.1",
        "media.tube.lab": "10.65.101.2",
        "www.motion.lab": "10.65.101.3",
        "media.motion.lab": "10.65.101.4",
    }
    programs = (FFMPEG,)

    def prepare(self, context: ServiceContext) -> None:
        """Encode the clips unless the cache has them, and issue the TLS certificate of all hosts.

        Raises:
            LabNotReadyError: dash.js is not installed.
        """
        if not LIBRARY.is_file():
            raise LabNotReadyError(f"dash.js was not found at {LIBRARY}; install it: {SETUP}")
        build_content(context.cache)
        context.authority.issue(self.name, list(self.hosts))

    def nginx(self, context: ServiceContext) -> str:
        """Return nginx ``server`` blocks, two for each site: one for its page and one for its clips."""
        return render(
            HERE,
            "nginx.conf.j2",
            sites=[site.name for site in SITES],
            addresses=self.hosts,
            certificate=context.installed.path(context.authority.issued(self.name)),
            www=context.installed.path(HERE / "www"),
            library=context.installed.path(LIBRARY),
            content=context.installed.path(build_content(context.cache)),
            http2_directive=has_http2_directive(context.installed.version(NGINX)),
        )

    def check(self, context: ServiceContext) -> None:
        """Check that nginx serves the page and the first clip's manifest of each site. Raises DeviceError."""
        expected_texts = {"https://www.{}.lab/": "player.js", "https://media.{}.lab/clip-1/manifest.mpd": "</MPD>"}
        for site in SITES:
            for url, expected in expected_texts.items():
                self._check(context, url.format(site.name), expected)

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return the URLs of the sites' pages (``tube``, ``motion``) and clips (``tube_media``, ``motion_media``)."""
        pages = {site.name: f"https://www.{site.name}.lab/" for site in SITES}
        return pages | {f"{site.name}_media": f"https://media.{site.name}.lab/" for site in SITES}

    def _check(self, context: ServiceContext, url: str, expected: str) -> None:
        answer = fetch(self, context, url, "--fail")
        if answer.exit_code != 0 or expected not in answer.stdout:
            problem = answer.stderr.strip() or f"{len(answer.stdout)} characters without {expected}"
            raise DeviceError(self.name, f"{url} does not answer as it should: {problem}")


SERVICE = DashService()
