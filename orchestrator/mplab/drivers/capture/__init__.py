"""Packet captures on every interface of the phone and on the proxy, at the same time."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mplab.base.errors import DeviceError
from mplab.base.machine import Machine, MachineProcess
from mplab.base.polling import wait_ready
from mplab.base.programs import MPTRACE

SNAPLEN = 262_144
"""Maximum captured length of a frame, bytes; headers-only captures cut each packet after its last header."""

CaptureMode = Literal["headers", "payload", "off"]


@dataclass(frozen=True)
class CapturePoint:
    """Network interface of a lab node, the phone or a server to capture on, and the file for its packets.

    Attributes:
        node: machine that has the interface.
        interface: name of the interface on the machine.
        file: path of the capture, relative to the folder of the cell.
    """

    node: Machine
    interface: str
    file: str
    name: str = ""
    """Interface name to write into the file; "": the name that the node uses."""


@dataclass(frozen=True)
class CaptureResult:
    """Counters and settings of one finished capture.

    Attributes:
        file: path of the capture, relative to the folder of the cell.
        node: name of the machine.
        interface: name of the interface in the capture.
        packets: number of captured packets.
        dropped: number of packets that were lost before they could be captured.
        headers_only: packets are cut after their last header.
        snaplen: maximum captured length of a frame, bytes.
    """

    file: str
    node: str
    interface: str
    packets: int
    dropped: int
    headers_only: bool
    snaplen: int = SNAPLEN


class Captures:
    """Packet captures of one cell, which start and stop together.

    Args:
        points: interfaces to capture on.
        mode: ``headers``: only headers; ``payload``: headers and payload; ``off``: no capture.
        directory: folder of the cell.
    """

    def __init__(self, points: Sequence[CapturePoint], mode: CaptureMode, directory: Path) -> None:
        self._points = list(points) if mode != "off" else []
        self._mode = mode
        self._directory = directory
        self._running: list[tuple[CapturePoint, MachineProcess, Path]] = []

    def start(self) -> None:
        """Start all captures and return when each of them is capturing.

        Raises:
            DeviceError: a capture did not become ready.
        """
        for point in self._points:
            log = self._directory / "logs" / f"capture-{Path(point.file).stem}.log"
            argv = [point.node.program(MPTRACE), "capture", "--interface", point.interface]
            argv += ["--write", point.node.outbox(self._directory / point.file)]
            if point.name:
                argv += ["--name", point.name]
            if self._mode == "payload":
                argv.append("--payload")
            self._running.append((point, point.node.spawn(argv, log=log), log))
        for point, process, log in self._running:
            wait_ready(process, log, name=f"capture of {point.node.name}:{point.interface}")

    def stop(self) -> list[CaptureResult]:
        """Stop all captures and return one result for each.

        Raises:
            DeviceError: a capture ended early (disk full, interface removed) or could not be stopped. If one could
                not be stopped, call `stop` again for the captures that still run.
        """
        # All at once: each capture first waits until the kernel has handed over its last packets.
        with ThreadPoolExecutor(len(self._running) or 1, thread_name_prefix="captures") as threads:
            stops = [threads.submit(process.stop) for _, process, _ in self._running]
        ended = []
        for stop in stops:
            point, _, log = self._running[0]
            ended.append((point, stop.result(), log))
            del self._running[0]
        results = []
        for point, code, log in ended:
            if code != 0:
                name = f"capture of {point.node.name}:{point.interface}"
                raise DeviceError(name, "did not complete", exit_code_found=code, stderr=log.read_text())
            point.node.bring(self._directory / point.file)
            results.append(self._result(point, log))
        return results

    def _result(self, point: CapturePoint, log: Path) -> CaptureResult:
        summary = next(
            record
            for line in reversed(log.read_text().splitlines())
            if line.startswith("{") and (record := json.loads(line)).get("event") == "done"
        )
        return CaptureResult(
            file=point.file,
            node=point.node.name,
            interface=point.name or point.interface,
            packets=summary["packets"],
            dropped=summary["dropped"],
            headers_only=self._mode == "headers",
        )
