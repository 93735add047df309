"""Convert records of older versions of mplab to this version's form.

Missing keys need no conversion, because the models of `mplab.format` have defaults for them.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.base.paths import RMNET, WLAN


def label_of(found: object) -> object:
    """Return the label of a level of a factor.

    Older versions wrote the whole object, with its label or name, into a cell's specification.
    """
    return found.get("label") or found.get("name") if isinstance(found, dict) else found


def upgrade_lab(found: object) -> object:
    """Return the lab as a mapping. In older records it is missing or only a kind, and has no ``same_clock``."""
    if isinstance(found, BaseModel):
        return found
    lab = {"kind": found} if isinstance(found, str) else found if isinstance(found, Mapping) else {}
    return {"same_clock": True, **lab} if lab.get("kind") == "virtual" else lab


def upgrade_link_proof(found: object) -> object:
    """Return the proof of a path with its shaper, ``where``. In older records the shaper was always ``linkem``."""
    return {"where": "linkem", **found} if isinstance(found, Mapping) else found


def upgrade_transport(found: object) -> object:
    """Return a transport with `paths` and `sessions`. In older records, the transport's name implies both."""
    if not isinstance(found, dict):
        return found
    name = str(found.get("name", ""))
    single = RMNET if name == "sptcp-lte" else WLAN
    paths = [single] if name.startswith("sptcp") else [WLAN, RMNET]
    known = {key: value for key, value in found.items() if value is not None}
    return {"paths": paths, "sessions": name == "mpflex", **known}
