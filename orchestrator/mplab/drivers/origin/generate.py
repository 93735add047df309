"""Generate the web sites: sizes of their objects, and HTML, CSS and JavaScript with the references between them."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mplab.drivers.origin import content
from mplab.drivers.origin.structure import Planned, plan_objects
from mplab.format.sites import VARIANTS, BuiltSite, Site, SiteObject, SiteVariant

OBJECTS_ELEMENT = "mplab-objects"
"""Id of the JSON element in which a page lists its objects: ``{host label: {path: bytes}}``."""

_SIZE_PLACEHOLDER = 99_999_999
_WORDS = ("path", "link", "packet", "window", "round", "trip", "handover", "signal", "cell", "queue", "loss", "rate")
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><link rel="icon" href="data:,">'
    "<style>body{{font:16px sans-serif}}img,.b{{margin:2px}}.b{{width:160px;height:120px;display:inline-block}}</style>"
)
_FORCE_STYLE = "<script>document.body.offsetHeight</script>"
"""Script that forces a style computation before the load event: it makes browsers request images of style sheets."""


class Renderer:
    """Generates the content of one site's objects for one variant. Only the host names in the content depend on it."""

    def __init__(self, site: Site, planned: Sequence[Planned], variant: SiteVariant) -> None:
        self._site, self._planned, self._variant = site, planned, variant

    def refers(self, item: Planned) -> bool:
        """Return True when the content of `item` contains host names and therefore depends on the variant."""
        return item.kind == "page" or any(child.parent == item.number and child.number for child in self._planned)

    def floor(self, item: Planned) -> int:
        """Return the smallest size that the content of `item` allows, bytes."""
        if item.kind == "image":
            return content.MIN_PNG_BYTES
        if item.kind == "data":
            return 50
        sizes = [_SIZE_PLACEHOLDER] * len(self._planned)
        return sum(len(part.encode()) for part in self._parts(item, sizes)) + 20

    def render(self, item: Planned, sizes: Sequence[int], rng: np.random.Generator) -> bytes:
        """Return the content of `item`, exactly ``sizes[item.number]`` bytes.

        Raises:
            ValueError: the content does not fit into that size.
        """
        size = sizes[item.number]
        if item.kind == "image":
            return content.png(size, rng)
        if item.kind == "data":
            return content.data_json(size, rng)
        comment = content.HTML_COMMENT if item.kind in {"page", "frame"} else content.CODE_COMMENT
        return content.padded_text(self._parts(item, sizes), size, comment, rng)

    def _parts(self, item: Planned, sizes: Sequence[int]) -> Sequence[str]:
        children = [child for child in self._planned if child.parent == item.number and child.number]
        if item.kind == "page":
            return self._page_parts(children, sizes)
        if item.kind == "frame":
            return content.FRAME
        if item.kind == "css":
            return content.sheet_parts(item.number, {child.number: self._url(child) for child in children})
        return content.script_parts(
            [self._url(child) for child in children if child.kind == "image"],
            [self._url(child) for child in children if child.kind == "js"],
            [child.path for child in children if child.kind == "data"],
        )

    def _url(self, item: Planned) -> str:
        return f"//{self._variant.host_name(item.host, self._site.slug)}{item.path}"

    def _page_parts(self, children: Sequence[Planned], sizes: Sequence[int]) -> list[str]:
        head = [_HEAD.format(title=self._site.title)]
        body = [f"</head><body><h1>{self._site.title}</h1>"]
        scripts = [_FORCE_STYLE]
        tags: dict[tuple[str, str], tuple[list[str], Callable[[str], str]]] = {
            ("css", "head"): (head, lambda url: f'<link rel="stylesheet" href="{url}">'),
            ("js", "head"): (head, lambda url: f'<script src="{url}"></script>'),
            ("js", "async"): (head, lambda url: f'<script async src="{url}"></script>'),
            ("js", "body"): (scripts, lambda url: f'<script src="{url}"></script>'),
            ("image", "body"): (body, lambda url: f'<img src="{url}" alt="">'),
            ("frame", "body"): (body, lambda url: f'<iframe src="{url}"></iframe>'),
        }
        for child in children:
            target, tag = tags[child.kind, child.place]
            target.append(tag(self._url(child)))
        late = [child.number for child in self._planned if child.place == "sheet"]
        boxes = "".join(f'<i class="b b{number}"></i>' for number in late)
        rows = [f"{row}<p>{_sentence(number)}</p>" for number, row in enumerate(body)]
        return ["".join(head), boxes, *rows, "".join(scripts) + self._listing(sizes), "</body></html>"]

    def _listing(self, sizes: Sequence[int]) -> str:
        hosts: dict[str, dict[str, int]] = {}
        for item in self._planned:
            hosts.setdefault(item.host, {})[item.path] = sizes[item.number]
        text = json.dumps(hosts, separators=(",", ":"))
        return f'<script type="application/json" id="{OBJECTS_ELEMENT}">{text}</script>'


def _sentence(number: int) -> str:
    return " ".join(_WORDS[(number * step + step) % len(_WORDS)] for step in range(1, 8))


_SIZE_SPREAD = {"page": 0.6, "frame": 1.0, "data": 1.2, "css": 1.1, "js": 1.2, "image": 1.3}
"""Kind of object → standard deviation of the natural logarithm of its size."""
_SIZE_FACTOR = {"page": 3.0, "frame": 0.5, "data": 0.5, "css": 1.0, "js": 1.0, "image": 1.0}
"""Kind of object → median size relative to that of images, scripts and style sheets."""


def build_site(root: Path, site: Site, seed: int) -> BuiltSite:
    """Generate the files of one site as ``<root>/<host name>/<path>``; return the site's description.

    Raises:
        ValueError: the objects do not fit into the size of the site.
    """
    rng = np.random.Generator(np.random.PCG64([seed, site.row]))
    planned = plan_objects(site, rng)
    renderers = {variant: Renderer(site, planned, variant) for variant in VARIANTS}
    floors = [max(renderer.floor(item) for renderer in renderers.values()) for item in planned]
    sizes = share_out(site.size_bytes, floors, _weights(planned, rng))
    hosts = tuple(dict.fromkeys(item.host for item in planned))
    built = BuiltSite(site.slug, site.row, hosts, _objects(planned, sizes))
    for item in planned:
        first: Path | None = None
        for variant, renderer in renderers.items():
            path = root / variant.host_name(item.host, site.slug) / _file_name(item.path)
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
    """Return integers that sum to `total`: each proportional to its weight, but at least its floor.

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
