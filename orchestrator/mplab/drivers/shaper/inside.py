"""The shaper of a virtual lab with a router that it has booted."""

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
    """Hold a booted router, as a real one is held, and give it the phone's paths that it shapes.

    Args:
        phone: its name in the lab file.
        booted: the router.
        emulator: has the other paths, and probes all.
        directory: for the undo journal: what is in it ends with the lab.
        run_id: of the run, for messages to others.

    Raises:
        LabNotReadyError: it cannot be held.
    """
    machine = booted.machine
    with held_machines([machine], run_id=run_id, directory=directory / "undo") as held:
        paths = [(path, held[machine.name]) for path in machine.paths_of(phone)]
        shaped = AttachedShaper(phone, paths, emulator.probe)
        yield SplitShaper(emulator, shaped, [path.interface for path, _ in paths])
