"""Draw when each cell ran, with its outcome: a row per block."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import Canvas, Drawing, name_rows
from mplab.analysis.record.run import Run
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import duration
from mplab.format.palette import BLUE, GREY, OLIVE, RED
from mplab.format.runevents import CellFinished, CellStarted

COLUMNS = ("cell", "block", "scenario", "transport", "link", "outcome", "attempt", "start_s", "duration_s")
TITLE = "When each cell ran"
LOOKS: dict[str, tuple[str, str]] = {
    "ok": (BLUE, ""),
    "invalid": (OLIVE, "////"),
    "failed": (RED, "xxxx"),
    "partial": (GREY, "...."),
}
"""Outcome of a cell → colour and hatch; the hatch distinguishes the outcomes without colour."""

HOUR_S, MINUTE_S = 3600.0, 60.0
SECONDS_UP_TO_S, MINUTES_UP_TO_S = 180.0, 3 * HOUR_S


@dataclass(frozen=True)
class Bar:
    """The bar of a cell on the time axis; ``start_s`` is relative to the start of the first cell."""

    cell: str
    block: int
    scenario: str
    transport: str
    link: str
    outcome: str
    attempt: int
    start_s: float
    duration_s: float


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield the drawing, or nothing when no cell has started."""
    bars = timeline(analysis.run)
    if bars:
        yield Drawing(
            stem="timeline",
            section="timeline",
            title=TITLE,
            caption="A row is a block: one repetition of every combination, in random order. "
            "Gaps are pauses of the run.",
            svg=_svg(bars),
            columns=COLUMNS,
            rows=[tuple(vars(bar).values()) for bar in bars],
        )


def timeline(run: Run) -> list[Bar]:
    """Return the bar of each cell that started, sorted by start.

    The times come from the run's events, or from the cell's record if the events lack them.
    """
    started = {event.cell: event.t for event in run.events_of(CellStarted)}
    ended = {event.cell: event.t for event in run.events_of(CellFinished)}
    last = max((event.t for event in run.typed_events), default=0.0)
    bars = []
    for cell in run.cells:
        begin = started.get(cell.id)
        if begin is None and cell.record is not None and cell.record.started:
            begin = _unix(cell.record.started)
        if begin is None or cell.spec is None:
            continue
        known = sum(cell.record.timings_s.values()) if cell.record is not None else 0.0
        end = ended.get(cell.id, begin + known if cell.record is not None else last)
        attempt = cell.record.attempt if cell.record is not None else 1
        spec = cell.spec
        bars.append(
            Bar(
                cell.id,
                spec.block,
                spec.scenario,
                spec.transport,
                spec.link,
                cell.outcome,
                attempt,
                begin,
                max(end - begin, 0.0),
            )
        )
    origin = min((bar.start_s for bar in bars), default=0.0)
    moved = [Bar(**{**vars(bar), "start_s": bar.start_s - origin}) for bar in bars]
    return sorted(moved, key=lambda bar: (bar.start_s, bar.cell))


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _svg(bars: list[Bar]) -> str:
    blocks = sorted({bar.block for bar in bars})
    end = max(bar.start_s + bar.duration_s for bar in bars)
    unit, scale = "s", 1.0
    if end > MINUTES_UP_TO_S:
        unit, scale = "h", HOUR_S
    elif end > SECONDS_UP_TO_S:
        unit, scale = "min", MINUTE_S
    with Canvas(TITLE, 0.8 + 0.24 * len(blocks)) as canvas:
        axes = canvas.facets(1)[0]
        for bar in bars:
            colour, hatch = LOOKS.get(bar.outcome, LOOKS["partial"])
            (rectangle,) = axes.barh(
                blocks.index(bar.block),
                bar.duration_s / scale,
                left=bar.start_s / scale,
                height=0.72,
                color=colour,
                edgecolor="white",
                linewidth=0.5,
                hatch=hatch,
            )
            canvas.name_cells(rectangle, [(bar.cell, f"{bar.cell}: {bar.outcome}, {duration(bar.duration_s)}")])
        name_rows(axes, [f"block {block}" for block in blocks])
        axes.set_xlim(0, max(end / scale, 1e-9) * 1.01)
        axes.set_xlabel(f"Time since the start of the first cell ({unit})")
        present = [outcome for outcome in LOOKS if any(bar.outcome == outcome for bar in bars)]
        canvas.legend(
            [Patch(facecolor=LOOKS[o][0], hatch=LOOKS[o][1], edgecolor="white", label=_count(o, bars)) for o in present]
        )
        return canvas.svg("timeline")


def _count(outcome: str, bars: list[Bar]) -> str:
    return f"{outcome} ({sum(bar.outcome == outcome for bar in bars)})"


FIGURE = RunFigure(order=60, title=TITLE, draw=draw)
