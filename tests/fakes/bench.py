"""Benches that run one cell or one run in a fake lab."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from mplab.base.errors import MplabError
from mplab.cell.attempt import CellJob
from mplab.cell.cell import CellAttempt
from mplab.cell.report import CellReport
from mplab.drivers.transport import DRIVERS, make_transport
from mplab.format.cell import CellRecord
from mplab.format.events import EventLog
from mplab.format.manifest import GitRecord, HostRecord, LabRecord, Manifest
from mplab.format.record import utc_now
from mplab.format.runevents import planned_event
from mplab.lab.catalog import LINKS_DIR, LabCatalog
from mplab.run.blocks import make_plan
from mplab.run.hostrpc import Answer, HostClient
from mplab.run.labside.run import RunLoop
from mplab.run.run_directory import RunDirectory
from mplab.scenarios.base import AnyScenario
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import load_experiment
from tests.fakes.eventlines import read_lines
from tests.fakes.lab import FakeLab
from tests.fakes.scenario import FakeScenario

EXPERIMENT = """\
mplab: 1
name: fake
transports: [{transports}]
links:
  - name: home
    wifi: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}}
    lte: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}}
{changes}scenarios: [fake]
retries: {retries}
repetitions: {repetitions}
{more}"""


def experiment_text(
    *, transports: str = "sptcp-wifi", changes: str = "", retries: int = 0, repetitions: int = 1, more: str = ""
) -> str:
    """Return the text of an experiment file; `more` is appended as further lines."""
    listed = f"    changes: [{changes}]\n" if changes else ""
    return EXPERIMENT.format(transports=transports, changes=listed, retries=retries, repetitions=repetitions, more=more)


def any_scenario(scenario: FakeScenario) -> AnyScenario:
    """Return a scenario under the type of those that catalogues load."""
    return cast("AnyScenario", scenario)


def catalog_with(scenario: FakeScenario) -> LabCatalog:
    """Return a catalogue with every transport and one scenario."""
    return LabCatalog(transports=DRIVERS, scenarios={"fake": any_scenario(scenario)}, links_dir=LINKS_DIR)


@dataclass
class CellBench:
    """Runs single cells in one lab, each in its own directory.

    Attributes:
        folder: parent of all files.
        lab: the fake lab, with its script.
        scenario: the scenario that all cells run.
        steps: names of the last cell's steps, in starting order.
        directory: of the last cell.
    """

    folder: Path
    lab: FakeLab
    scenario: FakeScenario
    steps: list[str] = field(default_factory=list)
    directory: Path = Path()

    @classmethod
    def in_folder(cls, folder: Path, scenario: type[FakeScenario] = FakeScenario) -> "CellBench":
        """Return a bench with a new lab."""
        lab = FakeLab(folder / "lab")
        return cls(folder, lab, scenario(lab.script))

    def experiment(self, text: str) -> Experiment:
        """Load an experiment from its text."""
        path = self.folder / "experiment.yaml"
        path.write_text(text)
        return load_experiment(path, catalog=catalog_with(self.scenario))

    def run(self, text: str | None = None, **changed: Any) -> CellReport:
        """Run the first cell of an experiment and return its report; `changed` overrides fields of the experiment."""
        experiment = replace(self.experiment(text or experiment_text()), **changed)
        self.directory = self.folder / f"cell-{len(list(self.folder.glob('cell-*')))}"
        self.directory.mkdir()
        self.steps.clear()
        spec = make_plan(experiment).cells[0]
        transport = experiment.transport(spec.transport)
        job = CellJob(
            spec=spec,
            transport=make_transport(transport.name, transport.options, self.lab.phone.interfaces, transport.files),
            experiment=experiment,
            scenario=any_scenario(self.scenario),
            directory=self.directory,
            attempt=1,
            on_step=self.steps.append,
        )
        return CellAttempt(self.lab, job, self.lab.instruments).run()


class FakeOutside(HostClient):
    """The process outside the lab: replies with the queued `answers`; without one it replies that all is well."""

    def __init__(self) -> None:
        super().__init__(None)
        self.answers: dict[str, list[Answer | BaseException]] = {}
        self.asked: list[dict[str, Any]] = []

    def ask(self, question: str, **about: Any) -> Answer:
        """Record the question and return the next queued answer to it. A hook's answers are queued under its name.

        Raises:
            BaseException: the next queued answer, if that is an exception.
        """
        self.asked.append({"question": question, **about})
        queue = self.answers.get(str(about.get("name", question)), [])
        answer = queue.pop(0) if queue else {"problem": "", "enough": False, "text": "wide", "numbers": {}}
        if isinstance(answer, BaseException):
            raise answer
        return answer


@dataclass
class RunBench:
    """A run directory and the lab in which it runs.

    Attributes:
        directory: of the run.
        lab: the fake lab, with its script.
        scenario: the scenario that all cells run.
        outside: stand-in for the hooks and stop rules.
    """

    directory: RunDirectory
    lab: FakeLab
    scenario: FakeScenario
    outside: FakeOutside

    @classmethod
    def planned(cls, folder: Path, text: str, scenario: type[FakeScenario] = FakeScenario) -> "RunBench":
        """Return a run that is planned but not started."""
        lab = FakeLab(folder / "lab")
        fake_scenario = scenario(lab.script)
        directory = RunDirectory.create(folder / "runs", "fake", text.encode())
        experiment = _read(directory, fake_scenario)
        plan = make_plan(experiment)
        with EventLog(directory.events_file) as events:
            events.append(planned_event(plan))
        directory.write_manifest(
            Manifest(
                run_id=directory.run_id,
                experiment=experiment.record(),
                plan=plan,
                lab=LabRecord.model_validate(experiment.lab.to_json()),
                host=HostRecord(kernel="6.0", cpus=2, memory_bytes=1, distribution="", mptcp={}),
                versions={},
                git=GitRecord(commit=None, dirty=False),
                started=utc_now(),
            )
        )
        return cls(directory, lab, fake_scenario, FakeOutside())

    def execute(self) -> Mapping[str, CellRecord]:
        """Run the incomplete cells and return all complete ones. An error of the run is raised unchanged."""
        run = RunLoop(
            self.directory.path,
            self.outside,
            catalog=catalog_with(self.scenario),
            open_lab=lambda _experiment, _directory: self.lab,
            instruments=self.lab.instruments,
        )
        run.execute()
        return self.cells

    def fails(self) -> MplabError:
        """Run the incomplete cells and return the error with which the run ends.

        Raises:
            AssertionError: the run ends without an error.
        """
        try:
            self.execute()
        except MplabError as error:
            return error
        raise AssertionError("the run did not fail")

    @property
    def cells(self) -> dict[str, CellRecord]:
        """The complete cells by id, in order."""
        return self.directory.complete_cells()

    @property
    def outcomes(self) -> list[str]:
        """Outcomes of the complete cells, in order."""
        return [cell.outcome for cell in self.cells.values()]

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the events in order, only those called `names` if any are given."""
        return [event for event in read_lines(self.directory.events_file) if not names or event["event"] in names]

    def names(self) -> list[str]:
        """Return the names of all events except `cell_step`, in order."""
        return [event["event"] for event in self.events() if event["event"] != "cell_step"]


def _read(directory: RunDirectory, scenario: FakeScenario) -> Experiment:
    return load_experiment(directory.experiment_file, catalog=catalog_with(scenario), kept=directory.kept_dir)
