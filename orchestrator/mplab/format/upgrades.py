"""Reads the records of older versions of mplab as if they were of this one.

Keys that are only missing need nothing here: the models of `mplab.format` have defaults for them.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.base.paths import RMNET, WLAN


def label_of(found: object) -> object:
    """Return the label of a factor's level: the specification of a cell may hold the object that carries it."""
    return found.get("label") or found.get("name") if isinstance(found, dict) else found


def upgrade_lab(found: object) -> object:
    """Return the lab as a mapping: it may be its kind only, or missing; older versions did not record its clock."""
    if isinstance(found, BaseModel):
        return found
    lab = {"kind": found} if isinstance(found, str) else found if isinstance(found, Mapping) else {}
    return {"same_clock": True, **lab} if lab.get("kind") == "virtual" else lab


def upgrade_link_proof(found: object) -> object:
    """Return the proof of a path with where it was shaped: before there were others, by the link emulator."""
    return {"where": "linkem", **found} if isinstance(found, Mapping) else found


def upgrade_transport(found: object) -> object:
    """Return a transport with its paths and sessions: older versions had only its name to know them by."""
    if not isinstance(found, dict):
        return found
    name = str(found.get("name", ""))
    single = RMNET if name == "sptcp-lte" else WLAN
    paths = [single] if name.startswith("sptcp") else [WLAN, RMNET]
    known = {key: value for key, value in found.items() if value is not None}
    return {"paths": paths, "sessions": name == "mpflex", **known}
