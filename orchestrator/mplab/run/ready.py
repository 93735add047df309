"""Check that this machine and the phone have everything that a run needs, before anything is written."""

from collections.abc import Iterable

from mplab.base.enter import check_namespaces
from mplab.base.errors import LabNotReadyError
from mplab.base.programs import ALL, FOR_REAL, FOR_UI, Program
from mplab.lab.catalog import catalog, programs_of
from mplab.lab.driver import phone_driver, programs_of_lab
from mplab.run.hooks import check_programs
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import VIRTUAL, LabUse


def check_ready_for(experiment: Experiment) -> None:
    """Raise LabNotReadyError if something that an experiment needs is missing."""
    there = catalog().on(experiment.lab)
    needs_ui = any(there[use.name].needs_ui for use in experiment.scenarios)
    check_ready(needs_ui=needs_ui, further=programs_of_run(experiment), use=experiment.lab)
    check_programs(experiment.hooks)


def check_ready(*, needs_ui: bool, further: Iterable[Program] = (), use: LabUse = VIRTUAL) -> None:
    """Raise LabNotReadyError if a program that the lab needs on this machine, or a further program, is missing."""
    always, title = (FOR_REAL, "this machine") if use.real else (ALL, "the virtual lab")
    needed = [program for program in always if needs_ui or use.real or program not in FOR_UI]
    needed += [program for program in further if program not in needed]
    missing = [f"{program.name}: {program.remedy}" for program in needed if program.find() is None]
    if missing:
        raise LabNotReadyError(f"{title} is not ready; 'mplab doctor' says more. Missing: " + "; ".join(missing))
    if not use.real:
        check_namespaces()


def programs_of_run(experiment: Experiment) -> list[Program]:
    """Return the programs that the scenarios, phone and virtual routers of a run need in addition to every lab's."""
    there = catalog().on(experiment.lab)
    found = [program for use in experiment.scenarios for program in programs_of(there[use.name])]
    return [*found, *programs_of_lab(experiment.lab)]


def look_at_real_phone(use: LabUse) -> dict[str, object]:
    """Return the manifest's entry of a real phone; {} for other phones, which start with their lab.

    Raises:
        LabNotReadyError: the phone is missing, in use, or not rooted.
    """
    identity = phone_driver(use.kind).look(use)
    return {"identity": identity} if identity else {}
