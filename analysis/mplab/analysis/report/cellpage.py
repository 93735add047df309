"""Write the pages of the cells: the evidence behind each number of a report.

Everything in a cell's folder can come from another user: texts are escaped by the template, no file is read through a
link, and every list and text has a maximum length.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from mplab.analysis.figures.celltrace import cell_charts
from mplab.analysis.figures.run_traces import trace_of
from mplab.analysis.figures.svgchart import Chart
from mplab.analysis.record.links import Measurement, measurements, tolerance_of
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.record.steps import StepTime, timelines
from mplab.analysis.report.places import page_name
from mplab.analysis.report.waterfall import PHASE_TITLES, WaterfallChart, share, short, waterfalls
from mplab.analysis.statistics.summaries import Analysis, CellValue
from mplab.analysis.text import DASH, data, number, percent, plural, printable, quantity
from mplab.format.cell import CellRecord
from mplab.format.experiment import TransportRecord
from mplab.format.link import interface_title

MOST_MOMENTS, MOST_FACTS, MOST_FILES, MOST_IMAGES = 300, 100, 60, 60
"""Maximum numbers on a page: events, lines of evidence, files of a list, pictures."""

TAIL_LINES, TAIL_BYTES = 15, 4000
"""Maximum size of the end of a log that a page shows."""

_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_FILMS = frozenset({".mp4", ".webm"})
_PICTURE_FOLDERS = ("screenshots", "screenshots-peer")
_SECRET = "tls-keys"  # noqa: S105 - the start of a file name
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
"""Matches names of files that a page links; names of mplab's own files match."""


@dataclass(frozen=True)
class ValueRow:
    """A value of a cell, and the median of its series over all ok cells, as texts."""

    metric: str
    label: str
    value: str
    median: str
    n: int
    headline: bool


@dataclass(frozen=True)
class CellLink:
    """A measured quantity of a cell's link: requested and measured value, deviation and tolerance, as texts."""

    interface: str
    quantity: str
    requested: str
    measured: str
    deviation: str
    tolerance: str
    good: bool


@dataclass(frozen=True)
class StepBar:
    """An event of a cell; a step has a bar. ``left`` and ``width`` are in percent of the cell's duration."""

    at: str
    text: str
    is_step: bool
    took: str
    left: float
    width: float


@dataclass(frozen=True)
class CellFile:
    """A file of the cell's folder: its path in the folder, a remark, and for logs their last lines."""

    path: str
    remark: str = ""
    tail: str = ""


@dataclass(frozen=True)
class CellPage:
    """The content of a cell's page."""

    cell: Cell
    transport: TransportRecord | None
    record: CellRecord | None
    problems: tuple[str, ...]
    values: tuple[ValueRow, ...]
    steps: tuple[StepBar, ...]
    links: tuple[CellLink, ...]
    evidence: tuple[tuple[str, str], ...]
    waterfalls: tuple[WaterfallChart, ...]
    pictures: tuple[str, ...]
    films: tuple[str, ...]
    charts: tuple[tuple[str, str, Chart], ...]
    logs: tuple[CellFile, ...]
    files: tuple[CellFile, ...]
    same_block: tuple[tuple[Cell, TransportRecord | None], ...]
    """The cells that differ only in the transport, this one included."""
    before: Cell | None
    after: Cell | None

    @property
    def phases(self) -> list[tuple[str, str]]:
        """Return (name, title) of the phases in the waterfalls, in the order of a request."""
        shown = {part[0] for load in self.waterfalls for request in load.requests for part in request.parts}
        return [(name, PHASE_TITLES[name]) for name in PHASE_TITLES if name in shown]

    @property
    def folder(self) -> str:
        """Return the name of the cell's folder; "" if the cell has none."""
        return self.cell.directory.name if self.cell.directory is not None else ""


def render_pages(analysis: Analysis, environment: Environment) -> Iterator[tuple[str, str]]:
    """Yield (file name, HTML) of the page of each cell, in the order of the run."""
    environment.filters["chart"] = lambda chart: Markup(chart.svg())  # noqa: S704 - our own drawing
    template = environment.get_template("cell.html.j2")
    experiment = analysis.run.manifest.experiment
    title = experiment.title or experiment.name
    for page in cell_pages(analysis):
        yield page_name(page.cell.id), template.render(page=page, run=analysis.run, title=title)


def cell_pages(analysis: Analysis) -> Iterator[CellPage]:
    """Yield the content of the page of each cell, in the order of the run."""
    run = analysis.run
    moments, transports = timelines(run), {transport.label: transport for transport in run.transports}
    values = _values(analysis)
    measured = defaultdict(list)
    for measurement in measurements(run):
        measured[measurement.cell].append(measurement)
    siblings = defaultdict(list)
    for cell in run.cells:
        if cell.spec is not None:
            key = (cell.spec.scenario, cell.spec.link, cell.spec.repetition)
            siblings[key].append((cell, transports.get(cell.spec.transport)))
    for index, cell in enumerate(run.cells):
        spec = cell.spec
        charts, failures = _charts(run, cell)
        loads = tuple(waterfalls(cell))
        own = [problem.message for problem in analysis.problems if problem.cell == cell.id]
        yield CellPage(
            cell=cell,
            transport=transports.get(spec.transport) if spec is not None else None,
            record=cell.record,
            problems=(*own, *failures),
            values=tuple(values.get(cell.id, ())),
            steps=tuple(_steps(moments.get(cell.id, ()))),
            links=tuple(_link(run, measurement) for measurement in measured[cell.id]),
            evidence=tuple(islice(_evidence(cell.record), MOST_FACTS)) if cell.record is not None else (),
            waterfalls=loads,
            pictures=tuple(_of_kind(cell, _PICTURE_FOLDERS, _IMAGES, MOST_IMAGES)),
            films=tuple(_of_kind(cell, ("film",), _FILMS, MOST_FILES)),
            charts=charts,
            logs=tuple(_logs(cell)),
            files=tuple(_files(cell, loads)),
            same_block=tuple(siblings[spec.scenario, spec.link, spec.repetition]) if spec is not None else (),
            before=run.cells[index - 1] if index else None,
            after=run.cells[index + 1] if index + 1 < len(run.cells) else None,
        )


def _values(analysis: Analysis) -> Mapping[str, list[ValueRow]]:
    """Return cell → its values, headline metrics first."""
    by_cell = defaultdict(list)
    for group in sorted(analysis.groups, key=lambda group: not group.metric.headline):
        for series in group.measured:
            median = series.description.median if series.description else None
            for value in series.values:
                by_cell[value.cell].append(
                    ValueRow(
                        metric=group.metric.title,
                        label=group.label_text,
                        value=_value_text(value, group.metric.unit),
                        median=quantity(median, group.metric.unit),
                        n=len(series.values),
                        headline=group.metric.headline,
                    )
                )
    return by_cell


def _value_text(value: CellValue, unit: str) -> str:
    """Return the value of a cell; with repetitions: ``0.32 s, median of 10 (0.31 to 0.4)``."""
    text = quantity(value.value, unit)
    if not value.each:
        return text
    return f"{text}, median of {len(value.each)} ({number(min(value.values))} to {number(max(value.values))})"


def _link(run: Run, measurement: Measurement) -> CellLink:
    unit = "ms" if measurement.kind == "rtt" else "kbit/s"
    tolerance = tolerance_of(run, measurement.kind)
    return CellLink(
        interface=interface_title(measurement.interface),
        quantity=measurement.quantity,
        requested=quantity(measurement.asked, unit),
        measured=quantity(measurement.measured, unit),
        deviation=percent(measurement.deviation, sign=True),
        tolerance=f"±{percent(tolerance)}",
        good=abs(measurement.deviation) <= tolerance,
    )


def _steps(moments: Sequence[StepTime]) -> Iterator[StepBar]:
    total_s = max((moment.at_s for moment in moments), default=0.0) or 1.0
    for moment in moments[:MOST_MOMENTS]:
        yield StepBar(
            at=f"{moment.at_s:.2f} s",
            text=short(moment.text),
            is_step=moment.is_step,
            took=f"{moment.took_s:.2f} s" if moment.took_s is not None else "",
            left=share(moment.at_s, total_s),
            width=share(moment.took_s or 0.0, total_s),
        )


def _evidence(record: CellRecord) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each fact that proves the transport, and of the conditions during the cell."""
    proof = record.proof
    for name, value in proof.active.items():
        yield "verified" if name == "ok" else short(name.replace("_", " ")), short(_text(value))
    for interface, subflows in proof.subflows.items():
        carried = f"{data(subflows.bytes_down)} down, {data(subflows.bytes_up)} up"
        yield f"subflows on {short(interface)}", f"{subflows.established} established, {carried}"
    for interface, path in proof.session.paths.items():
        again = f", {data(path.copied_down + path.copied_up)} sent again" if path.copied_down or path.copied_up else ""
        yield f"session on {short(interface)}", f"{data(path.bytes_down)} down, {data(path.bytes_up)} up{again}"
    for name, count in proof.counters.items():
        if count:
            yield short(name), str(count)
    for sender, algorithm in record.congestion_control.known().items():
        yield f"congestion control of {sender}", short(algorithm)
    host = record.host
    for name, percentage in (
        ("processor of the host busy", host.busy_percent),
        ("waiting for the processor", host.pressure_percent),
        ("taken by the hypervisor", host.steal_percent),
    ):
        if percentage is not None:
            yield name, percent(percentage / 100)


def _charts(run: Run, cell: Cell) -> tuple[tuple[tuple[str, str, Chart], ...], tuple[str, ...]]:
    """Return (title, caption, chart) of each chart of the cell, and why the others cannot be drawn."""
    sessions = {transport.label for transport in run.transports if transport.sessions}
    charts = []
    try:
        if (trace := trace_of(cell, sessions)) is not None:
            charts += [(drawn.title, drawn.caption, drawn.chart) for drawn in cell_charts(trace)]
    except Exception as error:  # noqa: BLE001, RUF100 - one damaged table must not hide the other evidence
        return tuple(charts), (f"A chart of the traces cannot be drawn: {type(error).__name__}.",)
    return tuple(charts), ()


def _logs(cell: Cell) -> Iterator[CellFile]:
    names = islice((name for name in _names(cell, "logs") if not name.startswith(_SECRET)), MOST_FILES)
    for name in names:
        path = _path(cell, f"logs/{name}")
        size = path.stat().st_size
        yield CellFile(f"logs/{name}", data(size) if size else "empty", _tail(path) if size else "")
    for name in ("scenario.jsonl", "cell.json"):
        if _is_file(path := _path(cell, name)):
            yield CellFile(name, data(path.stat().st_size), _tail(path))


def _files(cell: Cell, loads: Sequence[WaterfallChart]) -> Iterator[CellFile]:
    """Yield the captures that the record of the cell lists, then the logs of page loads.

    The captures need not be here: the retention rules can compress or remove them, and a cluster analyses without them.
    """
    for capture in islice(cell.record.captures if cell.record is not None else (), MOST_FILES):
        if _NAME.fullmatch(capture.file):
            lost = f", {plural(capture.dropped, 'packet')} dropped" if capture.dropped else ""
            where = f"{capture.node} {capture.interface}".strip()
            yield CellFile(capture.file, short(f"{where}: {plural(capture.packets, 'packet')}{lost}"))
    yield from (CellFile(load.file) for load in loads if _NAME.fullmatch(Path(load.file).name))


def _of_kind(cell: Cell, folders: Sequence[str], suffixes: frozenset[str], most: int) -> Iterator[str]:
    paths = (f"{folder}/{name}" for folder in folders for name in _names(cell, folder))
    yield from islice((path for path in paths if Path(path).suffix.lower() in suffixes), most)


def _names(cell: Cell, folder: str) -> list[str]:
    """Return the names of the linkable files in a folder of the cell, sorted; files behind links are left out."""
    if cell.directory is None or not (cell.directory / folder).is_dir():
        return []
    paths = sorted((cell.directory / folder).iterdir())
    return [path.name for path in paths if _NAME.fullmatch(path.name) and _is_file(path)]


def _path(cell: Cell, name: str) -> Path:
    return (cell.directory or Path()) / name


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _tail(path: Path) -> str:
    """Return the last lines of a log, at most `TAIL_LINES` and `TAIL_BYTES`."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - TAIL_BYTES, 0))
        text = file.read(TAIL_BYTES).decode(errors="replace")
    lines = text.splitlines()
    cut = size > TAIL_BYTES or len(lines) > TAIL_LINES
    return ("…\n" if cut else "") + printable("\n".join(lines[-TAIL_LINES:]))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return DASH if value is None else str(value)
