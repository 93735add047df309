"""Web sites of the lab: the table that describes them, their host names and addresses, the index of their files."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from ruamel.yaml import YAML

from mplab.base.places import ROOT

DATA_DIR = ROOT / "proxy-docker" / "origin"
"""Folder of the site table and the configuration templates."""

NETWORK = "10.65.0.0/16"
FILE_HOST, FILE_ADDRESS, FILE_DELAY_MS = "dl.lab", "10.65.0.2", 2.0
"""Download server: 4 ms round-trip time between proxy and server (nikravesh2016 §5.5)."""
APP_HOSTS = ("video.lab", "store.lab", "messages.lab")
"""Further names of the download server, so that rules can distinguish apps by the requested host name."""
DNS_ADDRESS, DNS_DELAY_MS = "10.65.0.53", 0.5
ECHO_HOST, ECHO_ADDRESS, ECHO_PORT, ECHO_DELAY_MS = "echo.lab", "10.65.0.7", 7007, FILE_DELAY_MS
"""Echo server for datagrams, at the same distance from the proxy as the download server."""

Protocol = Literal["h2", "h1"]
PROTOCOLS: tuple[Protocol, ...] = ("h2", "h1")
SUFFIX: dict[Protocol, str] = {"h2": ".lab", "h1": ".h1.lab"}
"""``www.wiki.lab`` speaks HTTP/2 (and HTTP/1.1 on request), ``www.wiki.h1.lab`` only HTTP/1.1; same objects."""

_H1_FIRST_HOST = 129

Kind = Literal["page", "frame", "data", "css", "js", "image"]
"""``page``: the HTML document; ``frame``: HTML in an iframe; ``data``: JSON fetched by a script."""


@dataclass(frozen=True)
class Site:
    """One web site: row `row` (from 1) of table 1 in the paper han2015, with counts rounded to whole objects."""

    row: int
    slug: str
    title: str
    objects: int
    size_kb: float
    text: int
    js_css: int
    images: int
    rtt_ms: float

    @property
    def size_bytes(self) -> int:
        """Total size of the site's objects, bytes (1 kB = 1000 bytes)."""
        return round(self.size_kb * 1000)

    @property
    def network(self) -> str:
        """IPv4 network of all hosts of the site: ``10.65.1.0/24``."""
        return f"10.65.{self.row}.0/24"


@cache
def load_sites(path: Path = DATA_DIR / "sites.yaml") -> tuple[Site, ...]:
    """Return the sites that the file `path` lists, in its order, which is that of the table in the paper."""
    rows = YAML(typ="safe").load(path)["sites"]
    return tuple(Site(row=number, **row) for number, row in enumerate(rows, start=1))


def delay_by_prefix(sites: tuple[Site, ...] | None = None) -> dict[str, float]:
    """Return address prefix → one-way delay between proxy and server, ms.

    For web sites it is half the RTT in the table, for the download, name and echo servers a constant.
    """
    delays = {
        f"{FILE_ADDRESS}/32": FILE_DELAY_MS,
        f"{DNS_ADDRESS}/32": DNS_DELAY_MS,
        f"{ECHO_ADDRESS}/32": ECHO_DELAY_MS,
    }
    return delays | {site.network: site.rtt_ms / 2 for site in sites or load_sites()}


@dataclass(frozen=True)
class SiteObject:
    """One object of a generated site.

    Attributes:
        host: first label of the object's host name: ``www``, ``static1``, ``img1``…
        path: path of the object's URL; ``/`` is the page itself.
        parent: path of the object that refers to this one; ``""`` for the page itself.
    """

    host: str
    path: str
    kind: Kind
    size_bytes: int
    parent: str


@dataclass(frozen=True)
class BuiltSite:
    """A web site whose files were generated. `hosts` has the first labels of its host names: ``www``, ``img1``.

    Host number h, from 1, has the address 10.65.`row`.h for HTTP/2, and 10.65.`row`.(128 + h) for HTTP/1.1.
    """

    slug: str
    row: int
    hosts: tuple[str, ...]
    objects: tuple[SiteObject, ...]

    def host_name(self, host: str, protocol: Protocol) -> str:
        """Return the full name of a host: ``img1`` → ``img1.wiki.lab``."""
        return f"{host}.{self.slug}{SUFFIX[protocol]}"

    def host_names(self, protocol: Protocol) -> list[str]:
        """Return the full names of all hosts."""
        return [self.host_name(host, protocol) for host in self.hosts]

    def addresses(self, protocol: Protocol) -> list[str]:
        """Return the addresses of `host_names`, in the same order."""
        first = 1 if protocol == "h2" else _H1_FIRST_HOST
        return [f"10.65.{self.row}.{first + number}" for number in range(len(self.hosts))]

    def url(self, protocol: Protocol, scheme: Literal["https", "http"] = "https") -> str:
        """Return the URL of the site's page."""
        return f"{scheme}://{self.host_name('www', protocol)}/"

    @property
    def size_bytes(self) -> int:
        """Total size of the site's objects, bytes."""
        return sum(item.size_bytes for item in self.objects)


@dataclass(frozen=True)
class SiteIndex:
    """All generated web sites, in folder `root`, which has one folder for each host name."""

    root: Path
    sites: tuple[BuiltSite, ...]

    def __iter__(self) -> Iterator[BuiltSite]:
        """Iterate over the sites, in the order of the table."""
        return iter(self.sites)

    def site(self, slug: str) -> BuiltSite:
        """Return the site with this slug. Raises KeyError."""
        return {site.slug: site for site in self.sites}[slug]

    def save(self) -> None:
        """Write the index to ``index.json`` in `root`."""
        text = json.dumps({"format": 1, "sites": [asdict(site) for site in self.sites]}, indent=1)
        (self.root / "index.json").write_text(text)

    @classmethod
    def load(cls, root: Path) -> Self:
        """Return the index that `save` wrote to ``index.json`` in `root`."""
        stored = json.loads((root / "index.json").read_text())
        sites = tuple(
            BuiltSite(
                slug=site["slug"],
                row=site["row"],
                hosts=tuple(site["hosts"]),
                objects=tuple(SiteObject(**item) for item in site["objects"]),
            )
            for site in stored["sites"]
        )
        return cls(root, sites)
