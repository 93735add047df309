"""`Shaper` for a phone with two shapers: a booted router shapes some paths, the link emulator shapes the others."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mplab.base.errors import check_each
from mplab.drivers.shaper.attached import AttachedShaper
from mplab.drivers.shaper.driver import BootedMachine
from mplab.drivers.shaper.owner import held_machines
from mplab.drivers.shaper.protocol import Emulator, PathMeasurement, Shaper
from mplab.format.path import OPEN, PathCondition


class SplitShaper:
    """Shapes some paths by traffic control (tc) and all other paths by the link emulator.

    The emulator forwards the paths of `tc` without a condition. The emulator also adds the delay between proxy and
    servers and sends the probes for all paths.

    Args:
        emulator: shapes the paths that are not in `interfaces`.
        tc: shapes the paths in `interfaces`.
        interfaces: interfaces of the phone whose paths `tc` shapes.
    """

    def __init__(self, emulator: Shaper, tc: Shaper, interfaces: Collection[str]) -> None:
        self._emulator = emulator
        self._tc = tc
        self._interfaces = frozenset(interfaces)
        self.kind = f"{emulator.kind}, {tc.kind}"

    def _of(self, interface: str) -> Shaper:
        return self._tc if interface in self._interfaces else self._emulator

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply each condition at the shaper of its path, and `core_rtt_ms` at the emulator; see `Shaper`."""
        emulated = {i: OPEN if i in self._interfaces else path for i, path in conditions.items()}
        self._emulator.apply(emulated, seed=seed, core_rtt_ms=core_rtt_ms)
        self._tc.apply({i: path for i, path in conditions.items() if i in self._interfaces}, seed=seed)

    def change(self, interface: str, condition: PathCondition) -> None:
        """Replace the condition of one path at the shaper of that path; see `Shaper`."""
        self._of(interface).change(interface, condition)

    def clear(self) -> None:
        """Remove all conditions from both shapers; clear the emulator even when traffic control cannot be cleared."""
        try:
            self._tc.clear()
        finally:
            self._emulator.clear()

    def state(self) -> Mapping[str, object]:
        """Return the states of the emulator and of traffic control, by kind of shaper."""
        return {self._emulator.kind: self._emulator.state(), self._tc.kind: self._tc.state()}

    def where(self, interface: str) -> str:
        """Return the name of the emulator or machine that shapes the path."""
        return self._of(interface).where(interface)

    def warnings(self) -> list[str]:
        """Return the warnings of both shapers: reasons why paths may differ from the requested conditions."""
        return [*self._emulator.warnings(), *self._tc.warnings()]

    def counters(self) -> Mapping[str, int]:
        """Return the counters of both shapers; those of traffic control have names like ``tc.wlan0.up.packets_out``."""
        return {
            **self._emulator.counters(),
            **{f"{self._tc.kind}.{name}": value for name, value in self._tc.counters().items()},
        }

    def check_alive(self) -> None:
        """Raise DeviceError when one of the two shapers has ended or was lost."""
        check_each([self._emulator.check_alive, self._tc.check_alive])

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure all paths by the emulator's probes; return the measurements by interface."""
        self._tc.check_alive()
        return self._emulator.probe(conditions)


@contextmanager
def held_inside(
    phone: str, booted: BootedMachine, emulator: Emulator, *, directory: Path, run_id: str
) -> Iterator[SplitShaper]:
    """Hold a booted router like a real one during the context; yield a shaper that uses it for the phone's paths.

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
