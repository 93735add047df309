"""Draw the playback of clips in the first ok cell of each transport: quality and buffer over time, with stalls."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import GRID, LINE_WIDTH, QUIET, Canvas, Drawing, panel_title
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import slug
from mplab.format.experiment import TransportRecord
from mplab.format.palette import GREY, OLIVE, RED
from mplab.scenarios.base.scoring.playback import METRICS, Clip, clips_of

COLUMNS = ("scenario", "link", "transport", "cell", "clip", "t_s", "media_s", "buffer_s", "quality", "state")
TITLE = "One test as it played"
METRIC = "mean_bitrate"
"""Metric of whose table the report shows the figure."""

_STALL, _STARTUP, _BUFFER = RED, OLIVE, GREY
_ROW_IN = 1.25


@dataclass(frozen=True)
class Played:
    """The clips that one cell played. Times in the figure are relative to the first tap in the cell."""

    transport: TransportRecord
    cell: str
    clips: tuple[Clip, ...]

    @property
    def began(self) -> float:
        """Return the unix time of the first tap, s."""
        return self.clips[0].tapped


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield one figure for each pair of a link and a scenario that plays video."""
    metrics = [metric for metric in METRICS if metric.name == METRIC]
    places = dict.fromkeys((group.scenario, group.link) for group in analysis.groups if group.metric in metrics)
    for scenario, link in places:
        tests = list(_tests(analysis, scenario, link))
        if not tests:
            continue
        stem = slug("playback", scenario, link)
        yield Drawing(
            stem=stem,
            section="distribution",
            title=TITLE,
            caption="The first test of each transport: quality shown (line), video in the buffer (area), waiting for "
            "the first picture and stalls (bands).",
            svg=_svg(tests, panel_title(scenario, link, TITLE), stem),
            columns=COLUMNS,
            rows=[(scenario, link, *row) for test in tests for row in _rows(test)],
            scenario=scenario,
            link=link,
            metric=METRIC,
        )


def _tests(analysis: Analysis, scenario: str, link: str) -> Iterator[Played]:
    cells = [
        (cell.spec.repetition, cell)
        for cell in analysis.run.cells
        if cell.ok and cell.spec is not None and (cell.spec.scenario, cell.spec.link) == (scenario, link)
    ]
    for transport in analysis.run.transports:
        of_transport = [
            (repetition, cell.id, cell)
            for repetition, cell in cells
            if cell.spec is not None and cell.spec.transport == transport.label
        ]
        if of_transport:
            _, identity, cell = min(of_transport, key=lambda entry: entry[:2])
            clips = clips_of(cell.observations())
            if clips:
                yield Played(transport, identity, tuple(clips))


def _height(clip: Clip, media_s: float) -> int | None:
    """Return the picture height, lines, of the segment at `media_s` seconds of the clip; None if it was not loaded."""
    shown = [segment for segment in clip.segments if segment.start_s <= media_s < segment.start_s + segment.duration_s]
    return shown[0].height if shown else None


def _state(clip: Clip, at: float) -> str:
    if at < clip.playing:
        return "starting"
    return "stalled" if any(begin <= at < end for begin, end in clip.stalls) else "playing"


def _rows(test: Played) -> Iterator[tuple[object, ...]]:
    for clip in test.clips:
        for sample in clip.samples:
            if sample.at <= clip.end:
                state = _state(clip, sample.at)
                height = _height(clip, sample.media_s) if state != "starting" else None
                quality = f"{height}p" if height else ""
                at_s, media_s = round(sample.at - test.began, 3), round(sample.media_s, 3)
                buffer_s = round(sample.buffer_s, 3)
                yield test.transport.label, test.cell, clip.name, at_s, media_s, buffer_s, quality, state


def _svg(tests: Sequence[Played], title: str, stem: str) -> str:
    heights = sorted({height for test in tests for clip in test.clips for height in clip.heights})
    end = max(clip.end - test.began for test in tests for clip in test.clips)
    most = max((s.buffer_s for test in tests for clip in test.clips for s in clip.samples), default=0.0)
    with Canvas(title, 0.75 + _ROW_IN * len(tests)) as canvas:
        grid = canvas.figure.subplots(len(tests), 1, squeeze=False, sharex=True)
        for axes, test in zip(grid.flat, tests, strict=True):
            axes.set_title(test.transport.title or test.transport.label)
            _draw_test(axes, test, heights)
            axes.set_ylim(0, max(most, 1.0) * 1.08)
            axes.set_xlim(0, end)
            axes.set_ylabel("Buffer (s)")
        grid.flat[-1].set_xlabel("Time since the first tap (s)")
        canvas.legend(
            [
                Line2D([], [], color=QUIET, linewidth=2 * LINE_WIDTH, label="quality"),
                Patch(facecolor=_BUFFER, alpha=0.5, label="buffer"),
                Patch(facecolor=_STARTUP, alpha=0.5, label="startup"),
                Patch(facecolor=_STALL, alpha=0.5, label="stall"),
            ]
        )
        return canvas.svg(stem)


def _draw_test(axes: Axes, test: Played, heights: Sequence[int]) -> None:
    quality = axes.twinx()
    quality.spines["right"].set_visible(True)
    quality.grid(visible=False)
    quality.set_ylim(-0.4, max(len(heights) - 1, 0) + 0.4)
    quality.set_yticks(range(len(heights)), [f"{height}p" for height in heights])
    for clip in test.clips:
        axes.axvspan(clip.tapped - test.began, clip.playing - test.began, color=_STARTUP, alpha=0.5, linewidth=0)
        for begin, end in clip.stalls:
            axes.axvspan(begin - test.began, end - test.began, color=_STALL, alpha=0.5, linewidth=0)
        samples = [sample for sample in clip.samples if sample.at <= clip.end]
        times = [sample.at - test.began for sample in samples]
        axes.fill_between(times, [s.buffer_s for s in samples], color=_BUFFER, alpha=0.5, linewidth=0)
        shown = [(s.at - test.began, _height(clip, s.media_s)) for s in samples if s.at >= clip.playing]
        steps = [(at, heights.index(height)) for at, height in shown if height in heights]
        quality.plot(
            [at for at, _ in steps],
            [level for _, level in steps],
            drawstyle="steps-post",
            color=test.transport.colour or QUIET,
            linewidth=2 * LINE_WIDTH,
        )
    axes.grid(visible=True, color=GRID)


FIGURE = RunFigure(order=25, title=TITLE, draw=draw)
