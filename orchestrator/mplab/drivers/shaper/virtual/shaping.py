"""The shaper of a lab with a virtual router."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.base import paths
from mplab.drivers.shaper.held import held_places
from mplab.drivers.shaper.linkem.emulator import LinkemShaper
from mplab.drivers.shaper.split import SplitShaper
from mplab.drivers.shaper.tc import TcShaper
from mplab.drivers.shaper.virtual.router import INTERFACES, VirtualRouter
from mplab.userfiles import lab as spec
from mplab.userfiles.labuse import LabUse


@contextmanager
def held_router(
    use: LabUse, router: VirtualRouter, emulator: LinkemShaper, *, directory: Path, run_id: str
) -> Iterator[SplitShaper]:
    """Hold the router, as a real one is held, and give the phone's paths behind it to its traffic control.

    Args:
        use: the lab file and its phone.
        router: booted.
        emulator: has the other paths, and probes all.
        directory: for the undo journal: what is in it ends with the lab.
        run_id: of the run, for messages to others.

    Raises:
        LabNotReadyError: it cannot be held.
    """
    lab = _as_real(use, router)
    phone = lab.phones[use.phone]
    with held_places(lab, [router.name], run_id=run_id, directory=directory / "undo") as held:
        yield SplitShaper(emulator, TcShaper(use.phone, phone, held, emulator.probe), phone.attachments())


def _as_real(use: LabUse, router: VirtualRouter) -> spec.LabFile:
    """The lab file that would say how this router is reached."""
    assert use.file is not None  # noqa: S101 - a virtual router stands in a lab file
    attached = {
        path: {"router": router.name, "interface": INTERFACES[interface]}
        for path, interface in paths.INTERFACES.items()
        if interface in use.places()
    }
    return use.file.model_copy(
        update={
            "routers": {router.name: router.settings},
            "phones": {use.phone: spec.PhoneFile.model_validate(attached)},
        }
    )
