"""Name the resources that only one run at a time may use; they are locked by name (`mplab.base.lock`)."""

from collections.abc import Iterator

from mplab.drivers.proxy import driver_of
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.owner import shaping_resource
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.labs.labuse import LabUse

VIRTUAL_LAB = "virtual-lab"
"""Lock of this machine's virtual labs: two at a time would compete for the processors."""


def resources_of(experiment: Experiment) -> tuple[str, ...]:
    """Return the sorted names of the locks that a run of `experiment` takes; the run directory's is not included.

    Two experiments without a common name can run at the same time. A phone that shapes its own paths has a second lock,
    named by its serial number. If the lab file does not set the serial number, this name is left out: the phone's first
    lock excludes the same runs.
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
