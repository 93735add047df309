"""Download files of given sizes one after the other, then bundles of short flows, each flow on a new connection.

With ``repeat``, a cell downloads all of them several times, in a new random order each time.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mplab.base.errors import StepError
from mplab.base.programs import CURL
from mplab.drivers.origin.cache import STREAM_BYTES
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters, Scenario, Session

from . import curl
from .curl import Server, stream_sha256

MAX_TEST_S = 120.0
"""Longest test of an app in baerts2015 §4.3, s."""
_SLOW_KBPS, _USUAL_KBPS = 200.0, 7000.0
_REQUEST_S = 0.3
_MAX_RESULTS = 20
MAX_REPEAT = 100
MAX_FAILED_SHARE = 0.05
"""Largest share of the repetitions of a file or bundle that may fail in a cell with ``repeat``."""


Size = Annotated[
    SizeBytes, between("size", 1, STREAM_BYTES, "more than 0 and at most {most} is needed", write=format_size)
]


class FlowGroup(BaseModel):
    """Short flows of one size, some of them at a time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    flows: int = Field(ge=1, le=1000, description="Number of files.")
    concurrent: int = Field(1, ge=1, le=100, description="Number of concurrent files.")
    size: Size = Field(description="Size of each file.")
    every: DurationS = Field(
        0.0, le=600, description="Time from the start of a file to that of the next; 0 s: all at once."
    )

    @model_validator(mode="after")
    def _one_at_a_time(self) -> "FlowGroup":
        if self.every and self.concurrent > 1:
            raise ValueError(f"a file every {self.every:g} s, and {self.concurrent} at a time: give one of the two")
        return self

    @property
    def rounds(self) -> int:
        """Return the number of rounds if `concurrent` flows start together in each round."""
        return math.ceil(self.flows / self.concurrent)

    @property
    def title(self) -> str:
        """Return the label of the results, e.g. ``20 × 50 kB, 4 at a time``."""
        pace = f"one every {self.every:g} s" if self.every else f"{self.concurrent} at a time"
        return f"{self.flows} × {format_size(self.size)}, {pace}"

    @property
    def size_bytes(self) -> int:
        """Return the size of all files together, bytes."""
        return self.flows * self.size


class DownloadParameters(Parameters):
    """Parameters of the scenario `download`."""

    later: ClassVar[frozenset[str]] = frozenset({"repeat"})

    sizes: tuple[Size, ...] = Field(
        (10_000, 100_000, 1_000_000, 10_000_000),
        max_length=_MAX_RESULTS,
        description="Sizes of the files, one file of each; 1 B to 100 MB.",
    )
    bundles: tuple[FlowGroup, ...] = Field(
        (),
        max_length=_MAX_RESULTS,
        description="Bundles of short flows: {flows, size}, and concurrent (default 1) or every, the time from the "
        "start of a file to that of the next (at most 10 min).",
    )
    repeat: int = Field(
        1,
        ge=1,
        le=MAX_REPEAT,
        description="Number of repetitions of all files and bundles inside a cell, each in a new random order. The "
        "repetitions of a cell are not independent: the cell remains the unit of all tests.",
    )
    pause: DurationS = Field(0.2, description="Rest between two files or bundles.")
    server: Server = Field(
        "dl", description="Name under which the server is addressed; policies can distinguish apps by these names."
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> "DownloadParameters":
        if not self.sizes and not self.bundles:
            raise ValueError("nothing to download: give 'sizes' or 'bundles'")
        for name, values in (("sizes", self.sizes), ("bundles", self.bundles)):
            if len(set(values)) < len(values):
                raise ValueError(f"'{name}' has the same entry twice")
        return self

    @property
    def total_bytes(self) -> int:
        """Return the size of all downloads together, bytes."""
        return sum(self.sizes) + sum(bundle.size_bytes for bundle in self.bundles)

    @property
    def waiting_s(self) -> float:
        """Return the total time, s, during which the bundles with ``every`` start flows."""
        return sum(bundle.flows * bundle.every for bundle in self.bundles)


class DownloadScenario(Scenario[DownloadParameters]):
    """Download files and bundles of files with curl, and check their bytes."""

    name = "download"
    title = "File download"
    parameters = DownloadParameters
    socks = True

    def time_limit_s(self, parameters: DownloadParameters) -> float:
        """Return `limit_s` of all downloads; with ``repeat``, the sum of the limits of all downloads and pauses, s."""
        if parameters.repeat == 1:
            return limit_s(parameters)
        alone_s = [limit_s(alone) for alone in _alone(parameters).values()]
        pauses = parameters.repeat * len(alone_s) - 1
        return math.ceil(parameters.repeat * sum(alone_s) + pauses * parameters.pause)

    def estimate_s(self, parameters: DownloadParameters) -> float:
        """Return the time for all bytes at 7 Mbit/s, plus 0.3 s per request, plus all pauses, s."""
        return parameters.repeat * (_once_s(parameters) + parameters.pause) - parameters.pause

    @contextmanager
    def open(self, context: Context, parameters: DownloadParameters) -> Iterator["_Session"]:
        """Compute the expected checksums now, so that they take no time between downloads. Yield the session."""
        for size in parameters.sizes:
            stream_sha256(size)
        yield _Session(context, parameters)


def limit_s(parameters: DownloadParameters) -> float:
    """Return the longest time of all downloads in `parameters` once, s.

    It is the time for all bytes at 200 kbit/s, at most 120 s, or 3 times the estimate if that is longer.
    """
    slow = 10 + parameters.waiting_s + parameters.total_bytes * 8 / 1000 / _SLOW_KBPS
    usual = _once_s(parameters) - parameters.waiting_s
    return math.ceil(max(min(MAX_TEST_S, slow), 10 + parameters.waiting_s + 3 * usual))


def _alone(parameters: DownloadParameters) -> "dict[int | FlowGroup, DownloadParameters]":
    """Return file size or bundle → `parameters` with only this download."""
    return {
        **{size: parameters.model_copy(update={"sizes": (size,), "bundles": ()}) for size in parameters.sizes},
        **{bundle: parameters.model_copy(update={"sizes": (), "bundles": (bundle,)}) for bundle in parameters.bundles},
    }


def _once_s(parameters: DownloadParameters) -> float:
    requests = len(parameters.sizes) + sum(bundle.rounds for bundle in parameters.bundles)
    pauses = len(parameters.sizes) + len(parameters.bundles) - 1
    transfer = parameters.total_bytes * 8 / 1000 / _USUAL_KBPS
    return transfer + requests * _REQUEST_S + pauses * parameters.pause + parameters.waiting_s


class DownloadError(StepError):
    """The network was too slow for a download, or broke its connection. Other repetitions can succeed."""


class _Session(Session[DownloadParameters]):
    def run(self) -> None:
        """Download all files and bundles, `repeat` times.

        With ``repeat``, each download has its own time limit, and a failed download is an observation without a time.
        If the slow downloads fail, the times of the others are too good: hence `MAX_FAILED_SHARE`.

        Raises:
            StepError: more than `MAX_FAILED_SHARE` of the repetitions of a file or bundle failed, or a download has the
                wrong content or size.
        """
        context, parameters = self.context, self.parameters
        deadline = time.monotonic() + context.time_limit_s
        limits_s = {task: limit_s(alone) for task, alone in _alone(parameters).items()}
        tasks = list(limits_s)
        failed: Counter[str] = Counter()
        for repeat in range(1, parameters.repeat + 1):
            _pause(0 if repeat == 1 else parameters.pause)
            if parameters.repeat > 1:
                context.rng.shuffle(tasks)
            for position, task in enumerate(tasks):
                _pause(parameters.pause if position else 0)
                if parameters.repeat == 1:
                    self._carry_out(task, 0, deadline)
                    continue
                try:
                    self._carry_out(task, repeat, min(deadline, time.monotonic() + limits_s[task]))
                except DownloadError as error:
                    name = task.title if isinstance(task, FlowGroup) else format_size(task)
                    context.observe("failed", name=name, repeat=repeat, problem=str(error))
                    failed[name] += 1
                    if failed[name] > MAX_FAILED_SHARE * parameters.repeat:
                        raise _too_many(failed[name], parameters.repeat, error) from error
        if failures := failed.total():
            context.warn(f"{failures} of {parameters.repeat * len(tasks)} downloads failed; see the observations")

    def _carry_out(self, task: int | FlowGroup, repeat: int, deadline: float) -> None:
        if isinstance(task, FlowGroup):
            _download_bundle(self.context, task, self.parameters.server, deadline, repeat)
        else:
            _download(self.context, task, self.parameters.server, deadline, repeat)


def _too_many(failures: int, repeat: int, last: DownloadError) -> StepError:
    allowed = f"at most {100 * MAX_FAILED_SHARE:g} % may fail"
    return StepError(f"{last}. {failures} of {repeat} repetitions of this download failed: {allowed}")


def _pause(duration_s: float) -> None:
    if duration_s:
        time.sleep(duration_s)


def _left_s(deadline: float) -> float:
    return max(1.0, deadline - time.monotonic())


def _download(context: Context, size: int, server: Server, deadline: float, repeat: int) -> None:
    label, left_s = format_size(size), _left_s(deadline)
    argv = curl.file_argv(size, left_s, server, curl=context.phone.program(CURL), proxy=context.app_proxy)
    answer = context.phone.shell(argv, timeout_s=left_s + 5, check=False)
    transfers, problem = curl.parse(answer.stderr)
    if len(transfers) != 1:
        raise StepError(f"download of {label}: curl gave no result: {problem or answer.stderr.strip()[-200:]}")
    transfer = transfers[0]
    _check(transfer, size, f"download of {label}", problem)
    digest = re.match(r"[0-9a-f]{64}", answer.stdout)
    if digest is None or digest.group() != stream_sha256(size):
        raise StepError(f"download of {label}: {size} bytes came, with another SHA-256 than those of {server}.lab")
    context.observe(
        "download", size=label, size_bytes=size, verified=True, **transfer.fields(), **_way(context, repeat)
    )


def _download_bundle(context: Context, bundle: FlowGroup, server: Server, deadline: float, repeat: int) -> None:
    name = f"bundle of {bundle.title}"
    left_s = _left_s(deadline)
    flows = curl.Flows(bundle.flows, bundle.concurrent, bundle.every)
    program = context.phone.program(CURL)
    argv = curl.bundle_argv(flows, bundle.size, left_s, server, curl=program, proxy=context.app_proxy)
    answer = context.phone.shell(argv, timeout_s=left_s + 5, check=False)
    transfers, problem = curl.parse(answer.stderr)
    for transfer in transfers:
        _check(transfer, bundle.size, f"{name}: flow {transfer.flow}", problem)
    if sorted(transfer.flow for transfer in transfers) != list(range(1, bundle.flows + 1)):
        raise StepError(f"{name}: {len(transfers)} flows have a result: {problem or 'nothing from curl'}")
    context.observe(
        "bundle",
        bundle=bundle.title,
        flows=bundle.flows,
        concurrent=bundle.concurrent,
        size_bytes=bundle.size,
        total_s=curl.bundle_time_s(answer.stdout),
        results=[{"flow": transfer.flow, **transfer.fields()} for transfer in transfers],
        **_way(context, repeat),
    )


def _way(context: Context, repeat: int) -> dict[str, int | bool]:
    """Return the field ``by_proxy`` of the observation if curl uses a proxy, and ``repeat`` if the cell repeats.

    The proxy looks up the name of the server, so curl cannot measure the lookup time.
    """
    return {**({"by_proxy": True} if context.app_proxy else {}), **({"repeat": repeat} if repeat else {})}


def _check(transfer: curl.Transfer, size: int, name: str, problem: str) -> None:
    if transfer.exit_code != 0:
        raise DownloadError(f"{name}: curl failed ({transfer.exit_code}) after {transfer.bytes} bytes: {problem}")
    if transfer.status not in {200, 206}:
        raise StepError(f"{name}: HTTP status {transfer.status}, 200 or 206 is needed")
    if transfer.bytes != size:
        raise StepError(f"{name}: {transfer.bytes} bytes came, {size} were requested")


SCENARIO = DownloadScenario()
