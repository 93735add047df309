"""Uploads of fresh files through an app, as the scenarios `dropbox` and `drive` do them (baerts2015 §4.3.1)."""

import hashlib
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.ui import Ui
from mplab.drivers.ui.evidence import keep_screen
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base.protocol import Context, Parameters
from mplab.userfiles.app import App

MAX_TEST_S = 120.0
"""A test of an app takes at most so long (baerts2015 §4.3); an upload that needs more is cancelled and scored."""
MAX_SIZE_BYTES = 200_000_000
MARGIN_S = 8.0
"""So long before the end of the cell's time an upload is cancelled."""

_SERVICE = "upload"
LOG = Path("logs") / f"{_SERVICE}.log"
"""What the origin says of uploads, in a cell's folder."""

_POLL_S = 0.5
_USUAL_KBPS = 7000.0
_START_S = 2.0
_RESULTS = """
return performance.getEntriesByType('measure').map(entry => ({
  began: (performance.timeOrigin + entry.startTime) / 1000,
  duration_s: entry.duration / 1000,
  ...entry.detail,
}));
"""


Size = Annotated[
    SizeBytes, between("size", 1, MAX_SIZE_BYTES, "more than 0 and at most {most} is needed", write=format_size)
]


class UploadParameters(Parameters):
    """Parameters of every upload; the file goes in one piece."""

    size: Size = Field(20_000_000, description="Of a file.")
    files: int = Field(2, ge=1, le=5, description="At most so many, one after the other.")
    think: Annotated[DurationS, Field(le=30)] = Field(1.0, description="Before each upload.")
    limit: Annotated[DurationS, Field(ge=15, le=600)] = Field(
        MAX_TEST_S, description="Of the test; an upload that needs more is cancelled."
    )

    @property
    def block_bytes(self) -> int:
        """Length of the pieces that the file is sent in."""
        return self.size

    @property
    def gap_s(self) -> float:
        """Rest between two pieces."""
        return 0.0

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """First byte and end of each piece."""
        step = self.block_bytes
        return [(offset, min(offset + step, self.size)) for offset in range(0, self.size, step)]


@dataclass
class _File:
    path: Path
    sha256: dict[int, str]
    """Offset of a block → its hash."""


@dataclass
class _Visit:
    """What a cell has open, and what it needs."""

    stack: ExitStack
    ui: Ui
    files: list[_File] = field(default_factory=list)
    deadline: float = 0.0
    ended: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Name of a file → its number, and when its upload ended (clock)."""


class UploadScenario:
    """`Scenario`: uploads in an app.

    Args:
        name: of the scenario; the store is the one that the service `upload` has under this name.
        title: for people.
        parameters: what can be set.
        app: the app; its ``start`` may have ``{url}``, ``{block_bytes}`` and ``{gap_ms}``.
    """

    needs_ui = True
    services = (_SERVICE,)

    def __init__(self, *, name: str, title: str, parameters: type[UploadParameters], app: App) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self._app = app
        self._visits: dict[Path, _Visit] = {}

    def time_limit_s(self, parameters: UploadParameters) -> float:
        """What the parameters say: 120 s. An upload that needs more is cancelled and scored."""
        return parameters.limit

    def estimate_s(self, parameters: UploadParameters) -> float:
        """Transfer at 7 Mbit/s, with the rests."""
        gaps_s = (len(parameters.blocks) - 1) * parameters.gap_s
        one_s = parameters.think + parameters.size * 8 / 1000 / _USUAL_KBPS + gaps_s
        return min(_START_S + parameters.files * one_s, parameters.limit - MARGIN_S)

    def prepare(self, context: Context, parameters: UploadParameters) -> None:
        """Make the files; start the app."""
        stack = ExitStack()
        visit = self._visits[context.cell_dir] = _Visit(stack, stack.enter_context(context.open_ui()))
        for _ in range(parameters.files):
            content = context.rng.randbytes(parameters.size)
            path = context.scratch_dir / f"{context.rng.getrandbits(64):016x}.bin"
            path.write_bytes(content)
            hashes = {begin: hashlib.sha256(content[begin:end]).hexdigest() for begin, end in parameters.blocks}
            visit.files.append(_File(path, hashes))

    def run(self, context: Context, parameters: UploadParameters) -> None:
        """Upload, until all files are there, the next would not fit into the time, or the time is up.

        StepError when the app fails, or when the server has something else than what was sent.
        """
        visit, app = self._visits[context.cell_dir], self._app
        visit.deadline = time.monotonic() + context.time_limit_s - MARGIN_S
        visit.ui.open(
            app.start.format(
                url=context.service(_SERVICE)[self.name],
                block_bytes=parameters.block_bytes,
                gap_ms=round(parameters.gap_s * 1000),
            ),
            timeout_s=_left_s(visit),
        )
        visit.ui.wait(app.elements["ready"], timeout_s=_left_s(visit))
        for number, file in enumerate(visit.files, 1):
            time.sleep(parameters.think)
            result = self._upload(context, visit, number)
            self._check(file, result)
            visit.ended[file.path.name] = (number, result["began"] + result["duration_s"])
            context.observe("upload", file=number, size_bytes=parameters.size, **result)
            if result["state"] != "done" or _left_s(visit) < result["duration_s"] + parameters.think:
                return

    def clean_up(self, context: Context, parameters: UploadParameters) -> None:
        """Close the app; observe what the origin's log says has arrived of each file by the end of its upload."""
        visit = self._visits.pop(context.cell_dir, None)
        if visit is None:
            return
        visit.stack.close()
        log = context.cell_dir / LOG
        if log.exists():
            for name, (number, ended) in visit.ended.items():
                context.observe("arrived", file=number, timeline=arrivals(log.read_text(), name, ended))

    def _upload(self, context: Context, visit: _Visit, number: int) -> dict[str, Any]:
        ui, elements = visit.ui, self._app.elements
        ui.type(elements["file"], str(visit.files[number - 1].path))
        ui.tap(elements["upload"])
        while not (results := ui.evaluate(_RESULTS))[number - 1 :]:
            if _left_s(visit) <= 0:
                ui.tap(elements["cancel"])
                ui.wait(elements["settled"], timeout_s=MARGIN_S / 2)
                results = ui.evaluate(_RESULTS)
                break
            time.sleep(_POLL_S)
        result: dict[str, Any] = results[number - 1]
        if result["state"] == "failed":
            keep_screen(ui, context.cell_dir / "screenshots" / f"file-{number}.png")
            raise StepError(f"{self.name}: file {number}: the app says: {ui.read(elements['status'])}")
        return result

    def _check(self, file: _File, result: dict[str, Any]) -> None:
        for block in result["blocks"]:
            if file.sha256.get(block["offset"]) != block["sha256"]:
                what = f"the block at {block['offset']} ({block['bytes']} bytes)"
                raise StepError(f"{self.name}: {file.path.name}: the server has something else in {what} than was sent")
        if result["state"] == "done" and len(result["blocks"]) != len(file.sha256):
            raise StepError(f"{self.name}: {len(result['blocks'])} of {len(file.sha256)} blocks have an answer")


def _left_s(visit: _Visit) -> float:
    return visit.deadline - time.monotonic()


def arrivals(log: str, name: str, until: float) -> list[tuple[float, int]]:
    """When how much of a file had arrived at the origin, from the log of the service `upload`.

    Args:
        log: its text.
        name: of the file.
        until: clock; what came later is left out.

    Returns:
        Clock and bytes, both ascending.
    """
    blocks: dict[int, int] = {}
    timeline: list[tuple[float, int]] = []
    for line in log.splitlines():
        record = json.loads(line)
        if record.get("name") == name and record["t"] <= until:
            blocks[record["offset"]] = max(record["bytes"], blocks.get(record["offset"], 0))
            timeline.append((record["t"], sum(blocks.values())))
    return timeline
