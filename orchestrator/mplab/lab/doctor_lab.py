"""Check the routers, servers and phones of a lab file, one finding each, with a remedy if something is missing."""

from collections.abc import Iterator

from mplab.base.findings import Finding
from mplab.drivers.proxy import driver_of as proxy_driver_of
from mplab.drivers.shaper.driver import driver_of
from mplab.lab.driver import phone_driver
from mplab.userfiles.lab import LabFile


def examine_lab(lab: LabFile, lab_file: str) -> Iterator[Finding]:
    """Check every router, server and phone of a lab; yield each finding immediately. Changes nothing.

    Args:
        lab: the lab file.
        lab_file: path of the lab file, for remedies.
    """
    machines = lab.machines().values()
    for machine in machines:
        if machine.section == "routers":
            yield from driver_of(machine).check(machine, lab_file)
    for name, phone in lab.phones.items():
        if phone.driver is not None:
            yield from phone_driver(phone.driver).check(lab, name, lab_file)
    for machine in machines:
        if machine.section != "routers":
            yield from driver_of(machine).check(machine, lab_file)
    if lab.proxy is not None:
        yield from proxy_driver_of(lab.proxy).check(lab.proxy, lab_file)
