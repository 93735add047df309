"""Map paths of this machine to paths in containers and volumes."""

from collections.abc import Sequence
from pathlib import Path

from mplab.base.programs import APPIUM_DIR, MPFLEX, NGINX, SERVICES_DIR, Program
from mplab.drivers.origin.config import ACCESS_LOG, ERROR_LOG
from mplab.drivers.origin.origin import CACHE_DIR as SITES_CACHE
from mplab.drivers.services.running import CACHE_DIR as SERVICES_CACHE

PRIVATE = "/var/lib/mplab"
"""Folder in containers below which the volumes with configurations are mounted, one subfolder each."""
CONTENT = "/srv"
"""Folder in containers at which the volume with content is mounted."""
CODE = "/opt/mplab"
"""Folder in images with mplab's pages and servers."""
STORES = ("collected",)
"""Volumes into which containers write; mplab makes them but never empties them."""
USER = 10001
"""User id of processes in containers."""

NGINX_VERSION = "1.22.1"
"""Version of nginx in Debian 12, on which the images are based."""

_CONTENT_ROOTS = {
    SITES_CACHE: f"{CONTENT}/origin",
    SERVICES_CACHE: f"{CONTENT}/services",
    APPIUM_DIR / "node_modules": f"{CONTENT}/node_modules",
}


class InImages:
    """Paths and programs in the containers of ``compose.yaml`` (implements `Installed`).

    Args:
        directory: folder on this machine in which configurations are made.

    Attributes:
        content: generated or installed files of this machine to which the configurations refer; `path` adds them.
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
        """Return the path in containers for a path of this machine.

        Raises:
            ValueError: no volume and no image contains `path`.
        """
        for root in (path, *path.parents):
            if root in self._roots:
                if root in _CONTENT_ROOTS:
                    self.content.add(path)
                relative = path.relative_to(root).as_posix()
                return self._roots[root] if relative == "." else f"{self._roots[root]}/{relative}"
        raise ValueError(f"{path}: no volume and no image has it")

    def program(self, program: Program) -> str:
        """Return the command for a program in the images: its name, which is in PATH, or ``/mpflex``."""
        return f"/{program.name}" if program == MPFLEX else program.candidates[0]

    def python(self) -> str:
        """Return the command for Debian's Python in the images: ``python3``."""
        return "python3"

    def version(self, program: Program) -> str:
        """Return the version of nginx in the images; "" for other programs, whose version no caller needs."""
        return NGINX_VERSION if program == NGINX else ""

    def unprivileged(self) -> Sequence[str]:
        """Return an empty command prefix: the programs need not drop root, because they do not run as root."""
        return ()


def volume_folders(directory: Path) -> dict[str, dict[str, Path]]:
    """Return volume → {path in the volume: file or folder of `directory` that is copied there}."""
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
    """Return the path in the content volume for a path of this machine. Raises ValueError if the path has none."""
    for root, folder in _CONTENT_ROOTS.items():
        if path.is_relative_to(root):
            return f"{folder.removeprefix(CONTENT + '/')}/{path.relative_to(root).as_posix()}"
    raise ValueError(f"{path}: not content")
