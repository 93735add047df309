"""Make the configurations of the containers from the templates of the virtual lab; keep them on this machine."""

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import NoReturn

from mplab.base.configs import render, write_private
from mplab.base.endpoints import PORTS as LISTENERS
from mplab.base.errors import LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.base.places import ROOT
from mplab.base.programs import PROXY_DIR
from mplab.drivers.origin.certificates import LabAuthority
from mplab.drivers.origin.origin import Origin
from mplab.drivers.proxy.docker.layout import PRIVATE, InImages
from mplab.drivers.proxy.settings import proxy_settings
from mplab.drivers.services import RunningServices, load_service, service_names
from mplab.format import sites
from mplab.format.sites import NETWORK

VALID_FOR = timedelta(days=397)
"""Validity of certificates, longer than in a virtual lab, because a server runs longer."""
RENEW_BEFORE = timedelta(days=30)
PORTS = {name: port for name, port in LISTENERS.items() if name != "mpflex_plain"}
"""Name of listener → port, for phones. The listener for unencrypted sessions is left out; it is open only in runs."""
SHADOWSOCKS_PORT = 8388
COLLECTOR_PORT = 8443
COLLECTOR_HOST = "collector.lab"
SHADOWSOCKS_METHOD = "chacha20-ietf-poly1305"
CONTROL = "/run/mplab/control"
"""Path of the proxy's control socket in its container."""
NAMES_ADDRESS = "10.65.255.1"
"""Address of the container `names`, equal to the proxy's address towards the origin in ``compose.yaml``."""

_SECRET_BYTES = 32
_NOTE = "rendered.json"


@dataclass(frozen=True)
class Rendered:
    """Configurations of a stack, as files on this machine.

    Attributes:
        directory: private folder of the files.
        key: hash of all inputs and a random part; it changes whenever the configurations are made again.
        expires: end of the certificates' validity, Unix time.
        content: files and folders of this machine that configurations refer to.
        commands: program → command that runs it in its container.
    """

    directory: Path
    key: str
    expires: float
    content: tuple[Path, ...]
    commands: Mapping[str, Sequence[str]]

    @property
    def digest(self) -> str:
        """Hash of the content of all files, including edits by users."""
        digest = hashlib.sha256()
        for path in sorted(self.directory.rglob("*")):
            if path.is_file() and path.name != _NOTE:
                digest.update(str(path.relative_to(self.directory)).encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    @property
    def secret_file(self) -> Path:
        """File with the secret that agents and proxy share."""
        return self.directory / "proxy" / "secret"

    @property
    def ca_pem(self) -> Path:
        """Certificate of the authority that phones must trust."""
        return self.directory / "origin" / "certificates" / "ca.pem"


@dataclass(frozen=True)
class RenderSettings:
    """Settings of a stack that determine its configurations.

    Attributes:
        congestion_control: algorithm for the proxy's sockets towards phones; "": the system's default.
        listen: addresses at which phones reach the server.
        internet: additional destinations that the proxy allows, ``NETWORK:PORTS``.
        upstream_names: also resolve names outside of the lab.
    """

    congestion_control: str
    listen: Sequence[str] = ()
    internet: Sequence[str] = ()
    upstream_names: bool = False


def rendered(directory: Path, settings: RenderSettings, *, renew: bool = False) -> Rendered:
    """Return the configurations in `directory`, up to date.

    They are made again if an input has changed, or if the certificates expire within 30 days. Without `renew`, the
    secrets of proxy, ShadowSocks and collector stay the same, because phones have copies of them.

    Args:
        directory: folder that keeps the configurations.
        settings: settings of the stack.
        renew: make all configurations again, including secrets.

    Raises:
        LabNotReadyError: a program that makes content is missing.
    """
    key = _key(settings)
    existing = None if renew else load_rendered(directory)
    if (
        existing is not None
        and existing.key.startswith(key)
        and existing.expires > time.time() + RENEW_BEFORE.total_seconds()
    ):
        return existing
    if renew:
        shutil.rmtree(directory, ignore_errors=True)
    for folder in ("origin", "services"):
        shutil.rmtree(directory / folder, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = _render(directory, f"{key}-{secrets.token_hex(4)}", settings)
    note = asdict(new) | {"directory": str(directory), "content": [str(path) for path in new.content]}
    write_private(directory / _NOTE, json.dumps(note, indent=1))
    return new


def _render(directory: Path, key: str, settings: RenderSettings) -> Rendered:
    installed = InImages(directory)
    services = RunningServices(
        [load_service(name) for name in service_names()],
        directory=directory / "services",
        host=Nowhere(),
        installed=installed,
    )
    origin = Origin(
        directory / "origin",
        additions=services,
        installed=installed,
        valid_for=VALID_FOR,
        upstream=NAMES_ADDRESS if settings.upstream_names else "",
    )
    origin.prepare()
    _write_proxy(directory / "proxy", services.ports, settings)
    _write_shadowsocks(directory / "shadowsocks")
    _write_collector(directory / "collector", origin.authority, settings.listen)
    commands = {**origin.commands(), **services.commands()}
    expires = time.time() + VALID_FOR.total_seconds()
    return Rendered(directory, key, expires, tuple(sorted(installed.content)), commands)


def _write_proxy(folder: Path, ports: Sequence[int], settings: RenderSettings) -> None:
    secret = folder / "secret"
    if not secret.exists():
        write_private(secret, secrets.token_hex(_SECRET_BYTES))
    configuration = proxy_settings(
        listen={name: f"0.0.0.0:{port}" for name, port in PORTS.items()},
        secret_file=f"{PRIVATE}/proxy/secret",
        ports=ports,
        congestion_control=settings.congestion_control,
        log="/dev/stdout",
        session={},
        internet=settings.internet,
        control=CONTROL,
    )
    (folder / "proxy.json").write_text(json.dumps(configuration, indent=1))


def _write_shadowsocks(folder: Path) -> None:
    templates = PROXY_DIR / "shadowsocks"
    if not (folder / "shadowsocks.json").exists():
        text = render(
            templates,
            "shadowsocks.json.j2",
            port=SHADOWSOCKS_PORT,
            method=SHADOWSOCKS_METHOD,
            password=secrets.token_urlsafe(_SECRET_BYTES),
        )
        write_private(folder / "shadowsocks.json", text)
    everything = IPv4Network("0.0.0.0/0")
    blocked = [*map(str, everything.address_exclude(IPv4Network(NETWORK))), "::/0"]
    (folder / "shadowsocks.acl").write_text(render(templates, "shadowsocks.acl.j2", blocked=blocked))


def _write_collector(folder: Path, authority: LabAuthority, listen: Sequence[str]) -> None:
    tokens = folder / "tokens"
    if not tokens.exists():
        write_private(tokens, f"phone:{secrets.token_urlsafe(_SECRET_BYTES)}\n")
    certificate = authority.issue("collector", [COLLECTOR_HOST, *listen])
    write_private(folder / "collector.pem", certificate.read_text())
    own = f"{PRIVATE}/collector"
    settings = {
        "listen": f"0.0.0.0:{COLLECTOR_PORT}",
        "tls": {"certificate_file": f"{own}/collector.pem", "key_file": f"{own}/collector.pem"},
        "tokens_file": f"{own}/tokens",
        "store": f"{PRIVATE}/collected",
        "log": "/dev/stdout",
        "control": CONTROL,
    }
    (folder / "collector.json").write_text(json.dumps(settings, indent=1))


def load_rendered(directory: Path) -> Rendered | None:
    """Return the configurations in `directory`; None if one, or a file listed in `Rendered.content`, is missing."""
    try:
        note = json.loads((directory / _NOTE).read_text())
    except (OSError, ValueError):
        return None
    content = tuple(Path(path) for path in note["content"])
    if not all(path.exists() for path in content):
        return None
    return Rendered(directory, note["key"], note["expires"], content, note["commands"])


def _key(settings: RenderSettings) -> str:
    """Return a hash of all inputs of the configurations: settings, templates, services and code."""
    digest = hashlib.sha256(json.dumps(asdict(settings)).encode())
    ours = Path(__file__).parents[2]
    files = [
        Path(sites.__file__),
        ours / "proxy" / "settings.py",
        *map(Path(__file__).with_name, ("render.py", "layout.py")),
    ]
    for folder in (ours / "origin", PROXY_DIR):
        files += [path for path in folder.rglob("*") if path.suffix in {".py", ".j2", ".yaml"}]
    for path in sorted(files):
        digest.update(os.path.relpath(path, ROOT).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Nowhere:
    """`Host` that runs no program: services are configured on this machine, but run in containers."""

    def spawn(self, argv: Sequence[str], *, log: Path) -> NoReturn:
        """Raise LabNotReadyError: Docker Compose starts the program in a container."""
        raise LabNotReadyError(f"{argv[0]} runs in a container; compose starts it")

    def run(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Raise LabNotReadyError: the program runs in a container."""
        raise LabNotReadyError(f"{argv[0]} runs in a container")
