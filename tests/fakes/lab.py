"""An in-memory `Lab`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, Self

from mplab.base.browser.tab import DevTools
from mplab.base.endpoints import Endpoints
from mplab.base.errors import DeviceError, StepError
from mplab.base.undo import UndoStack
from mplab.cell.instruments import Instruments
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone.buffers import limit_receive_buffer
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.services import LogMark, RunningServices
from mplab.drivers.shaper import PathMeasurement
from mplab.drivers.transport import Transport
from mplab.drivers.transport.agent import Agent
from mplab.drivers.ui import AppUi, BrowserFactory
from mplab.drivers.ui.console import ConsoleLog
from mplab.format.agentlog import ConnectionRecord, LogRecord, SessionSettings
from mplab.format.captured import CapturedTables, ConnectionRow, SubflowRow
from mplab.format.path import PathCondition
from mplab.format.sockets import SocketSettings
from mplab.lab.protocol import CellPart, Moment, PartJob, PartReport
from mplab.userfiles.experiments.app import AndroidApp
from tests.fakes.clock import FakeClock, FakeHost, FakeLimit
from tests.fakes.phone import FakeMachine, FakePhone
from tests.fakes.script import Script


class FakeShaper:
    """`Shaper` whose probes measure the applied conditions.

    Attributes:
        applied: interface → condition, as applied or changed last; empty: cleared.
        rates: factors by which the next probes multiply the measured rates, one for each probe.
        moved: counter → growth between two readings.
        caveats: warnings that it returns.
    """

    kind = "fake"

    def __init__(self, script: Script) -> None:
        self._script = script
        self.applied: dict[str, PathCondition] = {}
        self.rates: list[float] = []
        self.moved: dict[str, int] = {}
        self.caveats: list[str] = []
        self._readings = 0

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply conditions to all paths."""
        del seed, core_rtt_ms
        self._script("shaper.apply")
        self.applied = dict(conditions)

    def change(self, interface: str, condition: PathCondition) -> None:
        """Change one path."""
        self._script(f"shaper.change {interface}")
        self.applied[interface] = condition

    def clear(self) -> None:
        """Remove every condition."""
        self._script("shaper.clear")
        self.applied = {}

    def state(self) -> Mapping[str, Any]:
        """Raise NotImplementedError: no cell reads it."""
        raise NotImplementedError

    def where(self, interface: str) -> str:
        """Return where a path is shaped."""
        return f"memory of {interface}"

    def warnings(self) -> list[str]:
        """Return `caveats`."""
        return self.caveats

    def counters(self) -> Mapping[str, int]:
        """Return packet counters."""
        self._script("shaper.counters")
        counts = {name: grown * self._readings for name, grown in self.moved.items()}
        self._readings += 1
        return counts

    def check_alive(self) -> None:
        """Do nothing: the shaper lives as long as its lab."""

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Return one measurement for each path."""
        self._script("shaper.probe")
        factor = self.rates.pop(0) if self.rates else 1.0
        return {name: _measured(condition, factor) for name, condition in conditions.items()}


def _measured(path: PathCondition, factor: float) -> PathMeasurement:
    down, up = (rate * factor if rate else None for rate in (path.down_kbps, path.up_kbps))
    return PathMeasurement(down, up, path.rtt_ms, 0.1, path.round_trip_loss_percent, 1000)


def connection_using(congestion_control: str) -> ConnectionRecord:
    """Return the proxy's record of an application connection."""
    return {
        "event": "connection",
        "opened": 0.0,
        "duration_s": 1.0,
        "src": "10.0.0.2:4000",
        "bytes_up": 1000,
        "bytes_down": 1000,
        "congestion_control": congestion_control,
    }


class FakeProxy:
    """`Proxy` with a log that the test writes.

    Attributes:
        records: log records of each cell.
    """

    def __init__(self, script: Script, machine: FakeMachine) -> None:
        self._script = script
        self._machine = machine
        self.records: list[LogRecord] = [connection_using("cubic")]

    def start(self) -> None:
        """Do nothing: the proxy always runs."""

    def stop(self) -> None:
        """Do nothing: the proxy always runs."""

    def use(self, session: SessionSettings, congestion_control: str) -> None:
        """Accept the settings of sessions and sockets."""
        del session, congestion_control
        self._script("proxy.use")

    def status(self) -> Mapping[str, Any]:
        """Return an empty status."""
        return {}

    def log_end(self) -> int:
        """Return a mark; the records of the cell come after it."""
        return 0

    def logs_since(self, mark: int) -> list[LogRecord]:
        """Return the records of the cell."""
        self._script("proxy.logs_since")
        return self.records[mark:]

    def counters(self) -> Mapping[str, int]:
        """Return the proxy's kernel counters."""
        self._script("proxy.counters")
        return {"TcpExt.TCPTimeouts": 0}

    @property
    def capture_point(self) -> CapturePoint:
        """Capture point of the proxy's traffic."""
        return CapturePoint(self._machine, "eth0", "proxy.pcapng")


class FakeServices(RunningServices):
    """Services that always answer, unless the script raises an error."""

    def __init__(self, script: Script, directory: Path, log: Path) -> None:
        super().__init__((), directory=directory, host=_NoHost())
        self._script = script
        self.log = log

    def check(self, names: Sequence[str]) -> None:
        """Check that services answer."""
        del names
        self._script("services.check")

    def facts(self, name: str) -> Mapping[str, str]:
        """Return facts of a service."""
        return {"url": f"http://{name}.lab"}

    def mark(self, names: Sequence[str]) -> LogMark:
        """Return a mark at the end of the services' log."""
        self._script("services.mark")
        return LogMark.of([self.log] if names else [])


class _NoHost:
    """A host that starts no programs: the fake services have none."""

    def spawn(self, *_arguments: object, **_options: object) -> NoReturn:
        raise NotImplementedError

    def run(self, *_arguments: object, **_options: object) -> NoReturn:
        raise NotImplementedError


class FakePart:
    """A step that the lab adds to a cell: ``phone``, ``film``."""

    def __init__(self, script: Script, name: str, moment: Moment) -> None:
        self._script = script
        self.name = name
        self.moment: Moment = moment
        self.verdict: list[str] = []
        """Why it makes the cell invalid at the end."""

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Add a fact and a warning."""
        report.phone["part"] = self.name
        report.warnings.append(f"{self.name} is warm")
        observe("part", name=self.name)
        self._script(f"{self.name}.start")

    def finish(self) -> None:
        """End the step."""
        self._script(f"{self.name}.finish")

    def judge(self) -> list[str]:
        """Return `verdict`."""
        self._script(f"{self.name}.judge")
        return self.verdict


class FakeLab:
    """In-memory `Lab`; every part records its calls in `script`, where a test puts faults.

    Args:
        folder: parent of its files.

    Attributes:
        ended: programs that have ended by themselves; `revive` starts them again.
        beyond_repair: `revive` fails.
        parts: steps that it adds to its cells.
        recovered: text that `recover` returns after a failed attempt.
        reasons: why attempts failed.
        trace: tables decoded from the next cells' captures; None: the tables that the transport should produce.
    """

    def __init__(self, folder: Path) -> None:
        self.script = script = Script()
        self.clock, self.host, self.limit = FakeClock(), FakeHost(), FakeLimit()
        self.phone = FakePhone(script)
        self.proxy_machine = FakeMachine("proxy", script)
        self.shaper = FakeShaper(script)
        self.proxy = FakeProxy(script, self.proxy_machine)
        self.endpoints = Endpoints(proxy="10.64.3.2", dns="10.65.0.53:53")
        self.scratch = folder / "scratch"
        self.scratch.mkdir(parents=True)
        self.origin_log = folder / "access.jsonl"
        self.origin_log.write_text("before\n")
        self.services = FakeServices(script, folder, folder / "service.log")
        self.secret_file = folder / "secret"
        self.secret_file.write_text("00")
        self.ended: list[str] = []
        self.beyond_repair = False
        self.trace: CapturedTables | None = None
        self.origin_algorithm = "cubic"
        self.parts: list[CellPart] = []
        self.recovered = ""
        self.reasons: list[str] = []

    @property
    def instruments(self) -> Instruments:
        """Instruments of its cells: the fake clock, load and decoder."""
        return Instruments(
            limit=self.limit,
            monotonic=self.clock.monotonic,
            wall=self.clock.wall,
            sleep=self._sleep,
            load=self.host.load,
            load_average=self.host.load_average,
            cpu_percent=self.host.cpu_percent,
            cpus=self.host.cpus,
            read_trace=self.read_trace,
        )

    def _sleep(self, seconds: float) -> None:
        self.script("clock.sleep")
        self.clock.jump(seconds)

    def read_trace(self, files: Sequence[Path]) -> CapturedTables:
        """Return `trace`, or tables of one connection over the transport's interfaces."""
        self.script("captures.read")
        if self.trace is not None:
            return self.trace
        names = [name for name in self.phone.interfaces if any(name in file.name for file in files)]
        multipath = self.phone.config["transport"] == "mptcp"
        used = names if multipath else [self.phone.config["device"] or self.phone.default]
        return trace_of(*used, mptcp=multipath)

    def __enter__(self) -> Self:
        """Bring the lab up."""
        self.script("lab.up")
        return self

    def __exit__(self, *_error: object) -> None:
        """Bring the lab down."""
        self.script("lab.down")

    def describe(self) -> Mapping[str, Any]:
        """Return the lab's nodes."""
        return {"nodes": ["phone", "proxy"]}

    def origin_logs(self) -> Sequence[Path]:
        """Return the log of the origin's web server."""
        return [self.origin_log]

    def capture_points(self, *, direct: bool = False) -> list[CapturePoint]:
        """Return the capture points of the phone's interfaces and of the proxy."""
        phone = [CapturePoint(self.phone, name, f"phone-{name}.pcapng") for name in self.phone.interfaces]
        return [*phone, self.proxy.capture_point]

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> BrowserFactory:
        """Raise NotImplementedError: there is no browser."""
        raise NotImplementedError

    def open_app(
        self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        """Raise StepError: there are no apps."""
        raise StepError(f"phone: {app.package}: no apps")

    def open_devtools(self, app: AndroidApp) -> AbstractContextManager[DevTools | None]:
        """Raise StepError: there are no apps."""
        raise StepError(f"phone: {app.package}: no apps")

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the parts that a test has put in `parts`."""
        del job
        return self.parts

    def recover(self, reason: str) -> str:
        """Recover the phone; return `recovered`."""
        self.script("lab.recover")
        self.reasons.append(reason)
        return self.recovered

    def open_sound(self, log: Path) -> SoundCard:
        """Raise NotImplementedError: there is no sound card."""
        raise NotImplementedError

    def prepare_apps(self, transport: Transport, undo: UndoStack) -> None:
        """Do nothing: there are no apps."""
        del transport, undo

    def origin_counters(self) -> Mapping[str, int]:
        """Return {}: there is no direct route."""
        return {}

    def set_up_transport(self, transport: Transport, *, sockets: SocketSettings, logs: Path, undo: UndoStack) -> Agent:
        """Prepare the phone as every lab does, and return its agent."""
        self.script("lab.set_up_transport")
        undo.register("transport", lambda: self.script("transport.undone"))
        transport.setup(self.phone, undo)
        settings = transport.agent_settings()
        if sockets.receive_buffer_bytes is not None:
            limit_receive_buffer(self.phone, sockets.receive_buffer_bytes, undo)
        self.proxy.use(settings.session, sockets.congestion_control)
        logs.mkdir(parents=True, exist_ok=True)
        agent = Agent(
            phone=self.phone,
            settings=settings,
            endpoints=self.endpoints,
            secret_file=self.secret_file,
            congestion_control=sockets.congestion_control,
            logs=logs,
        )
        undo.register("agent", agent.stop)
        return agent

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's sockets."""
        return self.origin_algorithm

    def check_alive(self) -> None:
        """Raise DeviceError if programs have ended."""
        self.script("lab.check_alive")
        if self.ended:
            raise DeviceError("lab", f"{' and '.join(self.ended)} ended")

    def revive(self) -> list[str]:
        """Start ended programs again and return a sentence for each.

        Raises:
            DeviceError: `beyond_repair` is set.
        """
        self.script("lab.revive")
        if self.beyond_repair:
            raise DeviceError("phone", "the emulated device has ended by itself")
        restarted = [f"{name} had ended and was started again" for name in self.ended]
        self.ended.clear()
        return restarted

    def dies(self, *programs: str) -> None:
        """Mark programs as ended by themselves."""
        self.ended += programs

    @property
    def clean(self) -> bool:
        """Whether the cells have left nothing behind: no conditions, programs, routes or files."""
        return (
            not self.shaper.applied
            and not self.phone.running
            and not self.proxy_machine.running
            and self.phone.default == "wlan0"
            and all(self.phone.carries.values())
            and not list(self.scratch.iterdir())
        )


def trace_of(*interfaces: str, mptcp: bool = False, payload: int = 1000) -> CapturedTables:
    """Return mptrace's tables of one connection over the given interfaces."""
    connection = ConnectionRow(
        connection_id=1,
        kind="mptcp" if mptcp else "tcp",
        start_ns=0,
        duration_s=1.0,
        syn_seen=True,
        fallback=False,
        subflows=len(interfaces),
        bytes_up=payload,
        bytes_down=payload,
    )
    flows = [
        SubflowRow(
            connection_id=1,
            role="additional" if number else "initial",
            interface=interface,
            start_ns=0,
            duration_s=1.0,
            established=True,
            reset_by="",
            payload_up=payload,
            payload_down=payload,
            unique_up=payload,
            unique_down=payload,
        )
        for number, interface in enumerate(interfaces)
    ]
    return {"connections": [connection], "subflows": flows}
