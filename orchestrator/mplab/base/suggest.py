"""Format a wrong value for an error message, and suggest the value that the user probably meant."""

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import PurePath

_SHOWN_CHARACTERS = 60
_MEANT = {"max": "at_most", "min": "at_least"}
"""Keys of other tools → mplab's key of the same meaning."""
_LOOKS_OTHER = re.compile(r"[-+]?[0-9.]+|true|false|null")


def show(value: object) -> str:
    """Return `value` as a message shows it: quoted, on one line, cut to 60 characters.

    Numbers are quoted like text (``rate '7040'``), because a user may write a quantity as a number or as text.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[: _SHOWN_CHARACTERS - 1] + "…"
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"'{printable}'"


def describe(value: object) -> str:
    """Return a description of `value` by its kind: ``nothing``, ``a list``, ``3``, ``'5' (text)``, ``'word'``."""
    match value:
        case None:
            return "nothing"
        case str():
            return f"{show(value)} (text)" if _LOOKS_OTHER.fullmatch(value) else show(value)
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return json.dumps(value)


def did_you_mean(value: str, allowed: Iterable[str]) -> str:
    """Return `` Did you mean 'mptcp'?`` with a leading space, or "" when no allowed name is similar."""
    by_lower = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(value.lower(), by_lower, n=1, cutoff=0.6)
    meant = _MEANT.get(value.lower(), "")
    name = meant if meant in by_lower else by_lower[near[0]] if near else ""
    return f" Did you mean '{name}'?" if name else ""


def file_hint(value: str, siblings: Iterable[str]) -> str:
    """Return a suggestion like that of `did_you_mean` for a file name.

    Names are compared without suffixes, because most files of a folder have the same suffix.
    """
    by_stem = {PurePath(name).stem.lower(): name for name in siblings}
    near = difflib.get_close_matches(PurePath(value).stem.lower(), by_stem, n=1, cutoff=0.6)
    return f" Did you mean '{by_stem[near[0]]}'?" if near else ""


def unknown(kind: str, value: str, allowed: Iterable[str]) -> str:
    """Return the message for an unknown name, with a suggestion and the allowed names.

    Example: ``unknown transport 'mtcp'. Did you mean 'mptcp'? Allowed: mptcp, sptcp-lte, sptcp-wifi``.
    """
    names = sorted(allowed)
    listed = ", ".join(names) if names else "none"
    return f"unknown {kind} {show(value)}.{did_you_mean(value, names)} Allowed: {listed}"
