"""Write the configurations of nginx (web sites and files) and dnsmasq (names)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.configs import render
from mplab.base.installed import LOCAL, Installed
from mplab.format.sites import (
    APP_HOSTS,
    DATA_DIR,
    DNS_ADDRESS,
    ECHO_ADDRESS,
    ECHO_HOST,
    FILE_ADDRESS,
    FILE_HOST,
    VARIANTS,
    BuiltSite,
    SiteIndex,
    SiteVariant,
)

ACCESS_LOG, ERROR_LOG = "access.jsonl", "nginx-error.log"
"""nginx log files, relative to its prefix."""

_HTTP2_DIRECTIVE_SINCE = (1, 25, 1)
_ERROR_LOG_OPTION_SINCE = (1, 19, 5)


@dataclass(frozen=True)
class ServerBlock:
    """One nginx ``server`` block: one site in one variant.

    Attributes:
        names: host names of the site.
        addresses: addresses at which the block listens.
        http2: the protocol is HTTP/2.
        certificate: path, on the machine that runs nginx, of the file with key and certificate chain.
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    http2: bool
    certificate: str


def version_tuple(version: str) -> tuple[int, ...]:
    """Parse a version: ``"1.22.1"`` → (1, 22, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def has_http2_directive(version: str) -> bool:
    """Return True if nginx `version` has the directive ``http2``; older versions have an option of ``listen``."""
    return version_tuple(version) >= _HTTP2_DIRECTIVE_SINCE


def nginx_conf(
    *,
    prefix: Path,
    index: SiteIndex,
    files: Path,
    certificates: Mapping[str, Path],
    version: str,
    servers: str = "",
    installed: Installed = LOCAL,
) -> str:
    """Return the content of nginx.conf for nginx `version`, with all sites and files.

    HTTP/2 is enabled or disabled by the destination address of a connection, which every nginx since 1.18 can do.

    Args:
        prefix: folder for everything that nginx writes.
        index: the generated sites.
        files: folder of the files to download.
        certificates: name of a certificate (`SiteVariant.certificate`) → file with key and certificate chain.
        version: version of nginx.
        servers: additional ``server`` blocks.
        installed: translates paths of this machine into paths where nginx runs.
    """
    return render(
        DATA_DIR,
        "nginx.conf.j2",
        prefix=installed.path(prefix),
        access_log=installed.path(prefix / ACCESS_LOG),
        error_log=installed.path(prefix / ERROR_LOG),
        files=installed.path(files),
        file_hosts=(FILE_HOST, *APP_HOSTS),
        sites=installed.path(index.root),
        servers=servers,
        http2_directive=has_http2_directive(version),
        blocks=[
            _block(site, variant, installed.path(certificates[variant.certificate(site.slug)]))
            for site in index
            for variant in VARIANTS
        ],
    )


def nginx_argv(nginx: str, prefix: Path, version: str, *, installed: Installed = LOCAL) -> list[str]:
    """Return the command line that runs nginx in the foreground."""
    argv = [nginx, "-p", installed.path(prefix), "-c", installed.path(prefix / "nginx.conf")]
    early_log = ["-e", installed.path(prefix / ERROR_LOG)]
    return argv + (early_log if version_tuple(version) >= _ERROR_LOG_OPTION_SINCE else [])


def dnsmasq_conf(index: SiteIndex, further: Sequence[tuple[str, str]] = (), upstream: str = "") -> str:
    """Return the content of dnsmasq.conf with all host names of the lab.

    Args:
        index: the sites.
        further: additional host names with their addresses.
        upstream: address of the server that resolves names outside of the lab; "": these names do not exist.
    """
    return render(
        DATA_DIR, "dnsmasq.conf.j2", address=DNS_ADDRESS, records=[*records(index), *further], upstream=upstream
    )


def records(index: SiteIndex) -> list[tuple[str, str]]:
    """Return pairs (host name, address) of all sites, file servers and the echo service."""
    pairs = [*((host, FILE_ADDRESS) for host in (FILE_HOST, *APP_HOSTS)), (ECHO_HOST, ECHO_ADDRESS)]
    for site in index:
        for variant in VARIANTS:
            pairs += zip(site.host_names(variant), site.addresses(variant), strict=True)
    return pairs


def _block(site: BuiltSite, variant: SiteVariant, certificate: str) -> ServerBlock:
    # The HTTP/2 sites share the wildcard address; nginx prefers the more specific addresses of the HTTP/1.1 sites.
    addresses: Sequence[str] = ["0.0.0.0"] if variant.http == "h2" else site.addresses(variant)  # noqa: S104
    return ServerBlock(
        names=tuple(site.host_names(variant)),
        addresses=tuple(dict.fromkeys(addresses)),
        http2=variant.http == "h2",
        certificate=certificate,
    )
