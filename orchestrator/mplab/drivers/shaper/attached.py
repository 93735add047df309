"""`Shaper` for a phone whose paths are shaped by machines in a lab file: routers, servers, the phone itself."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Required, TypedDict

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.protocol import HeldMachine, PacketSelector, PathMeasurement
from mplab.format.path import OPEN, PathCondition
from mplab.userfiles.labs.labuse import NOT_SHAPED
from mplab.userfiles.labs.machines import AttachedPath

Prober = Callable[[Mapping[str, PathCondition]], Mapping[str, PathMeasurement]]


class ShapedPath(TypedDict, total=False):
    """State of one path of a phone, read from the machine that shapes it.

    If no condition is applied to the path, the dictionary has only the key `where`.

    Attributes:
        where: name of the machine that shapes the path: ``server proxy``.
        of: address and interface that select the shaped packets: ``10.0.0.2 at phy0-ap0``.
        up: condition of packets from the phone, as the machine reports it.
        down: condition of packets towards the phone, as the machine reports it.
    """

    where: Required[str]
    of: str
    up: Mapping[str, object]
    down: Mapping[str, object]


class AttachedShaper:
    """`Shaper` of one phone. Each path is shaped by the machine to which the lab file attaches the path.

    Several phones may share a machine.

    Args:
        phone: name of the phone in the lab file.
        paths: paths of this phone, each with the machine that shapes it and that this process already holds.
        prober: measures paths from this phone, end to end.
    """

    def __init__(self, phone: str, paths: Iterable[tuple[AttachedPath, HeldMachine]], prober: Prober) -> None:
        self._phone = phone
        self._prober = prober
        self._machines: dict[str, tuple[HeldMachine, PacketSelector]] = {}
        for path, machine in paths:
            selector = PacketSelector(path.at, mac=path.mac, ip=path.ip, at_phone=path.at_phone)
            self._machines[path.interface] = (machine, selector)
        self.kind = ", ".join(sorted({machine.method for machine in self._held()}))

    def apply(self, conditions: Mapping[str, PathCondition], *, seed: int, core_rtt_ms: float = 0.0) -> None:
        """Apply each path's condition at the machine that shapes the path.

        `seed` has an effect only if kernel and tc support it (Linux 6.7 or later); older kernels choose their own
        random numbers. A path without a machine accepts only the condition `OPEN` (no limit). A round-trip time behind
        the proxy (`core_rtt_ms`) is refused.

        Raises:
            LabNotReadyError: `core_rtt_ms` is not 0, a path without a machine has a condition other than `OPEN`, a
                machine cannot apply a condition, or the hold on a machine was lost and cannot be renewed.
            DeviceError: a machine refused a condition; the conditions of all paths of this phone are then removed.
                This error is also raised when a lost hold is renewed and earlier changes cannot be undone.
        """
        if core_rtt_ms:
            raise LabNotReadyError(
                f"{self._phone}: the shapers of this lab file cannot add a round-trip time behind the proxy"
            )
        for machine in self._held():
            machine.renew()
        try:
            for interface, condition in conditions.items():
                if interface in self._machines or condition != OPEN:
                    self.change(interface, condition, seed=seed)
        except Exception as error:
            try:
                self.clear()
            except Exception as further:  # the first error explains the problem
                error.add_note(f"not cleared: {further}")
            raise

    def change(self, interface: str, condition: PathCondition, *, seed: int | None = None) -> None:
        """Replace the condition of one path; `seed` None keeps the path's previous seed.

        Raises:
            LabNotReadyError: the path has no machine, or its machine cannot apply the condition.
            DeviceError: the machine refused; the path keeps its previous condition.
        """
        if interface not in self._machines:
            machines = ", ".join(sorted(self._machines))
            raise LabNotReadyError(f"{self._phone}: no machine of the lab file shapes {interface}, only {machines}")
        machine, selector = self._machines[interface]
        machine.shaping.shape(
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
        for interface, (machine, _) in self._machines.items():
            machine.shaping.unshape(self._key(interface))

    def state(self) -> Mapping[str, ShapedPath]:
        """Return the state of each path, by interface; the shaping machine's kernel reports the conditions."""
        self.check_alive()
        states = {machine.name: machine.shaping.state() for machine, _ in self._machines.values()}
        paths: dict[str, ShapedPath] = {}
        for interface, (machine, _) in self._machines.items():
            paths[interface] = {"where": machine.name}
            if (state := states[machine.name].get(self._key(interface))) is not None:
                paths[interface] |= {"of": state["of"], "up": state["up"], "down": state["down"]}
        return paths

    def where(self, interface: str) -> str:
        """Return name and method of the machine that shapes a path: ``server proxy (tc)``; or ``not shaped``."""
        if interface not in self._machines:
            return NOT_SHAPED
        machine, _ = self._machines[interface]
        return f"{machine.name} ({machine.method})"

    def warnings(self) -> list[str]:
        """Return the warnings of all machines: reasons why paths may differ from the requested conditions."""
        return [warning for machine in self._held() for warning in machine.warnings]

    def counters(self) -> Mapping[str, int]:
        """Return the packet and byte counters of all shaped paths: ``{"wlan0.up.packets_out": 12, …}``."""
        self.check_alive()
        counters = {machine.name: machine.shaping.counters() for machine, _ in self._machines.values()}
        return {
            f"{interface}.{name}": value
            for interface, (machine, _) in self._machines.items()
            for name, value in counters[machine.name].get(self._key(interface), {}).items()
        }

    def check_alive(self) -> None:
        """Raise DeviceError when this process no longer holds one of the machines; see `Alive.check_alive`."""
        for machine in self._held():
            machine.hold.check_alive()

    def probe(self, conditions: Mapping[str, PathCondition]) -> Mapping[str, PathMeasurement]:
        """Measure every path end to end, from the phone; return the measurements by interface."""
        self.check_alive()
        return self._prober(conditions)

    def _held(self) -> list[HeldMachine]:
        return list(dict.fromkeys(machine for machine, _ in self._machines.values()))
