"""What only one run at a time may use, by the names under which it is locked (`mplab.base.lock`)."""

from collections.abc import Iterator

from mplab.drivers.shaper.owner import shaping_resource
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import LabUse

VIRTUAL_LAB = "virtual-lab"
"""One of this machine's virtual labs at a time: they would take each other's processors."""


def phone_resource(name: str, serial: str | None) -> str:
    """A real phone: its serial number, or its name in the lab file when it is the only one there."""
    return f"phone {serial or name}"


def containers_resource(project: str, url: str) -> str:
    """The containers of a compose project on an engine."""
    return f"docker {project} at {url}"


def resources_of(experiment: Experiment) -> tuple[str, ...]:
    """Everything that a run of `experiment` locks beside its own run directory, sorted.

    Two experiments that have none of it in common can run at the same time. A phone that has no serial number in the
    lab file and shapes itself is locked twice; the second name has its serial number, which nobody knows before it is
    there, and is left out: the first one excludes the same runs.
    """
    return tuple(sorted({*_of_containers(experiment.lab), *_of_lab(experiment.lab)}))


def _of_containers(use: LabUse) -> Iterator[str]:
    if use.proxy is not None:
        from mplab.drivers.proxy.docker.engine import engine_url  # noqa: PLC0415 - Docker's client is slow to import

        yield containers_resource(use.proxy.project, engine_url(use.proxy.engine or ""))


def _of_lab(use: LabUse) -> Iterator[str]:
    if not use.real or use.file is None or use.settings is None:
        yield VIRTUAL_LAB
        return
    yield from use.driver.resources(use.phone, use.settings)
    from mplab.drivers.shaper.held import open_shell  # noqa: PLC0415 - SSH is slow to import

    places = use.file.places()
    for attachment in use.settings.attachments().values():
        name = attachment.place(use.phone)
        if name in places:
            yield shaping_resource(open_shell(name, places[name]).where)
