"""What a run needs of this machine and of its phone, looked at before anything is written."""

from collections.abc import Iterable

from mplab.base.enter import check_namespaces
from mplab.base.errors import LabNotReadyError
from mplab.base.programs import ALL, FOR_REAL, FOR_UI, Program
from mplab.lab.catalog import catalog, programs_of
from mplab.lab.driver import phone_driver
from mplab.lab.needs import programs_of_lab
from mplab.run.hooks import check_programs
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import VIRTUAL, LabUse


def check_ready_for(experiment: Experiment) -> None:
    """Raise LabNotReadyError when something that an experiment needs is missing."""
    there = catalog().on(experiment.lab)
    needs_ui = any(there[use.name].needs_ui for use in experiment.scenarios)
    check_ready(needs_ui=needs_ui, further=programs_of_run(experiment), use=experiment.lab)
    check_programs(experiment.hooks)


def check_ready(*, needs_ui: bool, further: Iterable[Program] = (), use: LabUse = VIRTUAL) -> None:
    """Raise LabNotReadyError when something that a lab needs of this machine is missing, or a further program."""
    always, title = (FOR_REAL, "this machine") if use.real else (ALL, "the virtual lab")
    needed = [program for program in always if needs_ui or use.real or program not in FOR_UI]
    needed += [program for program in further if program not in needed]
    missing = [f"{program.name}: {program.remedy}" for program in needed if program.find() is None]
    if missing:
        raise LabNotReadyError(f"{title} is not ready; 'mplab doctor' says more. Missing: " + "; ".join(missing))
    if not use.real:
        check_namespaces()


def programs_of_run(experiment: Experiment) -> list[Program]:
    """Return the programs that a run needs beyond those that every lab needs."""
    there = catalog().on(experiment.lab)
    found = [program for use in experiment.scenarios for program in programs_of(there[use.name])]
    return [*found, *programs_of_lab(experiment.lab)]


def look_at_real_phone(use: LabUse) -> dict[str, object]:
    """What the manifest says of a real phone; {} of others, which are there when the lab is.

    Raises:
        LabNotReadyError: it is not there, in use, or not rooted.
    """
    identity = phone_driver(use.kind).look(use)
    return {"identity": identity} if identity else {}
