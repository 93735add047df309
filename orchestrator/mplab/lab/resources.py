"""What only one run at a time may use, by the names under which it is locked (`mplab.base.lock`)."""

from collections.abc import Iterator

from mplab.drivers.proxy import driver_of
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.owner import shaping_resource
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import LabUse

VIRTUAL_LAB = "virtual-lab"
"""One of this machine's virtual labs at a time: they would take each other's processors."""


def resources_of(experiment: Experiment) -> tuple[str, ...]:
    """Everything that a run of `experiment` locks beside its own run directory, sorted.

    Two experiments that have none of it in common can run at the same time. A phone that has no serial number in the
    lab file and shapes itself is locked twice; the second name has its serial number, which nobody knows before it is
    there, and is left out: the first one excludes the same runs.
    """
    use = experiment.lab
    return tuple(sorted({*driver_of(use.proxy).resources(use.proxy), *_of_lab(use)}))


def _of_lab(use: LabUse) -> Iterator[str]:
    if not use.real or use.file is None or use.settings is None:
        yield VIRTUAL_LAB
        return
    yield from use.driver.resources(use.phone, use.settings)
    itself = use.file.by_itself(use.phone)
    for machine in use.machines().values():
        if machine != itself:
            yield shaping_resource(reachable_driver_of(machine).where(machine))
