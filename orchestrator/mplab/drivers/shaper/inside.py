"""Shaper of a virtual lab that has booted a router."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.drivers.shaper.attached import AttachedShaper
from mplab.drivers.shaper.driver import BootedMachine
from mplab.drivers.shaper.held import held_machines
from mplab.drivers.shaper.protocol import Emulator
from mplab.drivers.shaper.split import SplitShaper


@contextmanager
def held_inside(
    phone: str, booted: BootedMachine, emulator: Emulator, *, directory: Path, run_id: str
) -> Iterator[SplitShaper]:
    """Hold a booted router like a real one, and shape the phone's paths on it.

    Args:
        phone: name of the phone in the lab file.
        booted: the router.
        emulator: shapes the paths that the router does not shape, and probes all paths.
        directory: folder for the undo journal; its content is obsolete when the lab ends.
        run_id: id of the run, shown to other users who want the router.

    Raises:
        LabNotReadyError: the router cannot be held.
    """
    machine = booted.machine
    with held_machines([machine], run_id=run_id, directory=directory / "undo") as held:
        paths = [(path, held[machine.name]) for path in machine.paths_of(phone)]
        shaped = AttachedShaper(phone, paths, emulator.probe)
        yield SplitShaper(emulator, shaped, [path.interface for path, _ in paths])
