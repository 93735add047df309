"""Inheritance (``extends``) of link conditions and experiments.

It is applied to the parsed data of files before validation, because validation fills in the defaults of missing keys.
"""

from collections.abc import Mapping
from typing import Any

from mplab.format.direction import WAYS
from mplab.userfiles.links.pathfile import PATH_KEYS

PATHS = ("wifi", "lte")
_OWN = ("name", "title", "extends", "sweep")
"""Keys that are not inherited."""


def inherit(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return `own` merged over `base`; both are the data of files.

    Paths and directions are merged key by key; any other key of `own` replaces that of `base`. A key that `own` gives
    for a whole path applies to both directions, even if `base` gives it for one direction. A rate of `own` replaces a
    trace of `base`, and a trace replaces a rate.
    """
    merged = {key: value for key, value in base.items() if key not in _OWN} | dict(own)
    for path in PATHS:
        old, new = base.get(path), own.get(path)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            merged[path] = _path(old, new)
    return merged


def merge(base: object, own: object) -> object:
    """Return `own` merged over `base`: mappings are merged key by key at every depth; any other value is replaced."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return own
    return {**base, **{key: merge(base[key], value) if key in base else value for key, value in own.items()}}


def _path(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    given_keys = {"delay" if key == "rtt" else key for key in PATH_KEYS if key in own}
    merged = {**base, **own}
    for direction in WAYS:
        if direction not in base:
            continue
        inherited = {key: value for key, value in _direction(base[direction]).items() if key not in given_keys}
        new = _direction(own[direction]) if direction in own else {}
        for first, second in (("rate", "trace"), ("trace", "rate")):
            if first in new:
                inherited.pop(second, None)
        both = {**inherited, **new}
        merged[direction] = both["rate"] if list(both) == ["rate"] else both
    if "rtt" not in own and all("delay" in _direction(merged.get(direction)) for direction in WAYS):
        merged.pop("rtt", None)
    return merged


def _direction(value: object) -> dict[str, Any]:
    """Return a direction as a mapping; a plain rate is its short form."""
    return dict(value) if isinstance(value, Mapping) else {"rate": value}
