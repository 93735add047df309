"""Colours and markers of transports in figures."""

import itertools
from collections.abc import Iterator, Sequence

COLOURS = ("#882255", "#44aa99", "#ddcc77", "#332288", "#999933", "#aa4499", "#117733", "#cc6677")
"""Paul Tol's colour-blind safe "muted" scheme."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
"""Okabe & Ito's colours, distinguishable with any colour vision (without black and yellow)."""

MARKERS_OF_FIGURES = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
"""All Matplotlib markers that figures use."""

MARKERS = ("v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
"""Matplotlib markers that are distinguishable without colour."""


def distinct_styles(uses: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Return a unique pair (colour, marker) for each use of a transport in an experiment.

    The first use of a transport keeps the transport's own pair. Further uses get the next free pairs of the palette.

    Args:
        uses: name of the transport, its own colour and its own marker, for each use.

    Raises:
        ValueError: the palette has too few pairs.
    """
    own = {(colour, marker) for _, colour, marker in uses}
    taken_colours, taken_markers = {c for c, _ in own}, {m for _, m in own}
    free = (style for style in _palette() if style[0] not in taken_colours and style[1] not in taken_markers)
    seen: set[str] = set()
    styles = []
    for name, colour, marker in uses:
        styles.append(next(free) if name in seen else (colour, marker))
        seen.add(name)
    return styles


def _palette() -> Iterator[tuple[str, str]]:
    """Yield every pair (colour, marker) of the palette once; consecutive pairs differ in both.

    Raises:
        ValueError: no pair is left.
    """
    for shift in itertools.count():
        if shift == len(MARKERS):
            raise ValueError(f"more than {len(COLOURS) * len(MARKERS)} variants of transports cannot be told apart")
        for index, colour in enumerate(COLOURS):
            yield colour, MARKERS[(index + shift) % len(MARKERS)]
