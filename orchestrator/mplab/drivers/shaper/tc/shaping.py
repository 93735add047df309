"""Shape paths on a held machine. A condition is applied completely or not at all, and verified by reading it back."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mplab.drivers.shaper.protocol import PacketSelector, PathState
from mplab.drivers.shaper.tc import readback, rules
from mplab.drivers.shaper.tc.capabilities import Capabilities, wanted_for
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.scripts import Scripts, Target, parse_shown
from mplab.drivers.shaper.tc.shell import MachineError, NotHeldError
from mplab.format.direction import Direction

_UNDO_SHAPING = "50-shaping"
"""Name of the undo script that removes all shaping. It runs first: undo runs in descending order of names."""


class Shaping:
    """`PathShaping` by the kernel's traffic control. A new object knows no shaped paths.

    Args:
        hold: exclusive right of this run to shape the machine.
        found: abilities of the machine.
    """

    def __init__(self, hold: Hold, found: Capabilities) -> None:
        self.found = found
        self._hold = hold
        self._scripts = Scripts(found, hold.state_directory)
        self._targets: dict[str, Target] = {}

    def forget(self) -> None:
        """Forget all shaped paths. Call it when their shaping has ended by other means, such as a reboot."""
        self._targets.clear()

    def shape(
        self, key: str, selector: PacketSelector, *, up: Direction, down: Direction, seed: int | None = None
    ) -> None:
        """Apply a condition to one phone's path and verify it; see `PathShaping`."""
        name = self._hold.name
        for direction, label in ((up, "up"), (down, "down")):
            rules.check_possible(direction, f"{name}, {key} {label}")
        self.found.require(name, *wanted_for((up, down)))
        before, others = self._targets.get(key), self._beside(key)
        if "seed" not in self.found.can:
            seed = None
        elif seed is None and before is not None:
            seed = before.seed
        if before is None:
            target = Target(self._free_number(), selector, up, down, seed)
            lines, put_back = self._scripts.new_lines(target, others), self._scripts.take_away(target, others)
        else:
            target = replace(before, up=up, down=down, seed=seed)
            lines, put_back = self._scripts.change_lines(before, target), self._scripts.rebuild(before)
        self._targets[key] = target
        script = self._scripts.shape(
            [*lines, *self._show_lines([target])],
            target.devices if before is None else (),
            note=self._hold.note_undo(_UNDO_SHAPING, self._scripts.unshape([*self._targets.values()])),
            put_back=put_back,
        )
        try:
            shown = self._hold.change(script, f"shaping of {selector}", lines)
            self._compare(target, shown, put_back)
        except MachineError:
            if before is None:
                del self._targets[key]
            else:
                self._targets[key] = before
            raise

    def _beside(self, key: str) -> list[Target]:
        return [target for known, target in self._targets.items() if known != key]

    def _free_number(self) -> int:
        taken = {target.number for target in self._targets.values()}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def unshape(self, key: str) -> None:
        """Remove one path's condition; do nothing if the path has none or this owner no longer holds the machine."""
        target = self._targets.pop(key, None)
        if target is not None:
            script = self._scripts.take_away(target, self._targets.values())
            with contextlib.suppress(NotHeldError):
                self._hold.change(script, f"opening {target.selector}")

    def _compare(self, target: Target, shown: str, put_back: str) -> None:
        """Compare the condition that tc shows (output of `Scripts.show_lines`) with the requested one.

        Raises:
            MachineError: the conditions differ; the script `put_back` has restored the previous state.
        """
        shaped = parse_shown(shown, [*target.devices])
        problems = []
        for device, direction in target.devices.items():
            requested = {
                "10:": f"netem {rules.netem_options(direction, target.seed_of(device))}",
                "20:": rules.queue_options(direction.queue),
            }
            rate_bps = rules.rate_kbps(direction) * 1000
            problems += [f"{device}: {text}" for text in readback.differences(requested, rate_bps, shaped[device])]
            if f"to device {device})" not in shown:
                problems.append(f"no filter to {device}")
        if problems:
            self._hold.change(put_back, "putting it back")
            raise MachineError(self._hold.name, f"{target.selector}: read back something else: {'; '.join(problems)}")

    def _show_lines(self, targets: Sequence[Target]) -> list[str]:
        return self._scripts.show_lines(_devices(targets), [target.selector.interface for target in targets])

    def _read(self) -> dict[str, readback.Shaped]:
        targets = [*self._targets.values()]
        if not targets:
            return {}
        shown = self._hold.shell.script(self._scripts.batch(self._show_lines(targets))).stdout
        return parse_shown(shown, _devices(targets))

    def state(self) -> dict[str, PathState]:
        """Return the applied conditions of all paths, by key of the path, as the machine reports them.

        Each direction has ``rate_bps`` and, by kind of qdisc, `readback.Qdisc.settings`.
        """
        read = self._read()
        states = {}
        for key, target in self._targets.items():
            up, down = (_way_state(read[device]) for device in target.devices)
            states[key] = PathState(of=str(target.selector), up=up, down=down)
        return states

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the packet and byte counters of all paths, by key of the path."""
        read = self._read()
        return {
            key: {
                f"{direction}.{name}": value
                for direction, device in zip(("up", "down"), target.devices, strict=True)
                for name, value in _counters(read[device]).items()
            }
            for key, target in self._targets.items()
        }


def _devices(targets: Iterable[Target]) -> list[str]:
    return [device for target in targets for device in target.devices]


def _way_state(shaped: readback.Shaped) -> dict[str, object]:
    qdiscs: dict[str, object] = {qdisc.kind: qdisc.settings for qdisc in shaped.qdiscs.values() if qdisc.kind != "htb"}
    return {"rate_bps": shaped.rate_bps, **qdiscs}


def _counters(shaped: readback.Shaped) -> Mapping[str, int]:
    """Return the counters of one direction of a path from the qdiscs of its ifb device.

    netem's counter `dropped` includes the packets that the queue below dropped; these packets are subtracted.
    """
    netem, queue, root = shaped.qdiscs["10:"], shaped.qdiscs["20:"], shaped.qdiscs["1:"]
    return {
        "packets_out": root.sent_packets,
        "bytes_out": root.sent_bytes,
        "dropped_loss": max(0, netem.dropped - queue.dropped),
        "dropped_queue": queue.dropped,
        "queue_packets": queue.waiting,
        "delayed_packets": max(0, netem.waiting - queue.waiting),
    }
