"""Detect the kind of a file (campaign, experiment, lab, link), to report in one line a file for another verb."""

from collections.abc import Mapping
from typing import Literal

from mplab.base.errors import InputError
from mplab.userfiles.yaml import Document

Kind = Literal["experiment", "campaign", "lab", "link"]

_KEYS: Mapping[Kind, frozenset[str]] = {
    "campaign": frozenset({"mplab_campaign", "experiments"}),
    "experiment": frozenset({"transports", "scenarios", "links"}),
    "lab": frozenset({"routers", "servers", "phones"}),
    "link": frozenset({"wifi", "lte"}),
}
"""Keys that only one kind of file has."""
_NAMES: Mapping[Kind, str] = {
    "campaign": "a campaign file",
    "experiment": "an experiment file",
    "lab": "a lab file",
    "link": "a link condition",
}
_VERBS: Mapping[Kind, str] = {
    "campaign": "mplab nightly {file}",
    "experiment": "mplab run {file}",
    "lab": "mplab doctor --lab {file}",
    "link": "mplab links lint {file}",
}


def check_kind(document: Document, wanted: Kind) -> None:
    """Check that a document is not of another kind than `wanted`.

    Raises:
        InputError: the document is of another kind; the message names the verb for that kind.
    """
    if not isinstance(document.data, Mapping) or document.data.keys() & _KEYS[wanted]:
        return
    for kind, keys in _KEYS.items():
        if document.data.keys() & keys:
            verb = _VERBS[kind].format(file=document.file)
            raise InputError(f"{document.file}:1: this is {_NAMES[kind]}, not {_NAMES[wanted]}. Use it with '{verb}'")
