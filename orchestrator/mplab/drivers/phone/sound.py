"""Sound card of the virtual phone: PulseAudio with one null sink, and a recorder of the sink's output."""

import array
import contextlib
import os
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from mplab.base.errors import DeviceError
from mplab.base.polling import wait_until
from mplab.base.programs import Program

PULSEAUDIO = Program("pulseaudio", ("pulseaudio",), ("--version",), "pulseaudio", "the virtual phone's sound card")
PAREC = Program("parec", ("parec",), ("--version",), "pulseaudio-utils", "records what the phone plays")
PROGRAMS = (PULSEAUDIO, PAREC)
"""Programs that a host needs for scenarios with sound."""

RATE_HZ = 16_000
"""Sample rate of recordings, Hz. Recordings have one channel and 16 bit per sample."""
SINK = "speaker"

_SINK_RATE_HZ = 48_000
_LATENCY_MS = 20
_READY_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 5.0
_POLL_S = 0.02
_BLOCK = 4096
_SAMPLE_BYTES = 2
_FULL_SCALE = 32768
_MOST_LOST_S = 1.0
_TAIL_CHARACTERS = 500


@dataclass(frozen=True)
class Recorded:
    """A finished recording.

    Attributes:
        file: WAV file with one channel, 16 bit per sample, `RATE_HZ`.
        began: estimated Unix time at which the first sample was played, s.
        duration_s: duration, s.
        peak: largest absolute sample as a fraction of full scale; 0 is perfect silence.
    """

    file: Path
    began: float
    duration_s: float
    peak: float


class SoundCard:
    """Sound card that runs during its context; apps use it through one Unix socket.

    Args:
        enter: command prefix that runs a program in the namespaces of the phone.
        directory: private folder for the socket, made on entry; the phone must see it under the same path.
        log: file for the output of PulseAudio and parec.
    """

    def __init__(self, *, enter: Sequence[str], directory: Path, log: Path) -> None:
        self._enter = list(enter)
        self._directory = directory
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        self._recorder: _Recorder | None = None

    @property
    def server(self) -> str:
        """Value of ``PULSE_SERVER`` for an app that plays to this card."""
        return f"unix:{self._directory / 'socket'}"

    def __enter__(self) -> Self:
        """Start the card and a program that always reads its output.

        Without a reader, a null sink needs 2 s until its timing is exact.

        Raises:
            DeviceError: the card did not start, or delivered no sample.
            LabNotReadyError: PulseAudio is not installed.
        """
        pulseaudio, parec = PULSEAUDIO.path(), PAREC.path()
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        socket = self._directory / "socket"
        try:
            self._start(
                [
                    *(str(pulseaudio), "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1"),
                    *("--disable-shm=yes", "--log-target=stderr", "--log-level=warn"),
                    *("-L", f"module-null-sink sink_name={SINK} rate={_SINK_RATE_HZ} channels=2"),
                    *("-L", f"module-native-protocol-unix auth-anonymous=1 auth-cookie-enabled=0 socket={socket}"),
                ]
            )
            self._wait(socket.is_socket, "its socket")
            listener = self._start(
                [
                    *(str(parec), f"--device={SINK}.monitor", f"--rate={RATE_HZ}", "--channels=1", "--format=s16le"),
                    *("--raw", f"--latency-msec={_LATENCY_MS}"),
                ],
                stdout=subprocess.PIPE,
            )
            assert listener.stdout is not None  # noqa: S101 - PIPE was asked for
            self._recorder = _Recorder(listener.stdout)
            self._wait(self._recorder.has_begun.is_set, "a first sample")
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the card; end a running recording, whose file keeps the samples received so far."""
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._recorder is not None:
            self._recorder.join(_STOP_TIMEOUT_S)
            self._recorder.end()

    def record(self, file: Path) -> None:
        """Start to record the card's output, including silence, to `file`.

        Raises:
            DeviceError: a recording is already running, or the card does not run.
        """
        self._running().begin(file)

    def stop_recording(self) -> Recorded:
        """Stop the recording; return its file, start time, duration and peak.

        Raises:
            DeviceError: the card has ended, no recording was running, or more than 1 s of samples is missing. The file
                keeps the samples that were received.
        """
        recorder = self._running()
        recorded = recorder.end()
        self._check_alive()
        if recorded is None:
            raise DeviceError("phone", "the sound card has recorded nothing")
        lost_s = time.time() - recorded.began - recorded.duration_s
        if lost_s > _MOST_LOST_S:
            raise DeviceError("phone", f"{lost_s:.1f} s of {recorded.file.name} are missing: the machine is too busy")
        return recorded

    def _running(self) -> "_Recorder":
        if self._recorder is None:
            raise DeviceError("phone", "the sound card does not run: it runs only in its context")
        return self._recorder

    def _start(self, argv: Sequence[str], *, stdout: int | None = None) -> subprocess.Popen[bytes]:
        home = str(self._directory)
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*self._enter, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env={**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home, "PULSE_SERVER": self.server},
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def met() -> bool:
            if condition():
                return True
            self._check_alive()
            return False

        if not wait_until(met, _READY_TIMEOUT_S, interval_s=_POLL_S):
            problem = f"the sound card was not ready within {_READY_TIMEOUT_S:g} s: {what} is missing"
            raise DeviceError("phone", problem, stderr=self._last_words())

    def _check_alive(self) -> None:
        for process in self._processes:
            code = process.poll()
            if code is not None:
                problem = f"the sound card has ended ({code})"
                raise DeviceError("phone", problem, exit_code_found=code, stderr=self._last_words())

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-_TAIL_CHARACTERS:]
        return ""


class _Recorder(threading.Thread):
    """Thread that reads all samples of the sound card and, during a recording, writes them to a file."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__(name="recorder", daemon=True)
        self.has_begun = threading.Event()
        self._source = source
        self._lock = threading.Lock()
        self._file: Path | None = None
        self._wave: wave.Wave_write | None = None
        self._samples = 0
        self._began = 0.0
        self._peak = 0
        self.start()

    def run(self) -> None:
        """Read samples until the program that delivers them ends."""
        rest = b""
        with self._source:
            while block := self._source.read1(_BLOCK):  # type: ignore[attr-defined]
                arrived = time.time()
                self.has_begun.set()
                data = rest + block
                cut = len(data) // _SAMPLE_BYTES * _SAMPLE_BYTES
                rest = data[cut:]
                self._take(data[:cut], arrived)

    def _take(self, block: bytes, arrived: float) -> None:
        with self._lock:
            if self._wave is None or not block:
                return
            self._wave.writeframes(block)
            self._samples += len(block) // _SAMPLE_BYTES
            # Blocks can arrive late but never early: the minimum over all blocks is the best estimate of the start.
            self._began = min(self._began, arrived - self._samples / RATE_HZ)
            values = array.array("h", block)
            self._peak = max(self._peak, *map(abs, (max(values), min(values))))

    def begin(self, file: Path) -> None:
        """Start to write samples to `file`. Raises DeviceError when a recording is running."""
        with self._lock:
            if self._wave is not None:
                raise DeviceError("phone", f"{self._file} is being recorded already")
            self._file, self._samples, self._began, self._peak = file, 0, time.time(), 0
            self._wave = wave.open(str(file), "wb")  # noqa: SIM115 - closed by `end`
            self._wave.setnchannels(1)
            self._wave.setsampwidth(_SAMPLE_BYTES)
            self._wave.setframerate(RATE_HZ)

    def end(self) -> Recorded | None:
        """Stop writing to the file; return the recording, or None if none was running."""
        with self._lock:
            if self._wave is None or self._file is None:
                return None
            self._wave.close()
            self._wave = None
            return Recorded(self._file, self._began, self._samples / RATE_HZ, min(self._peak / _FULL_SCALE, 1.0))
