"""Everything that a lab file names, checked one by one, each with what to do when it is not there."""

from collections.abc import Iterator

from mplab.base.findings import Finding
from mplab.drivers.proxy.docker.settings import ProxyFile
from mplab.drivers.shaper.driver import driver_of
from mplab.lab.driver import phone_driver
from mplab.userfiles.lab import LabFile


def examine_lab(lab: LabFile, lab_file: str) -> Iterator[Finding]:
    """Check every router, server and phone of a lab, yielding each finding as it is made; changes nothing.

    Args:
        lab: what the file says.
        lab_file: its name, for what to do.
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
        yield from _proxy(lab.proxy, lab_file)


def _proxy(settings: ProxyFile, lab_file: str) -> Iterator[Finding]:
    """What `mplab proxy doctor` finds; services that do not run are started by runs."""
    from mplab.drivers.proxy.docker import DockerStack, StackSettings  # noqa: PLC0415 - slow to import
    from mplab.drivers.proxy.docker.doctor import examine  # noqa: PLC0415

    for finding in examine(DockerStack(StackSettings.of(settings))):
        remedy = "" if finding.ok else f"mplab proxy doctor --lab {lab_file}"
        yield Finding(f"proxy: {finding.what}", "ok" if finding.ok else "missing", finding.found, remedy)
