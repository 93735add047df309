"""What shapes (a router, a server, a phone), held by this run: shaped, watched, and given back as it was found."""

import contextlib
import os
import platform
import re
import sys
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, ClassVar, Self

import structlog
from pydantic import BaseModel

from orchestrator.errors import DeviceError, LabNotReadyError
from orchestrator.lock import resource_lock
from orchestrator.phone import CommandResult
from orchestrator.programs import CHECKOUT
from orchestrator.shaper.tc import guard, readback, rules
from orchestrator.shaper.tc.capabilities import Capabilities, look, wanted_for
from orchestrator.shaper.tc.rules import Direction, Selector
from orchestrator.shaper.tc.shell import ConnectionLostError, PlaceError, Shell, quote
from orchestrator.undo import UndoStack

_BEATS_PER_LIMIT = 4
_LONGEST_NAME = 60
_UNDO_SHAPING = "50-shaping"
"""Undone first: in falling order of names."""
_PRIO, _PRIO_BESIDE_OTHERS = 1, 50_000
"""Of our first filter; beside those of others ours come last, so that theirs go on doing what they did."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Target:
    """One phone's path here."""

    number: int
    selector: Selector
    up: Direction
    down: Direction
    seed: int | None

    @property
    def devices(self) -> dict[str, Direction]:
        """ifb device → what it does."""
        return {f"mplab{self.number}u": self.up, f"mplab{self.number}d": self.down}

    def seed_of(self, device: str) -> int | None:
        """The directions lose different packets."""
        return None if self.seed is None else zlib.crc32(f"{self.seed} {device[-1]}".encode())


class Place:
    """A router, server or phone for as long as its context: nobody else may shape it meanwhile.

    Args:
        name: for messages: ``router wifi``.
        shell: on it.
        interface: that is shaped where the lab file names none; "": it always does.
        interfaces: that will be shaped; default: `interface`.
        dead_man_s: silence after which it takes everything back by itself.
        restore_command: gives it back from another process; the owner's name is added.
        run_id: of the run, for messages to others.
        undo: where every change registers its undo before it is made.
    """

    openwrt: ClassVar[bool] = False
    state_directory: ClassVar[str]
    """Folder for notes there."""
    watches_itself: ClassVar[bool] = True
    """Nothing is installed: the dead-man's switch runs from when it is taken until it is given back."""

    def __init__(
        self,
        name: str,
        shell: Shell,
        *,
        interface: str = "",
        interfaces: Sequence[str] = (),
        dead_man_s: float,
        restore_command: Sequence[str],
        undo: UndoStack,
        run_id: str = "",
    ) -> None:
        self.name = name
        self.shell = shell
        self.interface = interface
        self._interfaces = tuple(dict.fromkeys(interfaces or (interface,)))
        self._dead_man_s = dead_man_s
        self._undo = undo
        self._owner = f"{run_id or 'mplab'}@{platform.node()}:{os.getpid()}:{time.time_ns()}"
        self._restore_command = [*restore_command, self._owner]
        self._run_id = run_id
        self._stack = contextlib.ExitStack()
        self._targets: dict[str, _Target] = {}
        self._found: Capabilities | None = None
        self._lost = ""
        self._dropped = False
        self._given_back = False
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    # --- What kinds of places differ in ---------------------------------------------------------------------------

    def _check_ready(self) -> None:
        """Before it is held; raises LabNotReadyError."""

    def _prepare_held(self) -> None:
        """What is changed as long as it is held, with notes of how it is taken back."""

    @property
    def found(self) -> Capabilities:
        """What it can do."""
        if self._found is None:
            raise PlaceError(self.name, "not connected")
        return self._found

    def __enter__(self) -> Self:
        """Connect, look, hold it, and start the heartbeat.

        Raises:
            LabNotReadyError: it cannot be reached, cannot shape, or is somebody else's; nothing was changed.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(resource_lock(_lock_name(self.shell.where), run_id=self._run_id))
            self.shell.connect()
            stack.callback(self.shell.close)
            try:
                self._prepare(stack)
            except DeviceError as error:
                raise LabNotReadyError(str(error)) from error
            self._stack = stack.pop_all()
        return self

    def _prepare(self, stack: contextlib.ExitStack) -> None:
        self._check_ready()
        taken = self._hold()
        stack.callback(self._let_go)
        if not taken:
            raise LabNotReadyError(f"{self.name}: {self._held_by()}: wait for it, or run 'mplab router restore'")
        self._found = look(self.shell, self._interfaces, openwrt=self.openwrt)
        if problems := list(self.found.problems()):
            raise LabNotReadyError(f"{self.name}: {'; '.join(problems)}")
        self._undo.register(f"{self.name}: as it was found", self.restore, commands=[self._restore_command])
        stack.callback(self._stop_beating)
        self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything back, let go, disconnect."""
        self._stack.__exit__(kind, error, trace)

    # --- Holding it ----------------------------------------------------------------------------------------------

    def _hold(self) -> bool:
        watch = [guard.SCRIPT.read_text(encoding="utf-8")] if self.watches_itself else []
        done = self._guard("take", self._owner, f"{self._dead_man_s:.0f}", *watch)
        if done.exit_code not in {0, guard.NOT_OURS}:
            raise PlaceError(
                self.name, "what an earlier run has left could not be taken back", stderr=done.stderr or done.stdout
            )
        return done.exit_code == 0

    def _held_by(self) -> str:
        return str(guard.holder(self.shell, self.state_directory))

    def _guard(self, action: str, *arguments: str) -> CommandResult:
        return guard.call(self.shell, self.state_directory, action, *arguments, check=False)

    def _let_go(self) -> None:
        if self._found is None and self.shell.alive:  # never got as far as registering its undo
            self._guard("restore", self._owner)
            return
        try:
            self.restore()
        except (DeviceError, LabNotReadyError) as error:
            _log.error("not given back", place=self.name, error=str(error))

    def restore(self) -> None:
        """Take every change back; connects again when the connection is lost.

        Raises:
            PlaceError: something could not be taken back.
            LabNotReadyError: it cannot be reached; its dead-man's switch takes all back.
        """
        if self._given_back:
            return
        self._targets.clear()
        try:
            done = self._guard("restore", self._owner)
        except PlaceError:  # lost: once more over a new connection
            self.shell.connect()
            done = self._guard("restore", self._owner)
        if done.exit_code not in {0, guard.NOT_OURS}:
            raise PlaceError(
                self.name, "something could not be taken back", exit_code_found=done.exit_code, stderr=done.stderr
            )
        self._given_back = True

    def renew(self) -> None:
        """Hold it anew after it was lost (SSH dropped, rebooted, given back by itself); does nothing when it was not.

        Nothing is shaped then.

        Raises:
            LabNotReadyError: it cannot be reached, or is somebody else's now.
            PlaceError: what is left on it cannot be taken back.
        """
        if not self._lost and not self._dropped and self.shell.alive:
            return
        self._stop_beating()
        self.restore()
        if not self._hold():
            raise LabNotReadyError(f"{self.name}: {self._held_by()}")
        self._found = look(self.shell, self._interfaces, openwrt=self.openwrt)
        self._begin()

    def _begin(self) -> None:
        """After `_hold` and `look`: what lasts as long as it is held."""
        self._given_back, self._lost, self._dropped = False, "", False
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, args=(self._stop,), name=f"{self.name} heart", daemon=True)
        self._heart.start()
        self._prepare_held()

    def _stop_beating(self) -> None:
        self._stop.set()
        if self._heart is not None:
            self._heart.join()

    def _beat(self, stop: threading.Event) -> None:
        every_s = self._dead_man_s / _BEATS_PER_LIMIT
        while not stop.wait(every_s):
            try:
                self._check_held()
            except ConnectionLostError:
                self._dropped = True  # why, `check_alive` finds out
                return
            except PlaceError as error:
                self._lost = str(error)
                return

    def _check_held(self) -> None:
        done = self._guard("beat", self._owner)
        if done.exit_code == guard.NOT_OURS:
            raise PlaceError(self.name, self._why_not_ours())
        if done.exit_code != 0:
            raise PlaceError(self.name, "the heartbeat failed", stderr=done.stderr)

    def _why_not_ours(self) -> str:
        boot = self.shell.script("cat /proc/sys/kernel/random/boot_id").stdout.strip()
        if boot != self.found.boot:
            return "was rebooted in the middle: nothing is shaped any more"
        limit = f"{self._dead_man_s:g} s"
        return f"has taken the shaping back by itself: it had not heard from us for {limit} (dead-man's switch)"

    def check_alive(self) -> None:
        """Raise PlaceError when it was lost since it was taken: rebooted, unreachable, given back by itself."""
        if self._lost:
            raise PlaceError(self.name, self._lost.removeprefix(f"{self.name}: "))
        if not self._dropped:
            try:
                self._check_held()
            except ConnectionLostError:
                self._dropped = True
        if self._dropped:
            self._explain_loss()

    def _explain_loss(self) -> None:
        """The connection is lost: was it a reboot, or is it gone? Always raises PlaceError."""
        try:
            self.shell.connect()
            boot = self.shell.script("cat /proc/sys/kernel/random/boot_id").stdout.strip()
        except LabNotReadyError as error:
            text = str(error).removeprefix(f"{self.name} ({self.shell.where}): ")
            raise PlaceError(self.name, f"lost while shaping: {text}") from error
        if boot != self.found.boot:
            raise PlaceError(self.name, "was rebooted in the middle: nothing is shaped any more")
        raise PlaceError(self.name, "the connection was lost while shaping, and is back")

    def _note_undo(self, name: str, script: str) -> str:
        """The shell line that notes there how a change that follows is taken back."""
        file = f"{self.state_directory}/undo.d/{name}"
        return f"printf '%s' {quote(script)} >{file}.new && mv {file}.new {file} || return 1"

    def _change_script(self, script: str, what: str, lines: Sequence[str] = ()) -> str:
        """Run a script that changes something, when it is still ours; its output.

        `lines` are those of a batch in it, so that the error can show the one that was refused.
        """
        ours = (
            f'[ "$(sed "s/^[0-9]* //" {self.state_directory}/owner 2>/dev/null)" = {quote(self._owner)} ] || return 77'
        )
        done = self.shell.script(f"{ours}\n{script}", check=False)
        if done.exit_code == 77:
            raise PlaceError(self.name, self._why_not_ours())
        if done.exit_code != 0:
            match = re.search(r"Command failed \S+:(\d+)", done.stderr)
            where = f" at '{lines[int(match[1]) - 1]}'" if match and int(match[1]) <= len(lines) else ""
            raise PlaceError(
                self.name,
                f"{what} was refused{where}, nothing of it stays",
                exit_code_found=done.exit_code,
                stderr=done.stderr or done.stdout,
            )
        return done.stdout

    # --- Shaping -------------------------------------------------------------------------------------------------

    def shape(self, key: str, selector: Selector, *, up: Direction, down: Direction, seed: int | None = None) -> None:
        """Put one phone's path under a condition: all of it or nothing, read back.

        Args:
            key: what the path is called here: ``phone-1.wlan0``.
            selector: whose packets; must be the same for the same key.
            up: from the phone.
            down: towards it.
            seed: of what is chance, where kernel and tc take one (Linux 6.7); None: as it was before.

        Raises:
            LabNotReadyError: it cannot do this.
            PlaceError: it refused, or does not what it was told; this path is then as it was before.
        """
        for direction, way in ((up, "up"), (down, "down")):
            rules.check_possible(direction, f"{self.name}, {key} {way}")
        self.found.require(self.name, *wanted_for((up, down)))
        before = self._targets.get(key)
        if "seed" not in self.found.can:
            seed = None
        elif seed is None and before is not None:
            seed = before.seed
        if before is None:
            number = next(n for n in range(len(self._targets) + 1) if n not in self._numbers())
            target = _Target(number, selector, up, down, seed)
            lines = self._new_lines(target)
        else:
            target = replace(before, up=up, down=down, seed=seed)
            lines = [
                line
                for device, direction in target.devices.items()
                for line in rules.change_lines(device, before.devices[device], direction, target.seed_of(device))
            ]
        self._targets[key] = target
        put_back = self._take_away_script(target) if before is None else self._rebuild_script(before)
        try:
            script = f"{self._shape_script(target, lines, before, put_back)}\n{self._read_script([*target.devices])}"
            self._compare(target, self._change_script(script, f"shaping of {selector}", lines), put_back)
        except PlaceError:
            if before is None:
                del self._targets[key]
            else:
                self._targets[key] = before
            raise

    def _numbers(self) -> set[int]:
        return {target.number for target in self._targets.values()}

    def _new_lines(self, target: _Target) -> list[str]:
        lines = [line for device in target.devices for line in self._build_lines(target, device)]
        interface = target.selector.interface
        used = {known.selector.interface for known in self._targets.values()}
        if interface not in used | self.found.shared:
            lines.append(f"qdisc add dev {interface} clsact")
        first = self._first_priority(interface)
        return lines + rules.filter_lines(target.selector, target.number, *target.devices, first=first)

    def _build_lines(self, target: _Target, device: str) -> list[str]:
        header = 0 if target.selector.interface in self.found.without_header else rules.ETHERNET_HEADER_BYTES
        return rules.build_lines(device, target.devices[device], target.seed_of(device), header_bytes=header)

    def _first_priority(self, interface: str) -> int:
        return _PRIO_BESIDE_OTHERS if interface in self.found.shared else _PRIO

    def _shape_script(self, target: _Target, lines: Sequence[str], before: _Target | None, put_back: str) -> str:
        """All of it, or there itself back to what was before: also when the connection is lost meanwhile."""
        return "\n".join(
            [
                f"put_back() {{\n{put_back}\n}}",
                self._note_undo(_UNDO_SHAPING, self._unshape_script([*self._targets.values()])),
                *(
                    f"ip link add name {device} type ifb && ip link set dev {device} up || {{ put_back; return 1; }}"
                    for device in target.devices
                    if before is None
                ),
                f"{self._batch(lines)} || {{ put_back; return 1; }}",
            ]
        )

    def _batch(self, lines: Sequence[str], flags: str = "") -> str:
        """The shell command that has tc run `lines`."""
        file = f"{self.state_directory}/batch"
        return f"printf '%s' {quote(chr(10).join(lines) + chr(10))} >{file} && {self.found.tc} {flags}-batch {file}"

    def _unshape_script(self, targets: Sequence[_Target]) -> str:
        """Takes `targets` away: filters first, so that no packet is sent to a device that is gone."""
        tc = self.found.tc
        own = sorted({target.selector.interface for target in targets} - self.found.shared)
        shared = [target for target in targets if target.selector.interface in self.found.shared]
        devices = [device for target in targets for device in target.devices]
        left = "|".join(
            [*(f"clsact .*dev {re.escape(interface)} " for interface in own), *(f"dev {device} " for device in devices)]
        )
        return "\n".join(
            [
                *(f"{tc} qdisc del dev {interface} clsact 2>/dev/null" for interface in own),
                *(line for target in shared for line in self._filters_away(target)),
                *(f"ip link del {device} 2>/dev/null" for device in devices),
                f"! {tc} qdisc show | grep -qE {quote(left)}\n",
            ]
        )

    def _filters_away(self, target: _Target) -> list[str]:
        interface = target.selector.interface
        return [
            f"{self.found.tc} filter del dev {interface} {way} prio {prio} 2>/dev/null"
            for way in ("ingress", "egress")
            for prio in rules.priorities(target.number, self._first_priority(interface))
        ]

    def _rebuild_script(self, target: _Target) -> str:
        """Builds the devices of a path, whose change was refused half-way, again as they were."""
        lines = [
            line
            for device in target.devices
            for line in (f"qdisc del dev {device} root", *self._build_lines(target, device))
        ]
        return f"{self._batch(lines, '-force ')} >/dev/null 2>&1\ntrue"

    def _take_away_script(self, target: _Target) -> str:
        """Takes one path away and leaves the others as they are."""
        interface = target.selector.interface
        others = [
            other
            for other in self._targets.values()
            if other.selector.interface == interface and other.number != target.number
        ]
        if not others and interface not in self.found.shared:
            return self._unshape_script([target])
        return "\n".join(
            [
                *self._filters_away(target),
                *(f"ip link del {device} 2>/dev/null" for device in target.devices),
                "true",
            ]
        )

    def unshape(self, key: str) -> None:
        """Take one path's condition away; the others stay. Does nothing for a path that has none."""
        target = self._targets.pop(key, None)
        if target is None:
            return
        self._change_script(self._take_away_script(target), f"opening {target.selector}")

    def _compare(self, target: _Target, shown: str, put_back: str) -> None:
        """Raise PlaceError, after `put_back`, when the router does something else than it was told."""
        shaped = _parse_shown(shown)
        problems = []
        for device, direction in target.devices.items():
            asked = {
                "10:": f"netem {rules.netem_options(direction, target.seed_of(device))}",
                "20:": rules.queue_options(direction),
            }
            rate = (direction.get("rate_kbps") or rules.UNLIMITED_KBPS) * 1000
            problems += [f"{device}: {text}" for text in readback.differences(asked, rate, shaped[device])]
            if f"to device {device})" not in shown:
                problems.append(f"no filter to {device}")
        if problems:
            self._change_script(put_back, "putting it back")
            raise PlaceError(self.name, f"{target.selector}: read back something else: {'; '.join(problems)}")

    def _read_script(self, devices: Sequence[str]) -> str:
        """Shows qdiscs and classes of ifb devices, and the filters that lead to them."""
        tc = self.found.tc
        interfaces = sorted({target.selector.interface for target in self._targets.values()})
        return "\n".join(
            [
                *(
                    f"echo '== {device}'; {tc} -s qdisc show dev {device}; echo --; {tc} class show dev {device}"
                    for device in devices
                ),
                "echo '== filters'",
                *(f"{tc} filter show dev {interface} egress" for interface in interfaces),
                *(f"{tc} filter show dev {interface} ingress" for interface in interfaces),
            ]
        )

    def _read(self) -> dict[str, readback.Shaped]:
        devices = [device for target in self._targets.values() for device in target.devices]
        return _parse_shown(self.shell.script(self._read_script(devices)).stdout)

    def state(self) -> dict[str, Any]:
        """What is applied now, by path and direction, as the kernel there says."""
        self.check_alive()
        read = self._read()
        return {
            key: {
                "of": str(target.selector),
                **{
                    way: {
                        "rate_bps": read[device].rate_bps,
                        **{qdisc.kind: qdisc.settings for qdisc in read[device].qdiscs.values() if qdisc.kind != "htb"},
                    }
                    for way, device in zip(("up", "down"), target.devices, strict=True)
                },
            }
            for key, target in self._targets.items()
        }

    def counters(self) -> dict[str, dict[str, int]]:
        """By path: ``{"up.packets_out": 12, …}``."""
        read = self._read()
        return {
            key: {
                f"{way}.{name}": value
                for way, device in zip(("up", "down"), target.devices, strict=True)
                for name, value in _counters(read[device]).items()
            }
            for key, target in self._targets.items()
        }


def _lock_name(where: str) -> str:
    """A command line may be longer than a file's name."""
    return f"shaping {where if len(where) <= _LONGEST_NAME else zlib.crc32(where.encode())}"


def _parse_shown(text: str) -> dict[str, readback.Shaped]:
    """What `_read_script` shows, by ifb device."""
    found = {}
    for part in text.split("== ")[1:]:
        device, _, shown = part.partition("\n")
        qdiscs, _, classes = shown.partition("--\n")
        found[device.strip()] = readback.parse_shaped(qdiscs, classes)
    return found


def _counters(shaped: readback.Shaped) -> Mapping[str, int]:
    """`dropped` of netem counts what the queue below it dropped, too."""
    netem, queue, root = shaped.qdiscs["10:"], shaped.qdiscs["20:"], shaped.qdiscs["1:"]
    return {
        "packets_out": root.sent_packets,
        "bytes_out": root.sent_bytes,
        "dropped_loss": max(0, netem.dropped - queue.dropped),
        "dropped_queue": queue.dropped,
        "queue_packets": queue.waiting,
        "delayed_packets": max(0, netem.waiting - queue.waiting),
    }


def restore_argv(name: str, kind: str, settings: BaseModel) -> list[str]:
    """The command line that gives a place back from another process, but for the owner's name.

    Args:
        name: for messages.
        kind: ``router``, ``server`` or ``phone``.
        settings: its entry in the lab file.
    """
    return [
        *("env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", "orchestrator.shaper.restore"),
        *(name, kind, settings.model_dump_json()),
    ]
