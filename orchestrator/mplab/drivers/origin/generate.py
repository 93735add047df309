"""Generate the web sites."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mplab.drivers.origin.page import Renderer
from mplab.drivers.origin.structure import Planned, plan_objects
from mplab.format.sites import PROTOCOLS, BuiltSite, Site, SiteObject

_SIZE_SPREAD = {"page": 0.6, "frame": 1.0, "data": 1.2, "css": 1.1, "js": 1.2, "image": 1.3}
"""Kind of object → standard deviation of the natural logarithm of its size."""
_SIZE_FACTOR = {"page": 3.0, "frame": 0.5, "data": 0.5, "css": 1.0, "js": 1.0, "image": 1.0}
"""Kind of object → factor of its median size, relative to 1 for images, scripts and style sheets."""


def build_site(root: Path, site: Site, seed: int) -> BuiltSite:
    """Generate one site below `root` as ``<host name>/<path>``; return its description.

    Raises:
        ValueError: the objects do not fit into the size of the site.
    """
    rng = np.random.Generator(np.random.PCG64([seed, site.row]))
    planned = plan_objects(site, rng)
    renderers = {protocol: Renderer(site, planned, protocol) for protocol in PROTOCOLS}
    floors = [max(renderer.floor(item) for renderer in renderers.values()) for item in planned]
    sizes = share_out(site.size_bytes, floors, _weights(planned, rng))
    hosts = tuple(dict.fromkeys(item.host for item in planned))
    built = BuiltSite(site.slug, site.row, hosts, _objects(planned, sizes))
    for item in planned:
        first: Path | None = None
        for protocol, renderer in renderers.items():
            path = root / built.host_name(item.host, protocol) / _file_name(item.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            if first is None or renderer.refers(item):
                item_rng = np.random.Generator(np.random.PCG64([seed, site.row, item.number]))
                path.write_bytes(renderer.render(item, sizes, item_rng))
                first = path
            else:
                os.link(first, path)
    return built


def _file_name(path: str) -> str:
    return path.removeprefix("/") or "index.html"


def _objects(planned: Sequence[Planned], sizes: Sequence[int]) -> tuple[SiteObject, ...]:
    return tuple(
        SiteObject(
            host=item.host,
            path=item.path,
            kind=item.kind,
            size_bytes=sizes[item.number],
            parent=planned[item.parent].path if item.number else "",
        )
        for item in planned
    )


def _weights(planned: Sequence[Planned], rng: np.random.Generator) -> np.ndarray:
    spread = np.array([_SIZE_SPREAD[item.kind] for item in planned])
    factor = np.array([_SIZE_FACTOR[item.kind] for item in planned])
    return factor * np.exp(spread * rng.standard_normal(len(planned)))


def share_out(total: int, floors: Sequence[int], weights: np.ndarray) -> list[int]:
    """Return integer sizes that sum to `total`, proportional to `weights`, each at least its floor.

    Raises:
        ValueError: the sum of the floors exceeds `total`.
    """
    lowest = np.array(floors, dtype=float)
    if lowest.sum() > total:
        raise ValueError(f"{len(floors)} objects need {int(lowest.sum())} bytes, more than {total}")
    low, high = 0.0, total / weights.min()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(lowest, middle * weights).sum() > total:
            high = middle
        else:
            low = middle
    sizes = np.maximum(lowest, np.floor(low * weights)).astype(int)
    sizes[int(np.argmax(weights))] += total - int(sizes.sum())
    return [int(size) for size in sizes]
