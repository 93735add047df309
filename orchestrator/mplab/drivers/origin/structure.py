"""Plan a web site: its objects, their hosts, and the references between them.

The structure is that of a page of 2014. The HTML refers to style sheets and some scripts in its head, and to most
images in its body. The browser finds the other objects late, in style sheets (images) and scripts (images, scripts,
data).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mplab.format.sites import Kind, Site

Place = Literal["page", "head", "async", "body", "sheet", "script"]
"""Place of the reference to an object of a site.

``head`` (blocking), ``async`` (also in the head) and ``body`` are in the page, ``sheet`` in a style sheet, ``script``
in a script. ``page`` is the page itself, to which nothing refers.
"""

CSS_SHARE = 0.25
LATE_IMAGE_SHARE = 0.15
"""Share of the images to which style sheets refer; scripts load an equal share."""
_HEAD_SCRIPT_SHARE, _LATE_SCRIPT_SHARE = 0.4, 0.2
_MAX_FRAMES, _FRAME_SHARE = 6, 0.3
_MAIN_HOST_SHARE = 0.15
_EXTRA_HOSTS = ("static1", "img1", "img2", "static2", "img3")
_HOST_STEPS = (30, 60, 100)
"""Numbers of objects from which a site has one more host name, in addition to ``www`` and two others."""


@dataclass(frozen=True)
class Planned:
    """One planned object of a site, still without content and size.

    Attributes:
        number: index of the object in the plan; 0 is the page.
        kind: kind of object: page, frame, style sheet, script, image, data.
        host: label of the host name: ``www``, ``img1``.
        path: path in the URL.
        parent: number of the object that refers to this one; 0 for the page itself.
        place: place of the reference in the parent.
    """

    number: int
    kind: Kind
    host: str
    path: str
    parent: int
    place: Place


def plan_objects(site: Site, rng: np.random.Generator) -> list[Planned]:
    """Plan the objects of a site and the references between them; return the objects, the page first."""
    extra = _EXTRA_HOSTS[: 2 + sum(site.objects >= step for step in _HOST_STEPS)]
    planner = _Planner(rng, [h for h in extra if h.startswith("static")], [h for h in extra if h[0] == "i"])
    planner.add("page", "www", "page", 0)
    css = [planner.add_static("css", "head", 0) for _ in range(_css_count(site.js_css))]
    scripts = _add_scripts(planner, site.js_css - len(css))
    _add_images(planner, site.images, css, scripts)
    _add_text(planner, site.text - 1, scripts)
    return planner.objects


class _Planner:
    def __init__(self, rng: np.random.Generator, static: list[str], images: list[str]) -> None:
        self._rng = rng
        self._static, self._images = static, images
        self.objects: list[Planned] = []

    def add(self, kind: Kind, host: str, place: Place, parent: int) -> int:
        number = len(self.objects)
        self.objects.append(Planned(number, kind, host, _path(kind, number), parent, place))
        return number

    def add_static(self, kind: Kind, place: Place, parent: int) -> int:
        return self.add(kind, self._host(self._static), place, parent)

    def add_image(self, place: Place, parent: int) -> int:
        return self.add("image", self._host(self._images), place, parent)

    def one_of(self, numbers: list[int]) -> int:
        return numbers[int(self._rng.integers(len(numbers)))]

    def _host(self, hosts: list[str]) -> str:
        if len(self.objects) > len(hosts) and self._rng.random() < _MAIN_HOST_SHARE:
            return "www"
        return hosts[int(self._rng.integers(len(hosts)))]


def _path(kind: Kind, number: int) -> str:
    folder = {"page": "", "css": f"c/{number}.css", "js": f"j/{number}.js", "image": f"i/{number}.png"}
    other = {"frame": f"f/{number}.html", "data": f"d/{number}.json"}
    return "/" + (folder | other)[kind]


def _css_count(js_css: int) -> int:
    return max(1, round(js_css * CSS_SHARE)) if js_css else 0


def _add_scripts(planner: _Planner, count: int) -> list[int]:
    """Plan `count` scripts; return the numbers of the scripts at the end of the page's body.

    Only these scripts load other objects.
    """
    if not count:
        return []
    head, late = int(count * _HEAD_SCRIPT_SHARE), int(count * _LATE_SCRIPT_SHARE)
    for number in range(head):
        planner.add_static("js", "head" if number % 2 == 0 else "async", 0)
    body = [planner.add_static("js", "body", 0) for _ in range(count - head - late)]
    for _ in range(late):
        planner.add_static("js", "script", planner.one_of(body))
    return body


def _add_images(planner: _Planner, count: int, css: list[int], scripts: list[int]) -> None:
    late = int(count * LATE_IMAGE_SHARE)
    by_css, by_script = late if css else 0, late if scripts else 0
    for _ in range(count - by_css - by_script):
        planner.add_image("body", 0)
    for _ in range(by_css):
        planner.add_image("sheet", planner.one_of(css))
    for _ in range(by_script):
        planner.add_image("script", planner.one_of(scripts))


def _add_text(planner: _Planner, count: int, scripts: list[int]) -> None:
    frames = min(_MAX_FRAMES, round(count * _FRAME_SHARE)) if scripts else count
    for _ in range(frames):
        planner.add("frame", "www", "body", 0)
    for _ in range(count - frames):
        planner.add("data", "www", "script", planner.one_of(scripts))
