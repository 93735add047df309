"""Where images have what: paths of this machine as containers see them, and which volume holds what."""

from collections.abc import Sequence
from pathlib import Path

from mplab.base.programs import APPIUM_DIR, MPFLEX, NGINX, SERVICES_DIR, Program
from mplab.drivers.origin.config import ACCESS_LOG, ERROR_LOG
from mplab.drivers.origin.origin import CACHE_DIR as SITES_CACHE
from mplab.drivers.services.running import CACHE_DIR as SERVICES_CACHE

PRIVATE = "/var/lib/mplab"
"""Where containers have the volumes with configurations, one folder each."""
CONTENT = "/srv"
"""Where containers have the volume with content."""
CODE = "/opt/mplab"
"""Where images have pages and servers of ours."""
STORES = ("collected",)
"""Volumes that containers fill; they are made, and never emptied."""
USER = 10001
"""Who containers run as."""

NGINX_VERSION = "1.22.1"
"""That of Debian 12, which the image is pinned to."""

_CONTENT_ROOTS = {
    SITES_CACHE: f"{CONTENT}/origin",
    SERVICES_CACHE: f"{CONTENT}/services",
    APPIUM_DIR / "node_modules": f"{CONTENT}/node_modules",
}


class InImages:
    """`Installed`: containers of ``compose.yaml``.

    Args:
        directory: folder on this machine in which configurations are made.

    Attributes:
        content: what configurations refer to of what is generated or installed on this machine.
    """

    def __init__(self, directory: Path) -> None:
        origin = directory / "origin"
        self._roots = {
            origin / "nginx.conf": f"{PRIVATE}/origin/nginx.conf",
            origin / "certificates": f"{PRIVATE}/origin/certificates",
            origin / ACCESS_LOG: "/dev/stdout",
            origin / ERROR_LOG: "/dev/stderr",
            origin / "dnsmasq.conf": f"{PRIVATE}/dns/dnsmasq.conf",
            origin: "/tmp",  # noqa: S108 - a tmpfs of the container's own
            directory / "services": PRIVATE,
            directory / "proxy": f"{PRIVATE}/proxy",
            SERVICES_DIR: CODE,
            **_CONTENT_ROOTS,
        }
        self.content: set[Path] = set()

    def path(self, path: Path) -> str:
        """As containers see it. Raises ValueError for what no volume or image has."""
        for root in (path, *path.parents):
            if root in self._roots:
                if root in _CONTENT_ROOTS:
                    self.content.add(path)
                rest = path.relative_to(root).as_posix()
                return self._roots[root] if rest == "." else f"{self._roots[root]}/{rest}"
        raise ValueError(f"{path}: no volume and no image has it")

    def program(self, program: Program) -> str:
        """Its name: images have it in their path, that of mpflex at its root."""
        return f"/{program.name}" if program == MPFLEX else program.candidates[0]

    def python(self) -> str:
        """Debian's."""
        return "python3"

    def version(self, program: Program) -> str:
        """Of nginx, which alone is asked for."""
        return NGINX_VERSION if program == NGINX else ""

    def unprivileged(self) -> Sequence[str]:
        """Nothing: no container runs as root."""
        return ()


def volume_folders(directory: Path) -> dict[str, dict[str, Path]]:
    """Volume → path in it → file or folder in `directory` that goes there."""
    origin, services = directory / "origin", directory / "services"
    volumes = {
        "proxy": {".": directory / "proxy"},
        "shadowsocks": {".": directory / "shadowsocks"},
        "collector": {".": directory / "collector"},
        "origin": {"nginx.conf": origin / "nginx.conf", "certificates": origin / "certificates"},
        "dns": {"dnsmasq.conf": origin / "dnsmasq.conf"},
    }
    return volumes | {name: {".": services / name} for name in ("icecast", "xmpp", "turn")}


def place_of_content(path: Path) -> str:
    """Where in the volume with content something of this machine is."""
    for root, place in _CONTENT_ROOTS.items():
        if path.is_relative_to(root):
            return f"{place.removeprefix(CONTENT + '/')}/{path.relative_to(root).as_posix()}"
    raise ValueError(f"{path}: not content")
