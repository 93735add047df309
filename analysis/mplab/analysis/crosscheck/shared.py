"""What the tools have in common: numbers in what they print, and definitions that hold for several."""

import re
from collections.abc import Callable

from mplab.analysis.crosscheck.model import Definition, Pair, Value

NOTHING = frozenset({"", "NA"})
"""What stands for a value that there is not."""


def number(text: str) -> Value:
    """A whole or decimal number; None where there is nothing; other words as they are."""
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+", text):
        return float(text)
    return None if text in NOTHING else text


def rst_payload(fits: Callable[[Pair], bool]) -> Definition:
    """That mptrace leaves out the payload of RST; ``fits`` says what a tool counts in its place."""
    return Definition(
        "rst-payload", "mptrace leaves out the payload of segments with RST: it is no data of the stream.", fits
    )


DUPLICATE_PACKETS = Definition(
    "duplicate-packets",
    "Two packets have the same bytes, IP identification included: mptrace takes them for one that the capture holds "
    "twice and counts it once.",
    lambda pair: float(str(pair.ours.whole.get("duplicates") or 0)) > 0,
)
