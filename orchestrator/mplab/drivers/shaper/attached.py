"""`Shaper` for a phone whose paths are shaped by machines in a lab file: routers, servers, the phone itself."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Required, TypedDict

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.protocol import HeldMachine, PathMeasurement, Selector
from mplab.format.path import OPEN, PathCondition
from mplab.userfiles.labuse import NOT_SHAPED
from mplab.userfiles.machines import AttachedPath

Prober = Callable[[Mapping[str, PathCondition]], Mapping[str, PathMeasurement]]


class ShapedPath(TypedDict, total=False):
    """State of one path. If only `where` is set, the path is not shaped.

    Attributes:
        where: name of the machine that shapes the path.
        of, up, down: see `PathState`.
    """

    where: Required[str]
    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class AttachedShaper:
    """Shapes each path of one phone on the machine to which the lab file attaches the path.

    In this module, the *place* of a path is this held machine. Several phones may share a place.

    Args:
        phone: name of the phone in the lab file.
        paths: paths of this phone, each with the held machine that shapes it.
        prober: measures paths from this phone, end to end.
    """

    def __init__(self, phone: str, paths: Iterable[tuple[AttachedPath, HeldMachine]], prober: Prober) -> None:
        self._phone = phone
        self._prober = prober
        self._places: dict[str, tuple[HeldMachine, Selector]] = {}
        for path, machine in paths:
            selector = Selector(path.at, mac=path.mac, ip=path.ip, at_phone=path.at_phone)
            self._places[path.interface] = (machine, selector)
        self.kind = ", ".join(sorted({place.method for place in self._held()}))

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply the conditions to every path at its place: all of them, or none.

        `seed` has an effect only if kernel and tc support it (Linux 6.7 or later); older kernels choose their own
        random numbers. A path without a place accepts only the condition `OPEN`. A round-trip time behind the proxy
        (`core_rtt_ms`) is refused.

        Raises:
            LabNotReadyError: `core_rtt_ms` is not 0, a path without a place has a condition other than `OPEN`, a place
                cannot apply a condition, or the hold on a place was lost and cannot be renewed.
            DeviceError: a place refused. No condition stays applied.
        """
        if core_rtt_ms:
            raise LabNotReadyError(
                f"{self._phone}: a round-trip time behind the proxy cannot be added by what is in front of it"
            )
        for place in self._held():
            place.renew()
        try:
            for interface, condition in conditions.items():
                if interface in self._places or condition != OPEN:
                    self.change(interface, condition, seed=seed)
        except Exception as error:
            try:
                self.clear()
            except Exception as further:  # the first error explains the problem
                error.add_note(f"not cleared: {further}")
            raise

    def change(self, interface: str, condition: PathCondition, *, seed: int | None = None) -> None:
        """Apply another condition to one path.

        Raises:
            LabNotReadyError: the path has no place, or its place cannot apply the condition.
            DeviceError: the place refused; the path keeps its previous condition.
        """
        if interface not in self._places:
            places = ", ".join(sorted(self._places))
            raise LabNotReadyError(f"{self._phone}: {interface} is shaped nowhere: the lab file has {places}")
        place, selector = self._places[interface]
        place.shaping.shape(
            self._key(interface),
            selector,
            up=condition.up,
            down=condition.down,
            seed=None if seed is None else zlib.crc32(f"{seed} {interface}".encode()),
        )

    def _key(self, interface: str) -> str:
        return f"{self._phone}.{interface}"

    def clear(self) -> None:
        """Remove the conditions of this phone's paths; the conditions of other phones stay."""
        for interface, (place, _) in self._places.items():
            place.shaping.unshape(self._key(interface))

    def state(self) -> Mapping[str, ShapedPath]:
        """Map interface → place, selector, and the conditions that the kernel of the place reports."""
        self.check_alive()
        states = {place.name: place.shaping.state() for place, _ in self._places.values()}
        found: dict[str, ShapedPath] = {}
        for interface, (place, _) in self._places.items():
            found[interface] = {"where": place.name}
            if (state := states[place.name].get(self._key(interface))) is not None:
                found[interface] |= {"of": state["of"], "up": state["up"], "down": state["down"]}
        return found

    def where(self, interface: str) -> str:
        """Return the name of a path's place for reports: ``server proxy (tc)``; or ``not shaped``."""
        if interface not in self._places:
            return NOT_SHAPED
        place, _ = self._places[interface]
        return f"{place.name} ({place.method})"

    def warnings(self) -> list[str]:
        """See `Shaper`."""
        return [warning for place in self._held() for warning in place.warnings]

    def counters(self) -> Mapping[str, int]:
        """Return the counters of the queues: ``"wlan0.up.packets_out"``."""
        self.check_alive()
        counters = {place.name: place.shaping.counters() for place, _ in self._places.values()}
        return {
            f"{interface}.{name}": value
            for interface, (place, _) in self._places.items()
            for name, value in counters[place.name].get(self._key(interface), {}).items()
        }

    def check_alive(self) -> None:
        """Raise DeviceError when the hold on a place was lost; see `Alive.check_alive`."""
        for place in self._held():
            place.hold.check_alive()

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure every path end to end, from the phone."""
        self.check_alive()
        return self._prober(conditions)

    def _held(self) -> list[HeldMachine]:
        return list(dict.fromkeys(place for place, _ in self._places.values()))
