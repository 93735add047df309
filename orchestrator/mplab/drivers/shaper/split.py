"""`Shaper` for a phone whose paths are shaped at several places."""

from collections.abc import Collection, Mapping

from mplab.base.errors import check_each
from mplab.drivers.shaper.protocol import PathMeasurement, Shaper
from mplab.format.path import OPEN, PathCondition


class SplitShaper:
    """Link emulator, with traffic control for some of the paths.

    The emulator bridges those paths without a condition. It always delays the core behind the proxy and sends all
    probes.

    Args:
        emulator: shapes the other paths.
        tc: shapes the paths of `interfaces`.
        interfaces: of the phone.
    """

    def __init__(self, emulator: Shaper, tc: Shaper, interfaces: Collection[str]) -> None:
        self._emulator = emulator
        self._tc = tc
        self._interfaces = frozenset(interfaces)
        self.kind = f"{emulator.kind}, {tc.kind}"

    def _of(self, interface: str) -> Shaper:
        return self._tc if interface in self._interfaces else self._emulator

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """See `Shaper`."""
        emulated = {i: OPEN if i in self._interfaces else path for i, path in conditions.items()}
        self._emulator.apply(emulated, seed=seed, core_rtt_ms=core_rtt_ms)
        self._tc.apply({i: path for i, path in conditions.items() if i in self._interfaces}, seed=seed)

    def change(self, interface: str, condition: PathCondition) -> None:
        """See `Shaper`."""
        self._of(interface).change(interface, condition)

    def clear(self) -> None:
        """See `Shaper`; clears the emulator even when traffic control cannot be cleared."""
        try:
            self._tc.clear()
        finally:
            self._emulator.clear()

    def state(self) -> Mapping[str, object]:
        """Return the state of both, by kind."""
        return {self._emulator.kind: self._emulator.state(), self._tc.kind: self._tc.state()}

    def where(self, interface: str) -> str:
        """See `Shaper`."""
        return self._of(interface).where(interface)

    def warnings(self) -> list[str]:
        """See `Shaper`."""
        return [*self._emulator.warnings(), *self._tc.warnings()]

    def counters(self) -> Mapping[str, int]:
        """Return the emulator's counters of all paths, and those of traffic control: ``"tc.wlan0.up.packets_out"``."""
        return {
            **self._emulator.counters(),
            **{f"{self._tc.kind}.{name}": value for name, value in self._tc.counters().items()},
        }

    def check_alive(self) -> None:
        """See `Shaper`."""
        check_each([self._emulator.check_alive, self._tc.check_alive])

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """See `Shaper`."""
        self._tc.check_alive()
        return self._emulator.probe(conditions)
