"""What a lab file needs of this machine, next to what every lab needs."""

from mplab.base import programs
from mplab.base.programs import Program
from mplab.drivers.shaper.virtual.image import kernel_release
from mplab.drivers.transport import DRIVERS
from mplab.lab.driver import phone_driver
from mplab.userfiles.labuse import LabUse


def programs_of_lab(use: LabUse) -> list[Program]:
    """Return the programs that its phone and virtual routers need.

    Raises:
        LabNotReadyError: the user-mode kernel is there, but its modules are not.
    """
    found = list(phone_driver(use.kind).programs(use.settings))
    if not use.virtual_routers():
        return found
    if programs.UML.find() is not None:
        kernel_release()
    return [*found, *programs.OF_VIRTUAL_ROUTER]


def missing_on_phone(use: LabUse, transport: str) -> str:
    """Return why the phone of a lab cannot run a transport, whatever this machine can, or ""."""
    driver = phone_driver(use.kind)
    facts = driver.facts(use.settings)
    missing = DRIVERS[transport].missing_on_phone(facts)
    called = driver.called(use.phone, use.settings) if facts.rooted else f"phone '{use.phone}'"
    return f"{called} {missing}" if missing else ""


def describe_image() -> dict[str, str]:
    """Versions of what a virtual router is made of: kernel, tc, busybox, dropbear."""
    return {
        "kernel": kernel_release(),
        **{program.name: program.version() for program in (programs.TC, programs.BUSYBOX, programs.DROPBEAR)},
    }
