"""List the programs that a lab file needs on this machine, in addition to those of every lab."""

from mplab.base.programs import Program
from mplab.drivers.shaper.driver import inside_driver_of
from mplab.drivers.transport import DRIVERS
from mplab.lab.driver import phone_driver
from mplab.userfiles.labuse import LabUse


def programs_of_lab(use: LabUse) -> list[Program]:
    """Return the programs that its phone and virtual routers need.

    Raises:
        LabNotReadyError: the programs of a virtual router are installed, but another of its parts is missing.
    """
    found = list(phone_driver(use.kind).programs(use.settings))
    for machine in use.inside().values():
        driver = inside_driver_of(machine)
        if all(program.find() is not None for program in driver.programs):
            driver.describe()
        found += driver.programs
    return found


def missing_on_phone(use: LabUse, transport: str) -> str:
    """Return why the phone of a lab cannot run a transport; "": it can. This machine is not checked."""
    driver = phone_driver(use.kind)
    facts = driver.facts(use.settings)
    missing = DRIVERS[transport].missing_on_phone(facts)
    called = driver.called(use.phone, use.settings) if facts.rooted else f"phone '{use.phone}'"
    return f"{called} {missing}" if missing else ""
