"""The `Shaper` of a phone whose paths are shaped by machines of a lab file: routers, servers, the phone itself."""

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
    """What is applied to one path of the phone, and where; `where` alone: nothing is."""

    where: Required[str]
    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class AttachedShaper:
    """Shapes every path of one phone where the lab file says; several phones may share a place.

    Args:
        phone: its name in the lab file.
        paths: of this phone, each with the machine that shapes it and is held.
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
        """Make the conditions real on every path, on every place; all of them, or none.

        `seed` is used where kernel and tc take one (Linux 6.7); chance is the kernel's elsewhere.

        A path that is attached to no place can be left as it is alone.

        Raises:
            LabNotReadyError: a path that is shaped nowhere and is not left open, a condition that cannot be given
                there; a place that was lost and does not come back.
            DeviceError: one refused; nothing stays applied on any.
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
            except Exception as further:  # the first error is the one to explain
                error.add_note(f"not cleared: {further}")
            raise

    def change(self, interface: str, condition: PathCondition, *, seed: int | None = None) -> None:
        """Put one path under another condition; see `apply`."""
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
        """Take this phone's conditions away; those of other phones stay."""
        for interface, (place, _) in self._places.items():
            place.shaping.unshape(self._key(interface))

    def state(self) -> Mapping[str, ShapedPath]:
        """By interface: where, whose packets, and both directions as the kernel there says."""
        self.check_alive()
        states = {place.name: place.shaping.state() for place, _ in self._places.values()}
        found: dict[str, ShapedPath] = {}
        for interface, (place, _) in self._places.items():
            found[interface] = {"where": place.name}
            if (state := states[place.name].get(self._key(interface))) is not None:
                found[interface] |= {"of": state["of"], "up": state["up"], "down": state["down"]}
        return found

    def where(self, interface: str) -> str:
        """``server proxy (tc)``, ``not shaped``."""
        if interface not in self._places:
            return NOT_SHAPED
        place, _ = self._places[interface]
        return f"{place.name} ({place.method})"

    def warnings(self) -> list[str]:
        """See `Shaper`."""
        return [warning for place in self._held() for warning in place.warnings]

    def counters(self) -> Mapping[str, int]:
        """``"wlan0.up.packets_out"``, from the queues' own counters."""
        self.check_alive()
        counters = {place.name: place.shaping.counters() for place, _ in self._places.values()}
        return {
            f"{interface}.{name}": value
            for interface, (place, _) in self._places.items()
            for name, value in counters[place.name].get(self._key(interface), {}).items()
        }

    def check_alive(self) -> None:
        """Raise DeviceError when a place was lost: rebooted, unreachable, given back by itself."""
        for place in self._held():
            place.hold.check_alive()

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure every path end to end, from the phone."""
        self.check_alive()
        return self._prober(conditions)

    def _held(self) -> list[HeldMachine]:
        return list(dict.fromkeys(place for place, _ in self._places.values()))
