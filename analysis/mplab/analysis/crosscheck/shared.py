"""Parse numbers in the output of the tools, and define deviations that several tools share."""

import re
from collections.abc import Callable

from mplab.analysis.crosscheck.model import Definition, Pair, Value

NOTHING = frozenset({"", "NA"})
"""Notations of a missing value."""


def number(text: str) -> Value:
    """Parse an integer or decimal number; return None for a missing value, and other words unchanged."""
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+", text):
        return float(text)
    return None if text in NOTHING else text


def rst_payload(fits: Callable[[Pair], bool]) -> Definition:
    """Return the definition "mptrace leaves out the payload of RST segments"; ``fits`` as in `Definition`."""
    return Definition(
        "rst-payload", "mptrace leaves out the payload of segments with RST: it is no data of the stream.", fits
    )


DUPLICATE_PACKETS = Definition(
    "duplicate-packets",
    "Two packets have the same bytes, IP identification included: mptrace takes them for one that the capture holds "
    "twice and counts it once.",
    lambda pair: float(str(pair.ours.whole.get("duplicates") or 0)) > 0,
)
