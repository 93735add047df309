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
from mplab.analysis.record.pageload import PHASES, WebRequest, page_loads
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.record.steps import Moment, timelines
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import DASH, data, percent, plural, printable, quantity
from mplab.format.cell import CellRecord
from mplab.format.experiment import TransportRecord
from mplab.format.link import interface_title

FOLDER = "cells"
"""Folder of the pages in ``report``."""

MOST_REQUESTS, MOST_MOMENTS, MOST_FACTS, MOST_FILES, MOST_IMAGES = 300, 300, 100, 60, 60
"""Maximum numbers on a page: requests of all waterfalls, events, lines of evidence, files of a list, pictures."""

TAIL_LINES, TAIL_BYTES = 15, 4000
"""Maximum size of the end of a log that a page shows."""

MOST_CHARACTERS = 300
"""Maximum length of a text from a record that a page shows."""

_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_FILMS = frozenset({".mp4", ".webm"})
_PICTURE_FOLDERS = ("screenshots", "screenshots-peer")
_SECRET = "tls-keys"  # noqa: S105 - the start of a file name
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
"""Matches names of files that a page links; names of mplab's own files match."""


@dataclass(frozen=True)
class CellValue:
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
class RequestBar:
    """A request of a page load; ``parts`` has (phase, title, left, width) of its bar, in percent of the load."""

    text: str
    facts: str
    parts: tuple[tuple[str, str, float, float], ...]


@dataclass(frozen=True)
class Waterfall:
    """The requests of a page load, and (name and time, left in percent) of the page's events."""

    file: str
    duration: str
    requests: tuple[RequestBar, ...]
    total: int
    marks: tuple[tuple[str, float], ...]
    problem: str


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
    values: tuple[CellValue, ...]
    steps: tuple[StepBar, ...]
    links: tuple[CellLink, ...]
    evidence: tuple[tuple[str, str], ...]
    waterfalls: tuple[Waterfall, ...]
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
    def folder(self) -> str:
        """Return the name of the cell's folder; "" if the cell has none."""
        return self.cell.directory.name if self.cell.directory is not None else ""


def page_name(cell: str) -> str:
    """Return the file name of a cell's page in the folder `FOLDER`."""
    return f"{cell}.html"


def render_pages(analysis: Analysis, environment: Environment) -> Iterator[tuple[str, str]]:
    """Yield (file name, HTML) of the page of each cell, in the order of the run."""
    environment.filters["chart"] = lambda chart: Markup(chart.svg())  # noqa: S704 - our own drawing
    template = environment.get_template("cell.html.j2")
    experiment = analysis.run.manifest.experiment
    title = experiment.title or experiment.name
    for page in cell_pages(analysis):
        yield page_name(page.cell.id), template.render(page=page, run=analysis.run, title=title, phases=PHASES)


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
        waterfalls = tuple(_waterfalls(cell))
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
            waterfalls=waterfalls,
            pictures=tuple(_of_kind(cell, _PICTURE_FOLDERS, _IMAGES, MOST_IMAGES)),
            films=tuple(_of_kind(cell, ("film",), _FILMS, MOST_FILES)),
            charts=charts,
            logs=tuple(_logs(cell)),
            files=tuple(_files(cell, waterfalls)),
            same_block=tuple(siblings[spec.scenario, spec.link, spec.repetition]) if spec is not None else (),
            before=run.cells[index - 1] if index else None,
            after=run.cells[index + 1] if index + 1 < len(run.cells) else None,
        )


def _values(analysis: Analysis) -> Mapping[str, list[CellValue]]:
    """Return cell → its values, headline metrics first."""
    by_cell = defaultdict(list)
    for group in sorted(analysis.groups, key=lambda group: not group.metric.headline):
        for series in group.measured:
            median = series.description.median if series.description else None
            for value in series.values:
                by_cell[value.cell].append(
                    CellValue(
                        metric=group.metric.title,
                        label=group.label_text,
                        value=quantity(value.value, group.metric.unit),
                        median=quantity(median, group.metric.unit),
                        n=len(series.values),
                        headline=group.metric.headline,
                    )
                )
    return by_cell


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


def _steps(moments: Sequence[Moment]) -> Iterator[StepBar]:
    total_s = max((moment.at_s for moment in moments), default=0.0) or 1.0
    for moment in moments[:MOST_MOMENTS]:
        yield StepBar(
            at=f"{moment.at_s:.2f} s",
            text=_short(moment.text),
            is_step=moment.is_step,
            took=f"{moment.took_s:.2f} s" if moment.took_s is not None else "",
            left=_share(moment.at_s, total_s),
            width=_share(moment.took_s or 0.0, total_s),
        )


def _evidence(record: CellRecord) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each fact that proves the transport, and of the conditions during the cell."""
    proof = record.proof
    for name, value in proof.active.items():
        yield "verified" if name == "ok" else _short(name.replace("_", " ")), _short(_text(value))
    for interface, subflows in proof.subflows.items():
        carried = f"{data(subflows.bytes_down)} down, {data(subflows.bytes_up)} up"
        yield f"subflows on {_short(interface)}", f"{subflows.established} established, {carried}"
    for interface, path in proof.session.paths.items():
        again = f", {data(path.copied_down + path.copied_up)} sent again" if path.copied_down or path.copied_up else ""
        yield f"session on {_short(interface)}", f"{data(path.bytes_down)} down, {data(path.bytes_up)} up{again}"
    for name, count in proof.counters.items():
        if count:
            yield _short(name), str(count)
    for sender, algorithm in record.congestion_control.known().items():
        yield f"congestion control of {sender}", _short(algorithm)
    host = record.host
    for name, percentage in (
        ("processor of the host busy", host.busy_percent),
        ("waiting for the processor", host.pressure_percent),
        ("taken by the hypervisor", host.steal_percent),
    ):
        if percentage is not None:
            yield name, percent(percentage / 100)


def _waterfalls(cell: Cell) -> Iterator[Waterfall]:
    left = MOST_REQUESTS
    for load in page_loads(cell):
        total_ms = load.end_ms or 1.0
        shown = load.requests[:left]
        left -= len(shown)
        yield Waterfall(
            file=load.file,
            duration=_milliseconds(load.end_ms),
            requests=tuple(_request(request, total_ms) for request in shown),
            total=len(load.requests),
            marks=tuple((f"{name} {_milliseconds(at_ms)}", _share(at_ms, total_ms)) for name, at_ms in load.marks),
            problem=load.problem,
        )


def _request(request: WebRequest, total_ms: float) -> RequestBar:
    parts, at_ms = [], request.start_ms
    for name, took_ms in request.phases:
        parts.append((name, f"{name} {_milliseconds(took_ms)}", _share(at_ms, total_ms), _share(took_ms, total_ms)))
        at_ms += took_ms
    size = data(request.size_bytes) if request.size_bytes is not None else ""
    connection = f"connection {request.connection}" if request.connection else ""
    took = _milliseconds(request.end_ms - request.start_ms) if request.phases else "not completed"
    facts = (str(request.status or ""), size, request.protocol, connection, took)
    return RequestBar(
        _short(f"{request.method} {request.url}"), _short(" · ".join(fact for fact in facts if fact)), tuple(parts)
    )


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


def _files(cell: Cell, waterfalls: Sequence[Waterfall]) -> Iterator[CellFile]:
    """Yield the captures that the record of the cell lists, then the logs of page loads.

    The captures need not be here: the retention rules can compress or remove them, and a cluster analyses without them.
    """
    for capture in islice(cell.record.captures if cell.record is not None else (), MOST_FILES):
        if _NAME.fullmatch(capture.file):
            lost = f", {plural(capture.dropped, 'packet')} dropped" if capture.dropped else ""
            where = f"{capture.node} {capture.interface}".strip()
            yield CellFile(capture.file, _short(f"{where}: {plural(capture.packets, 'packet')}{lost}"))
    yield from (CellFile(load.file) for load in waterfalls if _NAME.fullmatch(Path(load.file).name))


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


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _milliseconds(value: float) -> str:
    return quantity(value / 1000, "s") if value >= 1000 else f"{value:.0f}\N{NO-BREAK SPACE}ms"


def _share(part: float, whole: float) -> float:
    """Return ``part`` in percent of ``whole``, with two decimals: a position on a bar."""
    return round(min(max(100 * part / whole, 0.0), 100.0), 2)
