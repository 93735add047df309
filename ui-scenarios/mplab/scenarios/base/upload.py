"""Upload files of random bytes in a web app, as the scenarios `dropbox` and `drive` do (baerts2015 §4.3.1)."""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi
from mplab.drivers.ui.evidence import keep_screen
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Parameters, Scenario, Session
from mplab.userfiles.experiments.app import App

MAX_TEST_S = 120.0
"""Longest test of an app, s (baerts2015 §4.3). An upload that needs more is cancelled and scored."""
MAX_SIZE_BYTES = 200_000_000
MARGIN_S = 8.0
"""Time between the cancellation of an unfinished upload and the scenario's time limit, s."""

_SERVICE = "upload"
LOG = Path("logs") / f"{_SERVICE}.log"
"""Path in a cell's folder of the log of the service `upload`."""

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
    """Parameters of every scenario that uploads files. By default each file is sent in one piece."""

    size: Size = Field(20_000_000, description="Size of a file, up to 200 MB (baerts2015 §4.3.1).")
    files: int = Field(
        2,
        ge=1,
        le=5,
        description="Maximum number of files, one after the other. The next upload starts only if the time left is "
        "enough for as long an upload as the last one.",
    )
    think: Annotated[DurationS, Field(le=30)] = Field(1.0, description="Rest before each upload.")
    limit: Annotated[DurationS, Field(ge=15, le=600)] = Field(
        MAX_TEST_S,
        description="Time limit of the test, 15 s to 600 s (baerts2015 §4.3). An unfinished upload is cancelled 8 s "
        "before it.",
    )

    @property
    def block_bytes(self) -> int:
        """Return the size of the blocks in which a file is sent, bytes; by default, one block is the whole file."""
        return self.size

    @property
    def gap_s(self) -> float:
        """Return the pause between two blocks, s."""
        return 0.0

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Return the offsets of the first byte and of the end (exclusive) of each block in a file."""
        step = self.block_bytes
        return [(offset, min(offset + step, self.size)) for offset in range(0, self.size, step)]


@dataclass
class _File:
    path: Path
    sha256: dict[int, str]
    """Offset of each block → SHA-256 of the block, in hexadecimal."""


class UploadScenario(Scenario[UploadParameters]):
    """Upload files in a web app.

    Args:
        name: name of the scenario. It is also the key of the app's URL among the facts of the service `upload`.
        title: title of the scenario.
        parameters: class of the scenario's parameters.
        app: the web app; its ``start`` may use ``{url}``, ``{block_bytes}`` and ``{gap_ms}``.
    """

    needs_ui = True
    services = (_SERVICE,)

    def __init__(self, *, name: str, title: str, parameters: type[UploadParameters], app: App) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self.app = app

    def time_limit_s(self, parameters: UploadParameters) -> float:
        """Return the parameter ``limit``, s. An upload that needs more time is cancelled and scored."""
        return parameters.limit

    def estimate_s(self, parameters: UploadParameters) -> float:
        """Return the time to send all files at 7 Mbit/s, pauses included, s; at most ``limit`` minus 8 s."""
        gaps_s = (len(parameters.blocks) - 1) * parameters.gap_s
        one_s = parameters.think + parameters.size * 8 / 1000 / _USUAL_KBPS + gaps_s
        return min(_START_S + parameters.files * one_s, parameters.limit - MARGIN_S)

    @contextmanager
    def open(self, context: Context, parameters: UploadParameters) -> Iterator["_Session"]:
        """Start a browser and write the files to upload. At exit close the browser, and observe the arrived bytes."""
        with ExitStack() as ended, context.open_ui() as ui:
            session = _Session(context, parameters, self, ui)
            ended.callback(session.observe_arrivals)
            for _ in range(parameters.files):
                content = context.rng.randbytes(parameters.size)
                path = context.scratch_dir / f"{context.rng.getrandbits(64):016x}.bin"
                path.write_bytes(content)
                hashes = {begin: hashlib.sha256(content[begin:end]).hexdigest() for begin, end in parameters.blocks}
                session.files.append(_File(path, hashes))
            yield session


class _Block(TypedDict):
    offset: int
    bytes: int
    sha256: str


class _Result(TypedDict):
    """The web app's own measurement of an upload; ``began`` is a unix time in s."""

    state: Literal["done", "cancelled", "failed"]
    began: float
    duration_s: float
    blocks: list[_Block]


@dataclass
class _Session(Session[UploadParameters]):
    scenario: UploadScenario
    ui: BrowserUi
    files: list[_File] = field(default_factory=list)
    deadline: float = 0.0
    ended: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Name of each uploaded file → its number from 1, and the unix time at which its upload ended, s."""

    @property
    def left_s(self) -> float:
        """Return the remaining time until the current upload is cancelled, s."""
        return self.deadline - time.monotonic()

    def run(self) -> None:
        """Upload one file after the other. Stop when the time is up, or when the next file would not fit into it.

        Raises:
            StepError: the app reports a failure, or the server received other bytes than were sent.
        """
        context, parameters, app = self.context, self.parameters, self.scenario.app
        self.deadline = time.monotonic() + context.time_limit_s - MARGIN_S
        self.ui.open(
            app.start.format(
                url=context.service(_SERVICE)[self.scenario.name],
                block_bytes=parameters.block_bytes,
                gap_ms=round(parameters.gap_s * 1000),
            ),
            timeout_s=self.left_s,
        )
        self.ui.wait(app.elements["ready"], timeout_s=self.left_s)
        for number, file in enumerate(self.files, 1):
            time.sleep(parameters.think)
            result = self._upload(number)
            self._check(file, result)
            self.ended[file.path.name] = (number, result["began"] + result["duration_s"])
            context.observe("upload", file=number, size_bytes=parameters.size, **result)
            if result["state"] != "done" or self.left_s < result["duration_s"] + parameters.think:
                return

    def observe_arrivals(self) -> None:
        """Write an observation ``arrived`` for each uploaded file, from the server's log; none without the log."""
        log = self.context.cell_dir / LOG
        if log.exists():
            for name, (number, ended) in self.ended.items():
                self.context.observe("arrived", file=number, timeline=arrivals(log.read_text(), name, ended))

    def _upload(self, number: int) -> _Result:
        ui, elements = self.ui, self.scenario.app.elements
        ui.type(elements["file"], str(self.files[number - 1].path))
        ui.tap(elements["upload"])
        while not (results := self._results())[number - 1 :]:
            if self.left_s <= 0:
                ui.tap(elements["cancel"])
                ui.wait(elements["settled"], timeout_s=MARGIN_S / 2)
                results = self._results()
                break
            time.sleep(_POLL_S)
        result = results[number - 1]
        if result["state"] == "failed":
            keep_screen(ui, self.context.cell_dir / "screenshots" / f"file-{number}.png")
            status = ui.read(elements["status"])
            raise StepError(f"{self.scenario.name}: file {number}: the app says: {status}")
        return result

    def _results(self) -> list[_Result]:
        results: list[_Result] = self.ui.evaluate(_RESULTS)
        return results

    def _check(self, file: _File, result: _Result) -> None:
        name = self.scenario.name
        for block in result["blocks"]:
            if file.sha256.get(block["offset"]) != block["sha256"]:
                block_text = f"the block at {block['offset']} ({block['bytes']} bytes)"
                raise StepError(
                    f"{name}: {file.path.name}: the server received other bytes than were sent in {block_text}"
                )
        if result["state"] == "done" and len(result["blocks"]) != len(file.sha256):
            raise StepError(f"{name}: {len(result['blocks'])} of {len(file.sha256)} blocks have an answer")


def arrivals(log: str, name: str, until: float) -> list[tuple[float, int]]:
    """Return how the bytes of a file arrived over time, from the log of the service `upload`.

    Args:
        log: text of the log.
        name: name of the file.
        until: unix time, s; later records are ignored.

    Returns:
        Pairs: a unix time, s, and the number of the file's bytes that had arrived by then. Both numbers ascend.
    """
    blocks: dict[int, int] = {}
    timeline: list[tuple[float, int]] = []
    for line in log.splitlines():
        record = json.loads(line)
        if record.get("name") == name and record["t"] <= until:
            blocks[record["offset"]] = max(record["bytes"], blocks.get(record["offset"], 0))
            timeline.append((record["t"], sum(blocks.values())))
    return timeline
