"""Draw recorded sound and received bytes on one time axis: for each transport, a waveform and the bytes per network.

Marks show silences, skips, requests for the stream, retransmissions, reinjections, and changes of the paths, as in
baerts2015 fig. 6.4-6.12. In baerts2015 §6.2.2, sound and bytes are not aligned: the app reported no times.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.run_traces import traces_of
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.style import QUIET, Canvas, Drawing
from mplab.analysis.figures.traces import bytes_over_time
from mplab.analysis.figures.traces.bytes_over_time import FacetData, colours_of, facet_of
from mplab.analysis.files import inside
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import slug
from mplab.format.experiment import TransportRecord
from mplab.format.palette import GREEN, RED, VIOLET
from mplab.scenarios.base.scoring.sound import Playback, listen

COLUMNS = ("scenario", "link", "transport", "cell", "start_s", "end_s", "least", "most")
POINTS = 600
"""Number of equally long parts of a waveform; the smallest and the largest sample of each part are drawn."""
SILENCE, SKIP, FIRST, REQUEST = RED, VIOLET, GREEN, GREEN
WAVE_IN, BYTES_IN = 0.75, 1.3
"""Heights of the rows of a transport, inches: waveform, bytes."""

BYTES = Axis("Payload", "bytes")


@dataclass(frozen=True)
class CellSound:
    """Recorded sound and traffic of one cell, as this module draws them."""

    cell: Cell
    transport: TransportRecord
    playback: Playback
    envelope: NDArray[np.float64]
    """Rows (start_s, end_s, smallest sample, largest sample); times are relative to the tap."""
    facet: FacetData | None
    """Received bytes per network over time; None without packet captures."""
    requests_s: tuple[float, ...]
    """Times of the app's requests for the stream, s from the tap."""


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield one figure for each pair of a link and a scenario that records sound."""
    for (scenario, link), heard in _groups(analysis).items():
        stem = f"waveform-{slug(scenario)}-{slug(link)}"
        title = f"{scenario} · {link} · Sound and bytes"
        cells = ", ".join(row.cell.id for row in heard)
        yield Drawing(
            stem=stem,
            section="traces",
            title=title,
            caption=f"Sound of the phone's sound card from the tap on, in each transport's first ok cell: {cells}. "
            "Below it the payload that each network had carried by then, with crosses where data was sent again, "
            "triangles where the app requested the stream, and bands where a path could not be used.",
            svg=_svg(stem, title, heard),
            columns=COLUMNS,
            rows=[
                (scenario, link, row.transport.label, row.cell.id, *(float(value) for value in part))
                for row in heard
                for part in row.envelope
            ],
            scenario=scenario,
            link=link,
        )


def _groups(analysis: Analysis) -> dict[tuple[str, str], list[CellSound]]:
    """Return (scenario, link) → for each transport, the first ok cell that has a usable recording."""
    groups: dict[tuple[str, str], list[CellSound]] = {}
    for transport in analysis.run.transports:
        seen: set[tuple[str, str]] = set()
        for cell in analysis.run.cells:
            if not cell.ok or cell.spec is None or cell.spec.transport != transport.label:
                continue
            key = (cell.spec.scenario, cell.spec.link)
            if key not in seen and (heard := _heard(analysis.run, cell, transport)) is not None:
                seen.add(key)
                groups.setdefault(key, []).append(heard)
    return groups


def _heard(run: Run, cell: Cell, transport: TransportRecord) -> CellSound | None:
    """Return sound and traffic of a cell; None if it has no usable recording."""
    playback = _playback(cell)
    if playback is None:
        return None
    observations = cell.observations()
    tapped = next(float(item["tapped"]) for item in observations if item["event"] == "sound")
    requests_s = [float(i["at"]) - tapped for i in observations if i["event"] == "player" and i["what"] == "request"]
    traces = traces_of(run, [cell.id]).traces
    facet = facet_of(traces[0], round(tapped * 1e9), playback.recording.duration_s) if traces else None
    return CellSound(cell, transport, playback, envelope(playback), facet, tuple(requests_s))


def _playback(cell: Cell) -> Playback | None:
    """Return the audible playback of a cell; None if it has no usable recording (scoring reports the problem)."""
    for observation in cell.observations():
        if observation["event"] == "sound" and cell.directory is not None:
            try:
                return listen(observation, inside(cell.directory, observation["file"]))
            except (FileNotFoundError, ValueError, KeyError):
                return None
    return None


def envelope(playback: Playback, points: int = POINTS) -> NDArray[np.float64]:
    """Divide the recording into up to `points` equally long parts, and return their extremes.

    Returns:
        Array of shape (parts, 4): start and end of the part, s from the tap; its smallest and largest sample.
    """
    samples, rate = playback.recording.samples, playback.recording.rate_hz
    edges = np.unique(np.linspace(0, len(samples), points + 1).astype(int))
    parts = [
        (start / rate, end / rate, samples[start:end].min(), samples[start:end].max()) for start, end in pairwise(edges)
    ]
    return np.array(parts, dtype=np.float64).reshape(-1, 4)


def _svg(stem: str, title: str, heard: Sequence[CellSound]) -> str:
    heights = [height for row in heard for height in (WAVE_IN, BYTES_IN)[: 1 if row.facet is None else 2]]
    facets = [row.facet for row in heard if row.facet is not None]
    colours = colours_of(facets)
    most = max((float(y.max()) for facet in facets for _, y in facet.curves.values()), default=0.0)
    with Canvas(title, 1.3 + 0.25 * len(heard) + sum(heights)) as canvas:
        grid = canvas.figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)
        free = iter(grid.flat)
        for row in heard:
            _waveform(next(free), row)
            if row.facet is not None:
                _bytes(next(free), row, row.facet, colours, most)
        grid.flat[-1].set_xlabel("Time since the tap (s)")
        canvas.legend([*_legend(heard), *bytes_over_time.legend(facets, colours)], columns=4)
        return canvas.svg(stem)


def _waveform(axes: Axes, row: CellSound) -> None:
    parts = row.envelope
    middle = (parts[:, 0] + parts[:, 1]) / 2
    axes.fill_between(middle, parts[:, 2], parts[:, 3], color=row.transport.colour, linewidth=0.3)
    for pause in row.playback.silences:
        axes.axvspan(pause.start_s, pause.end_s, color=SILENCE, alpha=0.25, linewidth=0)
    for skip in row.playback.skips:
        axes.axvline(skip.at_s, color=SKIP, linestyle="--", linewidth=1.2)
    axes.axvline(row.playback.first_sound_s, color=FIRST, linewidth=1.2)
    axes.axhline(0, color=QUIET, linewidth=0.5)
    loudest = max(0.05, float(np.abs(parts[:, 2:]).max()))
    axes.set_ylim(-1.1 * loudest, 1.1 * loudest)
    axes.set_yticks([])
    axes.set_xlim(0, row.playback.recording.duration_s)
    axes.set_title(row.transport.title)
    axes.grid(visible=False, axis="y")


def _bytes(axes: Axes, row: CellSound, facet: FacetData, colours: dict[str, str], most: float) -> None:
    bytes_over_time.paint(axes, facet, colours)
    BYTES.dress(axes, "y")
    axes.set_ylabel("New payload")  # the full title is longer than the axis
    axes.set_ylim(-0.04 * most, 1.15 * most)
    tops = [1.08 * most] * len(row.requests_s)
    axes.plot(row.requests_s, tops, linestyle="none", marker="v", color=REQUEST, markersize=5.0, clip_on=False)


def _legend(heard: Sequence[CellSound]) -> Iterator[Line2D | Patch]:
    yield Line2D([], [], color=FIRST, linewidth=1.2, label="First sound")
    if any(row.playback.silences for row in heard):
        yield Patch(facecolor=SILENCE, alpha=0.25, label="Silence")
    if any(row.playback.skips for row in heard):
        yield Line2D([], [], color=SKIP, linestyle="--", linewidth=1.2, label="Skip")
    if any(row.requests_s and row.facet for row in heard):
        yield Line2D([], [], linestyle="none", marker="v", color=REQUEST, markersize=5.0, label="Stream requested")


FIGURE = RunFigure(order=45, title="Sound of a recording, and the bytes that carried it", draw=draw)
