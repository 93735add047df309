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
Addresses = Literal["several", "one"]
OriginRtt = Literal["table", "none"]
_PROTOCOLS: tuple[Protocol, ...] = ("h2", "h1")

_LETTERS: dict[tuple[Addresses, OriginRtt], str] = {
    ("several", "table"): "h",
    ("several", "none"): "n",
    ("one", "table"): "o",
    ("one", "none"): "b",
}
"""First letter of the label before ``.lab``; the second character is 1 or 2 (HTTP/1.1, HTTP/2).

No label is longer than ``h1``. Longer names would change the smallest sizes of objects, and so all sites.
"""
_H1_FIRST = 128
"""Added to the last byte of an address for HTTP/1.1: nginx chooses the protocol by the address."""
_ONE_ADDRESS = 100
_NEAR_ROWS = 32
"""Added to the third byte of the address of a site without round-trip time."""


@dataclass(frozen=True)
class SiteVariant:
    """One of the ways in which the origin serves every site. All variants have the same objects.

    Attributes:
        http: ``h2``: HTTP/2, and HTTP/1.1 for clients that do not offer HTTP/2; ``h1``: only HTTP/1.1.
        addresses: ``several``: each host name of a site has its own address; ``one``: all have the same address.
        origin_rtt: ``table``: round-trip time between proxy and server from `Site.rtt_ms`; ``none``: no added delay.
    """

    http: Protocol = "h2"
    addresses: Addresses = "several"
    origin_rtt: OriginRtt = "table"

    @property
    def suffix(self) -> str:
        """End of the host names: ``.lab`` (all defaults), ``.h1.lab``, ``.o2.lab``…"""
        letter = self._letter
        return ".lab" if (letter, self.http) == ("h", "h2") else f".{letter}{self.http[1]}.lab"

    def host_name(self, host: str, slug: str) -> str:
        """Return the full name of a host of the site `slug`: ``img1`` → ``img1.wiki.lab``."""
        return f"{host}.{slug}{self.suffix}"

    def url(self, slug: str, scheme: Literal["https", "http"] = "https") -> str:
        """Return the URL of the page of the site `slug`."""
        return f"{scheme}://{self.host_name('www', slug)}/"

    def certificate(self, slug: str) -> str:
        """Return the name of the certificate for all host names of the site `slug`. Both protocols share it."""
        return slug if self._letter == "h" else f"{slug}-{self._letter}"

    def addresses_of(self, row: int, hosts: int) -> list[str]:
        """Return the addresses of the `hosts` host names of the site in row `row` of the table, in order."""
        network = f"10.65.{row + (_NEAR_ROWS if self.origin_rtt == 'none' else 0)}"
        base = _H1_FIRST if self.http == "h1" else 0
        last = [_ONE_ADDRESS] * hosts if self.addresses == "one" else range(1, hosts + 1)
        return [f"{network}.{base + number}" for number in last]

    @property
    def _letter(self) -> str:
        return _LETTERS[self.addresses, self.origin_rtt]


VARIANTS: tuple[SiteVariant, ...] = tuple(SiteVariant(http, *letter) for letter in _LETTERS for http in _PROTOCOLS)

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
        """IPv4 network of all hosts of the site that have its round-trip time: ``10.65.1.0/24``."""
        return f"10.65.{self.row}.0/24"


@cache
def load_sites(path: Path = DATA_DIR / "sites.yaml") -> tuple[Site, ...]:
    """Return the sites that the file `path` lists, in its order, which is that of the table in the paper."""
    rows = YAML(typ="safe").load(path)["sites"]
    return tuple(Site(row=number, **row) for number, row in enumerate(rows, start=1))


def delay_by_prefix(sites: tuple[Site, ...] | None = None) -> dict[str, float]:
    """Return address prefix → one-way delay between proxy and server, ms.

    For web sites it is half the RTT in the table, for the download, name and echo servers a constant. Addresses of
    variants without round-trip time are not listed: they have no delay.
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
    """A web site whose files were generated. `hosts` has the first labels of its host names: ``www``, ``img1``."""

    slug: str
    row: int
    hosts: tuple[str, ...]
    objects: tuple[SiteObject, ...]

    def host_names(self, variant: SiteVariant) -> list[str]:
        """Return the full names of all hosts."""
        return [variant.host_name(host, self.slug) for host in self.hosts]

    def addresses(self, variant: SiteVariant) -> list[str]:
        """Return the addresses of `host_names`, in the same order."""
        return variant.addresses_of(self.row, len(self.hosts))

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
