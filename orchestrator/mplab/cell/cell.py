"""The life of one cell: check, prepare, shape and probe, prove the transport, capture, scenario, counters, undo."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from mplab.base import load
from mplab.base.errors import CellError, DeviceError, InvalidCellError, StepError, check_each
from mplab.base.programs import APPIUM_DIR, NODE
from mplab.base.undo import UndoStack
from mplab.cell.changes import Changer, ChangeSchedule
from mplab.cell.instruments import Instruments
from mplab.cell.judge import judge_captures, judge_emulation, judge_handed_over, judge_links, judge_punctuality
from mplab.cell.observe import ObservationLog
from mplab.cell.traces import NO_TRACE, count_subflows, traffic
from mplab.drivers.capture import CaptureResult, Captures
from mplab.drivers.phone.counters import difference
from mplab.drivers.phone.names import by_our_names
from mplab.drivers.services import LogMark
from mplab.drivers.transport import Evidence, Transport, make_transport
from mplab.drivers.transport.agent import Agent
from mplab.drivers.ui import AppUi, BrowserFactory, BrowserUi
from mplab.drivers.ui.console import ConsoleLog
from mplab.drivers.ui.evidence import OpenApps
from mplab.drivers.ui.state import prove_clean
from mplab.format.agentlog import ActiveCheck, LogRecord
from mplab.format.cell import Outcome
from mplab.format.path import PathCondition
from mplab.format.plan import CellSpec
from mplab.lab.protocol import CellPart, Lab, Moment
from mplab.scenarios.base import AnyScenario, Context
from mplab.scenarios.base.protocol import AppFactory, Tools
from mplab.userfiles.app import AndroidApp
from mplab.userfiles.experiment import Experiment, ScenarioUse

if TYPE_CHECKING:
    from mplab.drivers.ui.tab import DevTools

_Result = TypeVar("_Result")
_PROBE_ATTEMPTS = 3
TLS_KEYS = "tls-keys.txt"
"""In a cell's ``logs``: the keys of the browser's TLS connections, when captures keep payload."""
SCREENSHOTS = {"phone": "screenshots", "peer": "screenshots-peer"}
"""Whose browser → the folder in a cell for what its failed steps leave. Each browser counts its own steps."""


@dataclass
class CellReport:
    """What is known about one attempt at a cell; it becomes ``cell.json``."""

    spec: CellSpec
    attempt: int
    started: datetime
    outcome: Outcome = "failed"
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    timings_s: dict[str, float] = field(default_factory=dict)
    links: dict[str, Any] = field(default_factory=dict)
    proof: dict[str, Any] = field(default_factory=dict)
    captures: list[dict[str, Any]] = field(default_factory=list)
    congestion_control: dict[str, str] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    phone: dict[str, str | Sequence[str]] = field(default_factory=dict)
    clock_offset_ms: float = 0.0

    @property
    def duration_s(self) -> float:
        """Time of all steps."""
        return sum(self.timings_s.values())


@dataclass(frozen=True)
class CellJob:
    """What one attempt at a cell needs to know.

    Attributes:
        spec: the cell.
        experiment: what it belongs to.
        scenario: what is run.
        app: the Android app that it is done with, or None.
        directory: where everything is written.
        attempt: from 1.
        on_step: told the name of each step as it begins.
    """

    spec: CellSpec
    experiment: Experiment
    scenario: AnyScenario
    directory: Path
    attempt: int
    on_step: Callable[[str], object]
    app: AndroidApp | None = None


class Cell:
    """One attempt at one cell, in a lab that is up."""

    def __init__(self, lab: Lab, job: CellJob, instruments: Instruments) -> None:
        self._lab = lab
        self._with = instruments
        self._job = job
        self._use: ScenarioUse = job.experiment.scenario(job.spec.scenario)
        transport = job.experiment.transport(job.spec.transport)
        self._transport: Transport = make_transport(
            transport.name, transport.options, lab.phone.interfaces, transport.files
        )
        self._link = job.experiment.link(job.spec.link)
        self._paths = self._link.paths()
        self.report = CellReport(job.spec, job.attempt, datetime.now(UTC))
        self._undo = UndoStack()
        self._apps = OpenApps()
        self._parts: Sequence[CellPart] = lab.cell_parts(job)
        self._agent: Agent | None = None
        self._doing = ""
        """The step that it is at."""
        self._causes: list[str] = []

    def run(self) -> CellReport:
        """Run it; everything it changed is undone before this returns or raises.

        Returns:
            The report, whatever the outcome. KeyboardInterrupt alone passes through.
        """
        report = self.report
        self._with.cpu_percent()
        report.host["load_before"] = self._with.load_average()
        stalls = load.Stalls(lambda: self._doing, clock=self._with.monotonic)
        try:
            with stalls, self._undo:
                self._run_watched()
        except InvalidCellError as error:
            report.outcome, report.reasons = "invalid", [*self._causes, *error.reasons]
        except CellError as error:
            report.outcome, report.reasons = "failed", [*self._causes, str(error)]
        else:
            report.outcome = "invalid" if report.reasons else "ok"
        report.warnings += stalls.warnings
        report.host["load_after"] = self._with.load_average()
        report.host["cpu_busy_percent"] = self._with.cpu_percent()
        return report

    def _run_watched(self) -> None:
        """If programs of the lab or the agent have ended, name them first: the cell's error is only a consequence."""
        try:
            self._run_steps()
        except CellError as error:
            try:
                check_each([self._lab.check_alive, *([self._agent.check_alive] if self._agent else [])])
            except DeviceError as cause:
                if str(cause) != str(error):
                    self._causes.append(str(cause))
            raise

    def _run_steps(self) -> None:
        job, lab = self._job, self._lab
        self.report.phone = asdict(lab.phone.identity())
        with ObservationLog(job.directory / "scenario.jsonl") as observe, ExitStack() as cleaning:
            cleaning.callback(lambda: self.report.warnings.extend(observe.warnings))
            self._start_parts("app", observe, cleaning)
            context = self._context(observe)
            self._step("services", lambda: lab.services.check(job.scenario.services))
            with ExitStack() as logs:
                for mark in (lab.services.mark(job.scenario.services), LogMark.of(lab.origin_logs())):
                    logs.callback(partial(mark.keep, job.directory / "logs"))
                if job.scenario.checks:
                    self._step("check", partial(self._check, context))
                opening = job.scenario.open(context, self._use.parameters)
                with self._apps.kept_on_failure():
                    session = self._step("prepare", lambda: cleaning.enter_context(opening))
                cleaning.push(logs.pop_all())  # the session reads the logs when it ends
            self._step("shape", self._shape)
            self._step("probe", self._probe)
            agent = self._agent = self._step("transport", self._set_up_transport)
            active = self._step("prove", lambda: self._prove_active(agent))
            captures = Captures(lab.capture_points(), job.experiment.capture, job.directory)
            self._undo.register("captures", lambda: captures.stop() and None)
            self._step("capture", captures.start)
            self._start_parts("captures", observe, cleaning)
            # After the captures have begun: what lasts (paths of a session) is in them from its SYN on.
            self._step("agent", agent.start)
            before = self._counters()
            proxy_mark = lab.proxy.log_end()
            changes = self._changes(observe)
            limit = self._with.limit(context.time_limit_s, self._use.label)
            with changes, self._host_load(), self._apps.kept_on_failure(), limit:
                self._step("scenario", session.run)
            after = self._counters()
            observe("traffic", interfaces=traffic(before["phone"], after["phone"], lab.phone.interfaces))
            agent.check_alive()
            self._step("stop", agent.stop)
            results = self._step("stop captures", captures.stop)
            self._step("clean up", cleaning.close)
        self._keep_counters(before, after)
        proxy_log = [by_our_names(record, lab.phone.devices) for record in lab.proxy.logs_since(proxy_mark)]
        self._keep_proxy_log(proxy_log)
        self.report.proof["session"] = self._transport.summarise(agent.records(), proxy_log)
        changed = {node: difference(before[node], after[node]) for node in before}
        self._step("evidence", lambda: self._judge(results, active, changed, agent.records(), changes))
        lab.check_alive()
        lab.services.check(job.scenario.services)

    def _step(self, name: str, action: Callable[[], _Result]) -> _Result:
        self._job.on_step(name)
        self._doing = name
        started = self._with.monotonic()
        try:
            return action()
        finally:
            spent = self._with.monotonic() - started
            self.report.timings_s[name] = round(self.report.timings_s.get(name, 0.0) + spent, 4)

    @contextmanager
    def _host_load(self) -> Iterator[None]:
        """Record how busy the host is meanwhile; flag the cell when that is too much for the scenario."""
        needed, cpus = self._job.scenario.cpus, self._with.cpus
        before = self._with.load()
        try:
            yield
        finally:
            found = load.between(before, self._with.load(), cpus=cpus)
            problems = load.judge_load(found, min(needed, cpus))
            self.report.host |= {**asdict(found), "needed_cpus": needed, "overloaded": bool(problems)}
            self.report.warnings += problems

    def _context(self, observe: ObservationLog) -> Context:
        scratch = self._lab.scratch / "cell"
        scratch.mkdir(exist_ok=True)
        self._undo.register("scratch folder", lambda: shutil.rmtree(scratch, ignore_errors=True))
        return Context(
            phone=self._lab.phone,
            open_ui=self._open_ui("phone", observe) if self._job.scenario.needs_ui else _no_ui,
            observe=observe,
            rng=Random(self._job.spec.seed),  # noqa: S311 - repeatable, not secret
            cell_dir=self._job.directory,
            scratch_dir=scratch,
            time_limit_s=min(self._use.time_limit_s, self._job.experiment.cell_timeout_s),
            tools=Tools(node=NODE.path(), node_modules=APPIUM_DIR / "node_modules"),
            socks=self._transport.agent_settings().socks,
            app_proxy=self._lab.endpoints.app_proxy,
            open_peer_ui=self._open_ui("peer", observe) if self._job.scenario.needs_ui else _no_ui,
            service=self._facts,
            open_app=self._open_app(observe),
            open_devtools=self._open_devtools,
            android=self._job.app,
            open_sound=lambda: self._lab.open_sound(self._job.directory / "logs" / "sound-card.log"),
        )

    def _facts(self, name: str) -> Mapping[str, str]:
        if name not in self._job.scenario.services:
            raise StepError(f"the scenario does not declare the service {name}")
        return self._lab.services.facts(name)

    def _open_ui(self, node: str, observe: ObservationLog) -> BrowserFactory:
        directory = self._job.directory
        # Without payload in the captures there is nothing that the keys would open.
        keep = node == "phone" and self._job.experiment.capture == "payload"
        keys = directory / "logs" / TLS_KEYS if keep else None
        browser = self._job.scenario.browser
        console = ConsoleLog(directory / "logs" / f"console-{node}.jsonl")
        screenshots = directory / SCREENSHOTS[node]
        factory = self._lab.open_ui(screenshots, keys, node=node, browser=browser, console=console)

        @contextmanager
        def open_browser(*, switches: Sequence[str] = (), sound: str = "") -> Iterator[BrowserUi]:
            with factory(switches=switches, sound=sound) as ui:
                prove_clean(ui, device=node, observe=observe)
                with self._apps.watched(ui, screenshots):
                    yield ui

        return open_browser

    def _open_devtools(self, app: AndroidApp) -> AbstractContextManager["DevTools | None"]:
        return self._lab.open_devtools(app)

    def _open_app(self, observe: ObservationLog) -> AppFactory:
        screenshots = self._job.directory / SCREENSHOTS["phone"]

        @contextmanager
        def open_app(app: AndroidApp) -> Iterator[AppUi]:
            with self._lab.open_app(app, observe=observe, screenshots=screenshots) as ui:
                prove_clean(ui, device="phone", observe=observe, kept=app.signed_in)
                with self._apps.watched(ui, screenshots):
                    yield ui

        return open_app

    def _start_parts(self, moment: Moment, observe: ObservationLog, cleaning: ExitStack) -> None:
        """Start the lab's parts of a moment; `cleaning` finishes them."""
        for part in self._parts:
            if part.moment == moment:
                cleaning.callback(part.finish)
                self._step(part.name, partial(part.start, self.report, observe))

    def _check(self, context: Context) -> None:
        """The scenario's own check: the cell's transport over open links, with an agent of its own."""
        logs = self._job.directory / "logs" / "check"
        logs.mkdir(parents=True)
        with UndoStack() as undo:
            self._lab.set_up_transport(self._transport, logs=logs, undo=undo).start()
            with self._with.limit(context.time_limit_s, f"{self._use.label}: check"):
                self._job.scenario.check(context, self._use.parameters)

    def _shape(self) -> None:
        self._undo.register("links", self._lab.shaper.clear)
        self._apply()
        self.report.warnings += self._lab.shaper.warnings()

    def _apply(self) -> None:
        self._lab.shaper.apply(self._paths, seed=self._job.spec.seed, core_rtt_ms=self._link.core_rtt_ms)

    def _probe(self) -> None:
        """Measure the links; a measurement that is off is made again, since another program may have disturbed it."""
        shaper, report = self._lab.shaper, self.report
        probes = []
        for _ in range(_PROBE_ATTEMPTS):
            measured = shaper.probe(self._paths)
            probes.append({interface: asdict(found) for interface, found in measured.items()})
            reasons = judge_links(self._paths, measured, self._job.experiment.tolerance)
            if not reasons:
                break
        report.links = {
            interface: {
                "asked": _asked(path),
                "measured": asdict(measured[interface]),
                "where": shaper.where(interface),
            }
            for interface, path in self._paths.items()
        }
        logs = self._job.directory / "logs"
        logs.mkdir(exist_ok=True)
        (logs / "probes.json").write_text(json.dumps(probes, indent=1))
        if reasons:
            raise InvalidCellError(*reasons)
        if len(probes) > 1:
            report.warnings.append(f"the links were probed {len(probes)} times before they were as asked")
        # The probe's last packets leave the queues, and the losses of the cell begin at the seed again.
        self._apply()

    def _changes(self, observe: ObservationLog) -> ChangeSchedule:
        """What the link condition asks to happen while the scenario runs."""
        changer = Changer(
            self._lab.phone,
            self._lab.shaper,
            endpoints=self._lab.endpoints,
            paths=self._paths,
            undo=self._undo,
        )
        return ChangeSchedule(
            self._link.changes, changer, observe, monotonic=self._with.monotonic, wall=self._with.wall
        )

    def _set_up_transport(self) -> Agent:
        return self._lab.set_up_transport(self._transport, logs=self._job.directory / "logs", undo=self._undo)

    def _prove_active(self, agent: Agent) -> ActiveCheck:
        active = agent.check(subflows=self._transport.expected_subflows)
        self.report.proof["active"] = dict(active)
        asked = self._job.experiment.congestion_control
        found = str(active.get("congestion_control", ""))
        self.report.congestion_control = {
            "agent": found,
            "origin": self._lab.origin_congestion_control(),
        }
        reasons = self._transport.check_active(active)
        if found != asked:
            reasons.append(f"the agent's sockets use {found or 'an unknown congestion control'}, {asked} was asked")
        if reasons:
            raise InvalidCellError(*reasons)
        return active

    def _counters(self) -> dict[str, Mapping[str, int]]:
        lab = self._lab
        return {"phone": lab.phone.counters(), "proxy": lab.proxy.counters(), "links": lab.shaper.counters()}

    def _keep_counters(self, before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> None:
        directory = self._job.directory / "counters"
        directory.mkdir()
        for node in before:
            (directory / f"{node}-before.json").write_text(json.dumps(before[node], indent=0, sort_keys=True))
            (directory / f"{node}-after.json").write_text(json.dumps(after[node], indent=0, sort_keys=True))

    def _keep_proxy_log(self, records: Sequence[LogRecord]) -> None:
        """The proxy's log of this cell, and what it says of congestion control."""
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (self._job.directory / "logs" / "proxy.jsonl").write_text(lines)
        used = {
            algorithm
            for record in records
            if record["event"] == "connection" and (algorithm := record.get("congestion_control", ""))
        }
        self.report.congestion_control["proxy"] = ", ".join(sorted(used))
        asked = self._job.experiment.congestion_control
        if used - {asked}:
            self.report.reasons.append(f"the proxy's sockets used {', '.join(sorted(used))}, {asked} was asked")

    def _judge(
        self,
        results: list[CaptureResult],
        active: ActiveCheck,
        changed: Mapping[str, Mapping[str, int]],
        log: Sequence[LogRecord],
        changes: ChangeSchedule,
    ) -> None:
        report = self.report
        report.captures = [asdict(result) for result in results]
        report.warnings += changes.warnings
        report.warnings += judge_captures(results) + judge_punctuality(changed["links"])
        captured = {result.file for result in results}
        names = (f"phone-{interface}.pcapng" for interface in self._lab.phone.interfaces)
        files = [self._job.directory / name for name in names if name in captured]
        trace = self._with.read_trace(files) if files else NO_TRACE
        # The last packets of the test connection before the cell are in the captures, too.
        begun = [row for row in trace["connections"] if row["syn_seen"]]
        ids = {row["connection_id"] for row in begun}
        subflows = [row for row in trace["subflows"] if row["connection_id"] in ids]
        evidence = Evidence(
            active=active,
            phone_counters=changed["phone"],
            connections=begun,
            subflows=subflows,
            captured=bool(files),
            log=log,
            lossy=[interface for interface, path in self._paths.items() if path.round_trip_loss_percent],
            disturbances=changes.disturbances,
        )
        report.proof["counters"] = self._transport.count(changed["phone"])
        report.proof["subflows"] = count_subflows(subflows)
        report.reasons += self._transport.prove(evidence) + judge_emulation(
            changed["links"], absent=changes.disturbances.devices
        )
        report.reasons += [reason for part in self._parts for reason in part.judge()]
        if self._lab.endpoints.app_proxy:
            report.reasons += judge_handed_over(log)


def _asked(path: PathCondition) -> dict[str, float]:
    return {
        "down_kbps": path.down_kbps or 0.0,
        "up_kbps": path.up_kbps or 0.0,
        "rtt_ms": path.rtt_ms,
        "loss_percent": path.round_trip_loss_percent,
    }


def _no_ui(*, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[BrowserUi]:
    raise StepError("a scenario that opens a user interface must declare needs_ui")
