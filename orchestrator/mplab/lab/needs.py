"""What a lab file needs of this machine, next to what every lab needs."""

from mplab.base import programs
from mplab.base.programs import Program
from mplab.drivers.transport.mptcp import NO_SECOND_SUBFLOW
from mplab.lab.driver import phone_driver
from mplab.lab.router_vm.image import kernel_release
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
    if transport == "mptcp" and not facts.rooted:
        return f"phone '{use.phone}' is used without root: {NO_SECOND_SUBFLOW}"
    kernel = facts.kernel
    if transport != "mptcp" or kernel is None or kernel.kind == "upstream":
        return ""
    patched = f"{kernel.kind} {kernel.version}"
    has = "" if kernel.kind == "none" else f", only that of a kernel {patched}: proxies would not understand it"
    return f"{driver.called(use.phone, use.settings)} has no Multipath TCP of Linux 5.6{has}"


def describe_image() -> dict[str, str]:
    """Versions of what a virtual router is made of: kernel, tc, busybox, dropbear."""
    return {
        "kernel": kernel_release(),
        **{program.name: program.version() for program in (programs.TC, programs.BUSYBOX, programs.DROPBEAR)},
    }
