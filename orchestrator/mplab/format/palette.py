"""Colours and markers of transports in figures."""

import itertools
from collections.abc import Iterator, Sequence

BLUE, VERMILION, GREEN, PURPLE, OLIVE, SKY, GREY = PALETTE = (
    "#0072B2", "#C55200", "#00886A", "#C06A9A", "#8A7A1F", "#3A7FD5", "#777777",
)  # fmt: skip
"""Colours of figures: Okabe & Ito's hues, distinguishable with any colour vision, in a narrower range of lightness.

Each has a contrast of at least 3:1 with the white page and with the dark page (WCAG 2.2, 1.4.11), so that a colour is
the same on both. All other colours of data in figures keep to this rule.
"""

VIOLET, BROWN, TEAL, RED = "#8B5FBF", "#A0642C", "#1F8A9C", "#D1495B"
"""Further colours under the same rule, for many series; less different from each other than those of `PALETTE`."""

COLOURS = ("#A8507A", "#1F8A9C", "#8A7A1F", "#7B68C8", "#6F8A1C", "#AA4499", "#3D8B4F", "#CC6677")
"""Colours of further variants of a transport: Paul Tol's hues "muted", under the same rule."""

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
