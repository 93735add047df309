"""Translate a phone's interface names in records of its programs into mplab's names."""

from collections.abc import Mapping
from typing import TypeVar, cast

_Record = TypeVar("_Record", bound=Mapping[str, object])


def by_our_names(record: _Record, devices: Mapping[str, str]) -> _Record:
    """Return a record of `mpflex` (log line, or result of a check) with interface names ``wlan0`` and ``rmnet0``.

    Args:
        record: record with the phone's names, as the program wrote it; not changed.
        devices: mplab's name → the phone's name; see `Phone.devices`.
    """
    ours = {device: name for name, device in devices.items()}
    found: dict[str, object] = dict(record)
    for key in ("interface", "device"):
        if isinstance(value := found.get(key), str):
            found[key] = ours.get(value, value)
    if isinstance(paths := found.get("paths"), list):
        found["paths"] = [
            by_our_names(path, devices) if isinstance(path, dict) else ours.get(path, path) for path in paths
        ]
    return cast("_Record", found)
