"""Reads the records of older versions of mplab as if they were of this one.

Keys that are only missing need nothing here: the models of `mplab.format` have defaults for them.
"""

from collections.abc import Mapping


def label_of(found: object) -> object:
    """Return the label of a factor's level: the specification of a cell may hold the object that carries it."""
    return found.get("label") or found.get("name") if isinstance(found, dict) else found


def upgrade_lab(found: object) -> object:
    """Return the lab as a mapping: it may be its kind only, or missing."""
    if isinstance(found, str):
        return {"kind": found}
    return found if isinstance(found, Mapping) else {}
