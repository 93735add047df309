"""Build, but do not run, the shell scripts that shape, unshape and show paths on a machine."""

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mplab.drivers.shaper.protocol import PacketSelector
from mplab.drivers.shaper.tc import readback, rules
from mplab.drivers.shaper.tc.capabilities import Capabilities
from mplab.drivers.shaper.tc.shell import quote
from mplab.format.direction import Direction

_PRIO, _PRIO_BESIDE_OTHERS = 1, 50_000
"""Priority of mplab's first filter. On an interface with filters of other programs, mplab's filters come last, so that
the other filters still work."""


_ROOT = re.compile(r"qdisc \S+ \S+ (dev \S+ )?root\b")


@dataclass(frozen=True)
class Target:
    """Requested shaping of one path of a phone on a machine.

    Attributes:
        number: number of the path on the machine, from 0; part of the names of its ifb devices.
        selector: packets to shape.
        up: condition of packets from the phone.
        down: condition of packets towards the phone.
        seed: seed for random numbers; None: the kernel chooses one.
    """

    number: int
    selector: PacketSelector
    up: Direction
    down: Direction
    seed: int | None

    @property
    def devices(self) -> dict[str, Direction]:
        """Name of each ifb device of the path → condition of the packets through it: first uplink, then downlink."""
        return {f"mplab{self.number}u": self.up, f"mplab{self.number}d": self.down}

    def seed_of(self, device: str) -> int | None:
        """Return the seed for the direction of one ifb device.

        The seeds of the two directions differ, so that they lose different packets.
        """
        return None if self.seed is None else zlib.crc32(f"{self.seed} {device[-1]}".encode())


class Scripts:
    """Builds the shell scripts that shape paths on one machine.

    Args:
        found: abilities of the machine.
        state_directory: folder on the machine for the batch file.
    """

    def __init__(self, found: Capabilities, state_directory: str) -> None:
        self._tc = found.tc
        self._shared = found.shared
        self._without_header = found.without_header
        self._directory = state_directory

    # --- Lines of tc -batch ---------------------------------------------------------------------------------------

    def new_lines(self, target: Target, others: Iterable[Target]) -> list[str]:
        """Return lines of `tc -batch` that shape a new path, whose ifb devices already exist.

        Args:
            target: the new path.
            others: paths that are already shaped on the machine.
        """
        lines = [line for device in target.devices for line in self._build_lines(target, device)]
        interface = target.selector.interface
        if interface not in {other.selector.interface for other in others} | self._shared:
            lines.append(f"qdisc add dev {interface} clsact")
        first = self._first_priority(interface)
        return lines + rules.filter_lines(target.selector, target.number, *target.devices, first=first)

    def change_lines(self, before: Target, after: Target) -> list[str]:
        """Return lines of `tc -batch` that change a shaped path from `before` to `after`."""
        return [
            line
            for device, direction in after.devices.items()
            for line in rules.change_lines(device, before.devices[device], direction, after.seed_of(device))
        ]

    def _build_lines(self, target: Target, device: str) -> list[str]:
        header = 0 if target.selector.interface in self._without_header else rules.ETHERNET_HEADER_BYTES
        return rules.build_lines(device, target.devices[device], target.seed_of(device), header_bytes=header)

    def _first_priority(self, interface: str) -> int:
        return _PRIO_BESIDE_OTHERS if interface in self._shared else _PRIO

    def show_lines(self, devices: Iterable[str], interfaces: Iterable[str]) -> list[str]:
        """Return lines of `tc -batch` that show ifb devices and the filters that lead to them.

        Qdiscs and classes of all `devices` are shown first, then the filters of all `interfaces`. All lines are one
        batch, because starting tc several times is slow on a small router.
        """
        return [
            *(f"{kind} show dev {device}" for device in devices for kind in ("qdisc", "class")),
            *(
                f"filter show dev {interface} {hook}"
                for hook in ("egress", "ingress")
                for interface in sorted(set(interfaces))
            ),
        ]

    # --- Scripts --------------------------------------------------------------------------------------------------

    def shape(self, lines: Sequence[str], new_devices: Iterable[str], *, note: str, put_back: str) -> str:
        """Return a script that makes `new_devices` and runs `lines`; if a step fails, it restores the previous state.

        The script runs to its end even if the connection is lost before; see `Shell.script`.

        Args:
            lines: lines of `tc -batch`.
            new_devices: names of ifb devices that the script makes before it runs `lines`.
            note: shell line that stores the undo script; see `Hold.note_undo`.
            put_back: script that restores the previous state.
        """
        return "\n".join(
            [
                f"put_back() {{\n{put_back}\n}}",
                note,
                *(
                    f"ip link add name {device} type ifb && ip link set dev {device} up || {{ put_back; return 1; }}"
                    for device in new_devices
                ),
                f"{self.batch(lines)} || {{ put_back; return 1; }}",
            ]
        )

    def batch(self, lines: Sequence[str], flags: str = "") -> str:
        """Return the shell command that runs `lines` as one tc batch with `flags`; it also prints counters (``-s``)."""
        file = f"{self._directory}/batch"
        return f"printf '%s' {quote(chr(10).join(lines) + chr(10))} >{file} && {self._tc} -s {flags}-batch {file}"

    def unshape(self, targets: Sequence[Target]) -> str:
        """Return a script that removes the shaping of all `targets`. The script fails if a device or `clsact` remains.

        Filters are removed first, so that they never lead to a missing device.
        """
        own = sorted({target.selector.interface for target in targets} - self._shared)
        shared = [target for target in targets if target.selector.interface in self._shared]
        devices = [device for target in targets for device in target.devices]
        left = "|".join(
            [*(f"clsact .*dev {re.escape(interface)} " for interface in own), *(f"dev {device} " for device in devices)]
        )
        return "\n".join(
            [
                *(f"{self._tc} qdisc del dev {interface} clsact 2>/dev/null" for interface in own),
                *(line for target in shared for line in self._filters_away(target)),
                *(f"ip link del {device} 2>/dev/null" for device in devices),
                f"! {self._tc} qdisc show | grep -qE {quote(left)}\n",
            ]
        )

    def _filters_away(self, target: Target) -> list[str]:
        interface = target.selector.interface
        return [
            f"{self._tc} filter del dev {interface} {hook} prio {prio} 2>/dev/null"
            for hook in ("ingress", "egress")
            for prio in rules.priorities(target.number, self._first_priority(interface))
        ]

    def rebuild(self, target: Target) -> str:
        """Return a script that makes all qdiscs of a path again, after a change that reached only some of them."""
        lines = [
            line
            for device in target.devices
            for line in (f"qdisc del dev {device} root", *self._build_lines(target, device))
        ]
        return f"{self.batch(lines, '-force ')} >/dev/null 2>&1\ntrue"

    def take_away(self, target: Target, others: Iterable[Target]) -> str:
        """Return a script that removes the shaping of one path and leaves that of `others` unchanged."""
        interface = target.selector.interface
        if interface not in {other.selector.interface for other in others} | self._shared:
            return self.unshape([target])
        return "\n".join(
            [
                *self._filters_away(target),
                *(f"ip link del {device} 2>/dev/null" for device in target.devices),
                "true",
            ]
        )


def parse_shown(text: str, devices: Sequence[str]) -> dict[str, readback.Shaped]:
    """Parse the output of `Scripts.show_lines`; return the qdiscs and rate of each ifb device.

    The output has one part per device, which begins with the device's root qdisc. If there are more or fewer parts than
    `devices`, the result of every device is empty.
    """
    parts: list[list[str]] = []
    for line in text.splitlines():
        if _ROOT.match(line):
            parts.append([])
        if parts:
            parts[-1].append(line)
    if len(parts) != len(devices):
        return {device: readback.Shaped() for device in devices}
    return {device: readback.parse_shaped("\n".join(part)) for device, part in zip(devices, parts, strict=True)}
