"""What a lab file needs of this machine, beside what every lab needs."""

from orchestrator import programs
from orchestrator.lab.router_vm.image import kernel_release
from orchestrator.programs import Program
from orchestrator.spec.labuse import LabUse


def programs_of_lab(use: LabUse) -> list[Program]:
    """The programs that virtual routers are made of, when it has one.

    Raises:
        LabNotReadyError: the user-mode kernel is there, but its modules are not.
    """
    if not use.virtual_routers():
        return []
    if programs.UML.find() is not None:
        kernel_release()
    return list(programs.OF_VIRTUAL_ROUTER)


def describe_image() -> dict[str, str]:
    """Versions of what a virtual router is made of: kernel, tc, busybox, dropbear."""
    return {
        "kernel": kernel_release(),
        **{program.name: program.version() for program in (programs.TC, programs.BUSYBOX, programs.DROPBEAR)},
    }
