"""Draw link conditions over time: as text for a terminal, and as a figure."""

from collections.abc import Sequence
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.base.paths import INTERFACES
from mplab.format.direction import WAYS
from mplab.format.link import LinkCondition
from mplab.format.units import format_duration_ms, format_duration_s, format_percent, format_rate
from mplab.userfiles.links.timeline import Line, LinkTimeline, timeline_of

TITLES = {"wifi": "WiFi", "lte": "LTE"}
COLUMNS = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_OUT, _MARK, _IDLE = "×", "▼", "─"
_PANELS = ("rate", "delay", "jitter", "loss", "reorder", "duplicate")
_UNITS = {"rate": "Mbit/s", "delay": "ms", "jitter": "ms", "loss": "%", "reorder": "%", "duplicate": "%"}


def text_drawing(link: LinkCondition, columns: int = COLUMNS) -> list[tuple[str, str, str]]:
    """Return rows of three texts: label, drawing over time with `columns` characters, and a note.

    There are these rows, or none if nothing changes:

    * one for each quantity that changes; its note has the lowest and the highest value;
    * one for each path with outages, which ``×`` marks; its note has their share of the time;
    * one for each path and kind of other change (route, MPTCP), which ``▼`` marks; its note has the times;
    * the time axis.
    """
    story = timeline_of(link)
    rows = [_row(line, story, columns) for line in story.lines if line.changes]
    for path, outages in story.outages.items():
        if outages:
            share = sum(end - begin for begin, end in outages) / story.ends_s
            rows.append((f"{TITLES[path]} out", _outage_cells(outages, story, columns), f"{share:.0%} of the time"))
    for path, kind in dict.fromkeys((path, kind) for _, path, kind in story.marks):
        times = [at_s for at_s, *mark in story.marks if mark == [path, kind]]
        at = ", ".join(format_duration_s(at_s) for at_s in times[:3]) + (", …" if len(times) > 3 else "")
        rows.append((f"{TITLES[path]} {kind}", _mark_cells(times, story, columns), f"at {at}"))
    if rows:
        end = format_duration_s(round(story.ends_s, 1))
        rows.append(("", f"0 s{end:>{columns - 3}}", ""))
    return rows


def _row(line: Line, story: LinkTimeline, columns: int) -> tuple[str, str, str]:
    values = [value for _, value in line.steps if value is not None]
    most = max(values, default=0.0)
    cells = ""
    for column in range(columns):
        value = line.at(story.ends_s * (column + 0.5) / columns)
        level = len(_BLOCKS) - 1 if value is None or not most else int(value / most * (len(_BLOCKS) - 1) + 0.5)
        cells += _BLOCKS[level]
    unlimited = any(value is None for _, value in line.steps)
    low, high = format_value(line.quantity, min(values)), format_value(line.quantity, None if unlimited else most)
    ways = "" if line.ways == WAYS else f" {line.ways[0]}"
    return f"{TITLES[line.path]} {line.quantity}{ways}", cells, f"{low} to {high}"


def format_value(quantity: str, value: float | None) -> str:
    """Format a value of a link's quantity (kbit/s, ms or percent): ``7.04 Mbit/s``, ``25 ms``, ``1 %``.

    None is ``unlimited``.
    """
    if value is None:
        return "unlimited"
    value = round(value, 3)
    if quantity == "rate":
        return format_rate(value)
    return format_duration_ms(value) if quantity in {"delay", "jitter"} else format_percent(value)


def _outage_cells(outages: Sequence[tuple[float, float]], story: LinkTimeline, columns: int) -> str:
    width_s = story.ends_s / columns
    spans = [(column * width_s, (column + 1) * width_s) for column in range(columns)]
    return "".join(
        _OUT if any(begin < end and last > start for begin, last in outages) else _IDLE for start, end in spans
    )


def _mark_cells(times: Sequence[float], story: LinkTimeline, columns: int) -> str:
    marked = {min(int(at_s / story.ends_s * columns), columns - 1) for at_s in times}
    return "".join(_MARK if column in marked else _IDLE for column in range(columns))


def write_figure(link: LinkCondition, file: Path) -> None:
    """Draw a link condition over time, and write the drawing to `file` as SVG.

    It has a panel for rate, for delay, and for each other quantity that is not 0. Outages of a path are grey.

    Raises:
        OSError: the file cannot be written.
    """
    with deferred("slow to import"):
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        from mplab.analysis.figures.style import GRID, LINE_WIDTH, Canvas, interface_colour
    story = timeline_of(link)
    panels = [name for name in _PANELS if name in {"rate", "delay"} or _is_there(story, name)]
    with Canvas(link.title, 1.5 * len(panels) + 0.4) as canvas:
        grid = canvas.figure.subplots(len(panels), 1, sharex=True, squeeze=False)
        for axes, quantity in zip(grid.flat, panels, strict=True):
            for line in (line for line in story.lines if line.quantity == quantity):
                for direction in line.ways:
                    scale = 1000 if quantity == "rate" else 1
                    steps = [(at_s, value) for at_s, value in line.steps if value is not None]
                    times = [*(at_s for at_s, _ in steps), story.ends_s]
                    values = [value / scale for _, value in steps]
                    axes.step(
                        times,
                        [*values, values[-1]] if values else [float("nan")],
                        where="post",
                        color=interface_colour(INTERFACES[line.path]),
                        linestyle="-" if direction == "down" else "--",
                        linewidth=LINE_WIDTH,
                    )
            for path, outages in story.outages.items():
                colour = interface_colour(INTERFACES[path])
                for begin, end in outages:
                    axes.axvspan(begin, end, facecolor=GRID, edgecolor=colour, hatch="////", zorder=0)
            for at_s, path, _ in story.marks:
                axes.axvline(at_s, color=interface_colour(INTERFACES[path]), linestyle=":")
            if all(value is None for line in story.lines if line.quantity == quantity for _, value in line.steps):
                axes.text(0.5, 0.5, "unlimited", transform=axes.transAxes, ha="center")
            axes.set_ylabel(f"{quantity} ({_UNITS[quantity]})")
            axes.set_ylim(bottom=0)
        grid.flat[-1].set_xlim(0, story.ends_s)
        grid.flat[-1].set_xlabel("Time since the scenario began (s)")
        handles: list[Line2D | Patch] = [
            Line2D(
                [],
                [],
                color=interface_colour(INTERFACES[path]),
                linestyle="-" if direction == "down" else "--",
                label=f"{title} {direction}",
            )
            for path, title in TITLES.items()
            for direction in WAYS
        ]
        canvas.legend([*handles, Patch(facecolor=GRID, hatch="////", label="out")], columns=5)
        file.write_text(canvas.svg(f"link-{link.name}"), encoding="utf-8")


def _is_there(story: LinkTimeline, quantity: str) -> bool:
    return any(value for line in story.lines if line.quantity == quantity for _, value in line.steps)
