"""Register the virtual phone: a node of the virtual lab, in which scenarios open browsers and run programs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.base.enter import check_namespaces
from mplab.base.errors import MplabError
from mplab.base.findings import Finding
from mplab.lab.driver import LabSettings, PhoneDriver
from mplab.userfiles.labs.lab import LabFile, PhoneFile
from mplab.userfiles.labs.phone import drivers_text, drivers_that
from mplab.userfiles.strict.check import Checker

if TYPE_CHECKING:
    from mplab.lab.protocol import Lab


class VirtualPhones(PhoneDriver):
    """Driver of virtual phones, each in a `VirtualLab`."""

    name = "virtual"
    title = "the virtual phone"
    settings = PhoneFile
    same_clock = True

    def open_lab(self, settings: LabSettings) -> "Lab":
        """Return the virtual lab, not yet started. See `PhoneDriver`."""
        with deferred("imported when a lab is opened"):
            from mplab.lab.phones.virtual.lab import VirtualLab
        return VirtualLab(settings)

    def check_use(self, lab: LabFile, name: str, checker: Checker) -> None:
        """Add a problem if no veth pair can connect the phone's network to the lab file's proxy. See `PhoneKind`."""
        unwired = drivers_text(drivers_that(lambda kind: kind.real))
        key, problem = lab.proxy.wiring_problem(name, unwired) if lab.proxy is not None else ("", "")
        if problem:
            checker.add(("proxy", key), problem)

    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check that this machine can run a node of the virtual lab; a virtual phone needs nothing else."""
        yield check_node(name)


def check_node(name: str) -> Finding:
    """Return a finding: whether this machine can run a phone in a node of the virtual lab."""
    subject = f"phone {name}"
    try:
        check_namespaces()
    except MplabError as error:
        return Finding(subject, "missing", str(error), "see the message")
    return Finding(subject, "ok", "virtual: 'mplab doctor' checks what it needs")


DRIVER = VirtualPhones()
