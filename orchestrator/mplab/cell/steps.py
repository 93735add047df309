"""Define the steps of a cell, in the order of `steps_of`.

`mplab.cell.cell` starts them in this order and ends them in reverse order. Their names are used in ``cell_step``
events and in ``timings_s``.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import BaseModel

from mplab.base import load
from mplab.base.errors import InvalidCellError
from mplab.base.undo import UndoStack
from mplab.cell.attempt import Attempt
from mplab.cell.changes import Changer, ChangeSchedule
from mplab.cell.context import make_context
from mplab.cell.evidence import CellEvidence, Counters, begun_in, grown, keep_counters
from mplab.cell.instruments import NO_TRACE, count_subflows, traffic
from mplab.cell.judge import judge_active, judge_links
from mplab.drivers.capture import CaptureResult, Captures
from mplab.drivers.phone.protocol import by_our_names
from mplab.drivers.services import LogMark
from mplab.drivers.shaper import PathMeasurement
from mplab.drivers.transport.direct import Carrier
from mplab.format.agentlog import ActiveCheck
from mplab.format.captured import ORIGIN_CAPTURE, ConnectionRow, SubflowRow
from mplab.format.cell import CaptureRecord, CongestionControlRecord, LinkAsked, LinkMeasured, LinkProof, TransportProof
from mplab.format.path import PathCondition
from mplab.format.sites import NETWORK
from mplab.lab.protocol import CellPart
from mplab.scenarios.base import AnyScenario, Context, Session

_PROBE_ATTEMPTS = 3
_CLEAN_UP = "clean up"


@dataclass
class Step:
    """A step of one attempt at a cell.

    Attributes:
        name: name of its start; "": the start is neither reported nor timed.
        end_name: name of `collect` and `finish`; "": they are neither reported nor timed.
    """

    name = ""
    end_name = ""

    attempt: Attempt

    def start(self) -> None:
        """Do the work of this step that the following steps depend on. Raises CellError, which ends the cell."""

    def collect(self) -> None:
        """Read the step's measurements. Called only if every step of the cell succeeded. Raises CellError."""

    def finish(self) -> None:
        """Release what `start` acquired. Called once for each `start`, even if that raised. Raises CellError."""

    def end(self) -> None:
        """Call `collect` and then, even if it raises, `finish`. Raises CellError."""
        try:
            self.collect()
        finally:
            self.finish()


def steps_of(attempt: Attempt) -> list[Step]:
    """Return the steps of an attempt, in the order of their starts."""
    parts = attempt.lab.cell_parts(attempt.job)
    before_app = [PartStart(attempt, part) for part in parts if part.moment == "app"]
    in_captures = [PartStart(attempt, part) for part in parts if part.moment == "captures"]
    session, transport, changes = KeepSession(attempt), SetUpTransport(attempt), _changes_of(attempt)
    proof, captures, counters = Prove(attempt, transport), Capture(attempt), CountBefore(attempt)
    return [
        EvidenceStep(
            attempt,
            parts=parts,
            transport=transport,
            proof=proof,
            captures=captures,
            counters=counters,
            changes=changes,
        ),
        Observe(attempt),
        *([Rest(attempt)] if attempt.job.experiment.rest_s else []),
        *(step for start in before_app for step in (PartEnd(attempt, start), start)),
        session,
        ServicesStep(attempt),
        *([CheckStep(attempt, session)] if attempt.job.scenario.checks else []),
        Prepare(attempt, session),
        ShapeStep(attempt),
        ProbeStep(attempt),
        transport,
        proof,
        *(PartEnd(attempt, start) for start in in_captures),  # captures end before the parts that started after them
        captures,
        *in_captures,
        RunAgent(attempt, transport),  # started after the captures, so that they contain its first SYN
        counters,
        RunScenario(attempt, session, changes),
        CountAfter(attempt, transport, counters),
    ]


@dataclass
class Rest(Step):
    """Wait for the experiment's rest time, so that radios and hosts become idle after the previous cell or attempt."""

    name = "rest"

    def start(self) -> None:
        """Wait for the experiment's rest time."""
        self.attempt.instruments.sleep(self.attempt.job.experiment.rest_s)


@dataclass
class Observe(Step):
    """Keep ``scenario.jsonl`` open during the attempt; read the phone's identity."""

    end_name = _CLEAN_UP

    def start(self) -> None:
        """Write the phone's identity into the report, and open ``scenario.jsonl``."""
        self.attempt.report.phone |= asdict(self.attempt.lab.phone.identity())
        self.attempt.observe.__enter__()

    def finish(self) -> None:
        """Close ``scenario.jsonl``; add the scenario's warnings to the report."""
        self.attempt.report.warnings += self.attempt.observe.warnings
        self.attempt.observe.__exit__(None, None, None)


@dataclass
class PartStart(Step):
    """Start `part`, a step that the lab adds to each cell. `PartEnd` finishes it."""

    part: CellPart
    started: bool = False

    def __post_init__(self) -> None:
        """Set this step's name to that of `part`."""
        self.name = self.part.name

    def start(self) -> None:
        """Start `part`, the step that the lab has added."""
        self.started = True
        self.part.start(self.attempt.report, self.attempt.observe)


@dataclass
class PartEnd(Step):
    """Finish a step that the lab has added, if `PartStart` has started it.

    The position of this object in `steps_of` decides when the added step is finished: steps end in reverse order.
    """

    end_name = _CLEAN_UP

    begun: PartStart

    def finish(self) -> None:
        """Finish the step that `PartStart` has started, if it has."""
        if self.begun.started:
            self.begun.part.finish()


@dataclass
class KeepSession(Step):
    """Keep the scenario's session (its prepared app). `Prepare` opens it.

    This step closes the session, after the services' logs were copied.
    """

    end_name = _CLEAN_UP

    context: Context = field(init=False)
    session: Session[BaseModel] = field(init=False)
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Prepare the phone for the transport's apps; make the `Context` of the scenario, with a scratch folder.

        The folder is removed after the attempt.
        """
        self.attempt.lab.prepare_apps(self.attempt.job.transport, self.attempt.undo)
        scratch = self.attempt.lab.scratch / "cell"
        self.attempt.undo.register("scratch folder", lambda: shutil.rmtree(scratch, ignore_errors=True))
        scratch.mkdir(exist_ok=True)
        self.context = make_context(self.attempt, scratch)

    def open(self, scenario: AnyScenario) -> None:
        """Open the scenario's session."""
        opening = scenario.open(self.context, self.attempt.job.use.parameters)
        self.session = self._stack.enter_context(opening)

    def finish(self) -> None:
        """Close the scenario's session."""
        self._stack.close()


@dataclass
class ServicesStep(Step):
    """Check the services that the scenario uses; copy the log lines that they and the origin write during the cell."""

    name = "services"
    end_name = _CLEAN_UP

    _marks: Sequence[LogMark] = ()

    def start(self) -> None:
        """Check the services that the scenario uses; record the sizes of their logs and of the origin's."""
        lab, names = self.attempt.lab, self.attempt.job.scenario.services
        lab.services.check(names)
        self._marks = [lab.services.mark(names), LogMark.of(lab.origin_logs())]

    def finish(self) -> None:
        """Copy the part of each log that was written since `start`."""
        for mark in self._marks:
            mark.keep(self.attempt.job.logs)


@dataclass
class CheckStep(Step):
    """Run the scenario's own check before the links are shaped, with the cell's transport and a separate agent."""

    name = "check"

    session: KeepSession

    def start(self) -> None:
        """Set up the transport, run the scenario's check within its time limit, then undo the transport."""
        attempt, job, context = self.attempt, self.attempt.job, self.session.context
        logs = job.logs / "check"
        logs.mkdir()
        with UndoStack() as undo:
            sockets = attempt.treatment.sockets
            attempt.lab.set_up_transport(job.transport, sockets=sockets, logs=logs, undo=undo).start()
            with attempt.instruments.limit(context.time_limit_s, f"{job.use.label}: check"):
                job.scenario.check(context, job.use.parameters)


@dataclass
class Prepare(Step):
    """Prepare the scenario's app by opening the scenario's session."""

    name = "prepare"

    session: KeepSession

    def start(self) -> None:
        """Open the scenario's session."""
        with self.attempt.apps.kept_on_failure():
            self.session.open(self.attempt.job.scenario)


@dataclass
class ShapeStep(Step):
    """Shape the paths as the link condition requests."""

    name = "shape"

    def start(self) -> None:
        """Apply the link condition, and register its undo."""
        shaper = self.attempt.lab.shaper
        self.attempt.undo.register("links", shaper.clear)
        apply_links(self.attempt)
        self.attempt.report.warnings += shaper.warnings()


def apply_links(attempt: Attempt) -> None:
    """Apply the cell's link condition; the random losses start from the seed of the cell."""
    link = attempt.job.link
    attempt.lab.shaper.apply(attempt.treatment.paths, seed=attempt.job.spec.seed, core_rtt_ms=link.core_rtt_ms)


@dataclass
class ProbeStep(Step):
    """Measure the paths until they are as requested, at most 3 times: other programs may disturb a measurement.

    All results are written to ``logs/probes.json``.
    """

    name = "probe"

    def start(self) -> None:
        """Measure the paths. Raises InvalidCellError if the last measurement differs from the requested condition."""
        attempt, job, report = self.attempt, self.attempt.job, self.attempt.report
        shaper, paths = attempt.lab.shaper, attempt.treatment.paths
        probes = []
        for _ in range(_PROBE_ATTEMPTS):
            measured = shaper.probe(paths)
            probes.append({interface: asdict(measurement) for interface, measurement in measured.items()})
            reasons = judge_links(paths, measured, job.experiment.tolerance)
            if not reasons:
                break
        report.links = {
            interface: _link_proof(path, measured[interface], shaper.where(interface))
            for interface, path in paths.items()
        }
        (job.logs / "probes.json").write_text(json.dumps(probes, indent=1))
        if reasons:
            raise InvalidCellError(*reasons)
        if len(probes) > 1:
            report.warnings.append(f"the links were probed {len(probes)} times before they were as requested")
        # The probe's last packets leave the queues, and the random losses restart from the seed.
        apply_links(attempt)


def _link_proof(path: PathCondition, measured: PathMeasurement, where: str) -> LinkProof:
    requested = LinkAsked(
        down_kbps=path.down_kbps or 0.0,
        up_kbps=path.up_kbps or 0.0,
        rtt_ms=path.rtt_ms,
        loss_percent=path.round_trip_loss_percent,
    )
    return LinkProof(asked=requested, measured=LinkMeasured(**asdict(measured)), where=where)


@dataclass
class SetUpTransport(Step):
    """Prepare phone, proxy and agent for the transport. `RunAgent` starts the agent."""

    name = "transport"

    agent: Carrier = field(init=False)

    def start(self) -> None:
        """Set up the transport, and add its agent to the checked programs (`Attempt.watch`)."""
        attempt = self.attempt
        self.agent = attempt.lab.set_up_transport(
            attempt.job.transport, sockets=attempt.treatment.sockets, logs=attempt.job.logs, undo=attempt.undo
        )
        attempt.watch.append(self.agent.check_alive)


@dataclass
class Prove(Step):
    """Open a test connection, and check that it uses the requested transport and congestion control."""

    name = "prove"

    transport: SetUpTransport
    active: ActiveCheck = field(init=False)

    def start(self) -> None:
        """Open the test connection. Raises InvalidCellError if its transport or congestion control is wrong."""
        attempt, report = self.attempt, self.attempt.report
        self.active = self.transport.agent.check(subflows=attempt.job.transport.expected_subflows)
        report.proof = TransportProof.model_validate({"active": self.active})
        report.congestion_control = CongestionControlRecord(
            agent=self.active.get("congestion_control", ""),
            origin=self.active.get("origin_congestion_control") or attempt.lab.origin_congestion_control(),
        )
        if reasons := judge_active(self.active, attempt.treatment):
            raise InvalidCellError(*reasons)


@dataclass
class Capture(Step):
    """Capture packets at all capture points of the lab."""

    name = "capture"
    end_name = "stop captures"

    results: Sequence[CaptureResult] = ()
    _captures: Captures | None = None

    def start(self) -> None:
        """Start the packet captures."""
        attempt, job = self.attempt, self.attempt.job
        self._captures = Captures(
            attempt.lab.capture_points(direct=job.transport.direct), job.experiment.capture, job.directory
        )
        attempt.undo.register("captures", self._captures.stop)  # for captures that `finish` could not stop
        self._captures.start()

    def finish(self) -> None:
        """Stop the packet captures; keep their results."""
        if self._captures is not None:
            self.results = self._captures.stop()


@dataclass
class RunAgent(Step):
    """Run the agent on the phone, from before the scenario starts until the scenario has ended."""

    name = "agent"
    end_name = "stop"

    transport: SetUpTransport

    def start(self) -> None:
        """Start the agent."""
        self.transport.agent.start()

    def finish(self) -> None:
        """Stop the agent."""
        self.transport.agent.stop()


@dataclass
class CountBefore(Step):
    """Read the counters and the end of the proxy's log before the scenario.

    `before` has the counters. `CountAfter` sets `after` to the counters after the scenario.
    """

    before: Counters = field(init=False)
    after: Counters = field(init=False)
    proxy_mark: int = 0

    def start(self) -> None:
        """Read the counters of phone, proxy and links, and the end of the proxy's log."""
        self.before = read_counters(self.attempt)
        self.proxy_mark = self.attempt.lab.proxy.log_end()


@dataclass
class CountAfter(Step):
    """Read the counters of phone, proxy and links after the scenario."""

    transport: SetUpTransport
    counters: CountBefore

    def start(self) -> None:
        """Read the counters, and record the traffic as an observation. Raises DeviceError if the agent has ended."""
        attempt = self.attempt
        before, after = self.counters.before, read_counters(attempt)
        self.counters.after = after
        interfaces = attempt.lab.phone.interfaces
        attempt.observe("traffic", interfaces=traffic(before["phone"], after["phone"], interfaces))
        self.transport.agent.check_alive()


def read_counters(attempt: Attempt) -> Counters:
    """Return the current counters of phone, proxy, links and, on the direct route, origin: node → counter → value."""
    lab = attempt.lab
    origin = {"origin": lab.origin_counters()} if attempt.job.transport.direct else {}
    return {"phone": lab.phone.counters(), "proxy": lab.proxy.counters(), "links": lab.shaper.counters(), **origin}


def _changes_of(attempt: Attempt) -> ChangeSchedule:
    """Return the schedule of the link condition's changes, which starts with the scenario."""
    lab, instruments = attempt.lab, attempt.instruments
    peer = NETWORK if attempt.job.transport.direct else ""
    changer = Changer(
        lab.phone, lab.shaper, endpoints=lab.endpoints, peer=peer, paths=attempt.treatment.paths, undo=attempt.undo
    )
    return ChangeSchedule(
        attempt.job.link.changes, changer, attempt.observe, monotonic=instruments.monotonic, wall=instruments.wall
    )


@dataclass
class RunScenario(Step):
    """Run the scenario while the link condition changes and the load of the host is measured."""

    name = "scenario"

    session: KeepSession
    changes: ChangeSchedule

    def start(self) -> None:
        """Run the scenario's session within its time limit."""
        attempt, session = self.attempt, self.session
        limit = attempt.instruments.limit(session.context.time_limit_s, attempt.job.use.label)
        with self.changes, self._host_load(), attempt.apps.kept_on_failure(), limit:
            session.session.run()

    @contextmanager
    def _host_load(self) -> Iterator[None]:
        """Record the load of the host during the scenario; warn if it is too high for the scenario."""
        instruments, report = self.attempt.instruments, self.attempt.report
        needed, cpus = self.attempt.job.scenario.cpus, instruments.cpus
        before = instruments.load()
        try:
            yield
        finally:
            host_load = load.between(before, instruments.load(), cpus=cpus)
            problems = load.judge_load(host_load, min(needed, cpus))
            facts = {**asdict(host_load), "needed_cpus": needed, "overloaded": bool(problems)}
            report.host = report.host.model_copy(update=facts)
            report.warnings += problems


@dataclass
class EvidenceStep(Step):
    """Collect the evidence for the verdict after all other steps have ended, while the lab is still up."""

    end_name = "evidence"

    parts: Sequence[CellPart]
    transport: SetUpTransport
    proof: Prove
    captures: Capture
    counters: CountBefore
    changes: ChangeSchedule

    def collect(self) -> None:
        """Collect the evidence, complete the report, and check that lab and services are still alive."""
        attempt, lab, report = self.attempt, self.attempt.lab, self.attempt.report
        counters = self.counters
        keep_counters(attempt.job.directory, counters.before, counters.after)
        proxy_log = [by_our_names(record, lab.phone.devices) for record in lab.proxy.logs_since(counters.proxy_mark)]
        (attempt.job.logs / "proxy.jsonl").write_text("".join(json.dumps(record) + "\n" for record in proxy_log))
        agent_log = self.transport.agent.records()
        changed = grown(counters.before, counters.after)
        captured = self._phone_captures()
        connections, subflows = self._begun_in(captured)
        at_origin, _ = self._begun_in(self._captured(ORIGIN_CAPTURE))
        evidence = attempt.evidence = CellEvidence(
            active=self.proof.active,
            changed=changed,
            captures=self.captures.results,
            captured=bool(captured),
            connections=connections,
            subflows=subflows,
            origin_connections=at_origin,
            agent_log=agent_log,
            proxy_log=proxy_log,
            disturbances=self.changes.disturbances,
            parts=[reason for part in self.parts for reason in part.judge()],
        )
        transport = attempt.job.transport
        report.warnings += self.changes.warnings
        report.captures = [CaptureRecord(**asdict(result)) for result in self.captures.results]
        report.congestion_control = report.congestion_control.model_copy(
            update={"proxy": ", ".join(evidence.proxy_algorithms)}
        )
        report.proof = TransportProof.model_validate(
            {
                "active": self.proof.active,
                "session": transport.summarise(agent_log, proxy_log),
                "counters": transport.count(changed["phone"]),
                "origin_counters": transport.count(changed.get("origin", {})),
                "subflows": count_subflows(subflows),
            }
        )
        lab.check_alive()
        lab.services.check(attempt.job.scenario.services)

    def _phone_captures(self) -> list[Path]:
        """Return the existing capture files of the phone's interfaces."""
        return self._captured(*(f"phone-{interface}.pcapng" for interface in self.attempt.lab.phone.interfaces))

    def _captured(self, *names: str) -> list[Path]:
        files = {result.file for result in self.captures.results}
        return [self.attempt.job.directory / name for name in names if name in files]

    def _begun_in(self, captures: Sequence[Path]) -> tuple[list[ConnectionRow], list[SubflowRow]]:
        return begun_in(self.attempt.instruments.read_trace(captures) if captures else NO_TRACE)
