"""One condition, or experiment, on top of another: what ``extends`` inherits, before anything of it is read.

Works on the plain data of files, since what is left out must be told from what is said.
"""

from collections.abc import Mapping
from typing import Any

from mplab.format.direction import WAYS
from mplab.userfiles.pathfile import PATH_KEYS

PATHS = ("wifi", "lte")
_OWN = ("name", "title", "extends", "sweep")
"""Keys that are not inherited."""


def inherit(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`own` on top of `base`, both as files have them.

    Paths are merged key by key, and so are directions; everything else that `own` says takes the place of what
    `base` says. What `own` says of a path holds for both directions, whatever `base` says of one. A rate and a trace
    replace each other.
    """
    merged = {key: value for key, value in base.items() if key not in _OWN} | dict(own)
    for path in PATHS:
        old, new = base.get(path), own.get(path)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            merged[path] = _path(old, new)
    return merged


def merge(base: object, own: object) -> object:
    """`own` on top of `base`: mappings are merged key by key, at every depth; anything else takes the other's place."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return own
    return {**base, **{key: merge(base[key], value) if key in base else value for key, value in own.items()}}


def _path(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    said = {"delay" if key == "rtt" else key for key in PATH_KEYS if key in own}
    merged = {**base, **own}
    for way in WAYS:
        if way not in base:
            continue
        kept = {key: value for key, value in _direction(base[way]).items() if key not in said}
        new = _direction(own[way]) if way in own else {}
        for one, other in (("rate", "trace"), ("trace", "rate")):
            if one in new:
                kept.pop(other, None)
        both = {**kept, **new}
        merged[way] = both["rate"] if list(both) == ["rate"] else both
    if "rtt" not in own and all("delay" in _direction(merged.get(way)) for way in WAYS):
        merged.pop("rtt", None)
    return merged


def _direction(given: object) -> dict[str, Any]:
    """A direction as a mapping: a rate alone is short for one."""
    return dict(given) if isinstance(given, Mapping) else {"rate": given}
