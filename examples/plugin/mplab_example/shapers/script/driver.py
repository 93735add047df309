"""The router kind ``script``: its owner's command shapes it, so it can be any machine.

The command is called with one word, ``shape`` or ``restore``. ``shape`` reads JSON from standard input: path name →
both directions, in the format of mplab's link emulator. ``restore`` restores the original state of the router.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.findings import Finding
from mplab.drivers.shaper.driver import MachineDriver
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.protocol import PacketSelector, PathState
from mplab.drivers.shaper.restore import restore_argv
from mplab.format.abilities import Abilities
from mplab.format.direction import Direction, Discipline
from mplab.userfiles.labs.machine_fields import InterfaceName, MachineFile
from mplab.userfiles.labs.machines import Section, ShapingMachine

DROP_TAIL: Discipline = "drop-tail"
_TIMEOUT_S = 30.0


class ScriptFile(MachineFile):
    """Entry of a router of the kind ``script`` in a lab file."""

    driver: Literal["script"] = Field(description="Shaped by a command.")
    command: tuple[str, ...] = Field(min_length=1, max_length=16, description="The command, without its last word.")
    interface: InterfaceName = Field(description="The router's interface towards the phones.")

    @property
    def shaped_interface(self) -> str:
        """Interface of the router that is shaped if a phone's path names no interface."""
        return self.interface


def call(label: str, settings: ScriptFile, word: str, content: object = None) -> None:
    """Run the router's command with the argument `word`, and with `content` as JSON on standard input.

    Raises:
        DeviceError: the command cannot be run, takes too long, or exits with a code other than 0.
    """
    argv = [*settings.command, word]
    try:
        result = subprocess.run(
            argv, input=json.dumps(content), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError(label, str(error), command=tuple(argv)) from error
    if result.returncode != 0:
        raise DeviceError(
            label, "the command failed", command=tuple(argv), exit_code_found=result.returncode, stderr=result.stderr
        )


@dataclass(eq=False)
class HeldScript:
    """A held router: `HeldMachine`, its `PathShaping` and its hold in one object.

    Attributes:
        name: name of the router in messages.
        settings: entry of the router in the lab file.
    """

    name: str
    settings: ScriptFile

    method = "script"

    def __post_init__(self) -> None:
        """Start without shaped paths."""
        self._paths: dict[str, PathState] = {}

    @property
    def warnings(self) -> list[str]:
        """A warning that the conditions which the command applied are not read back."""
        return ["what the router's command has done is not read back"]

    @property
    def shaping(self) -> "HeldScript":
        """This object, which also shapes paths."""
        return self

    @property
    def hold(self) -> "HeldScript":
        """This object, which is also the hold."""
        return self

    def shape(
        self, key: str, selector: PacketSelector, *, up: Direction, down: Direction, seed: int | None = None
    ) -> None:
        """Call the command with the conditions of all paths, including the new condition of path `key`."""
        path: PathState = {"of": str(selector), "up": up.to_linkem(), "down": down.to_linkem()}
        call(self.name, self.settings, "shape", {**self._paths, key: path})
        self._paths[key] = path

    def unshape(self, key: str) -> None:
        """Call the command with the conditions of all paths except `key`; do nothing if `key` is not shaped."""
        if self._paths.pop(key, None) is not None:
            call(self.name, self.settings, "shape", self._paths)

    def state(self) -> Mapping[str, PathState]:
        """Return the requested conditions by key of the path: the command reports none."""
        return self._paths

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return {}: the command counts no packets."""
        return {}

    def check_alive(self) -> None:
        """Do nothing: the command holds nothing that can be lost."""

    def renew(self) -> None:
        """Do nothing: the hold cannot be lost."""


class State:
    """`MachineState` of a router whose state is unknown."""

    def to_json(self) -> dict[str, object]:
        """Return {}: the state is unknown."""
        return {}

    def __str__(self) -> str:
        """Return a sentence that the state is unknown."""
        return "shaped by a command, which says nothing of its state"


class Script(MachineDriver[ScriptFile]):
    """`MachineDriver` of the router kind ``script``; the docstring of the module describes the command."""

    name = "script"
    title = "a router that a command shapes"
    section: Section = "routers"
    settings = ScriptFile
    method = "script"
    abilities = Abilities(title, disciplines=[DROP_TAIL], traces=False)

    def where(self, machine: ShapingMachine[ScriptFile]) -> str:
        """Return the router's command line, after which the lock of the router is named."""
        return " ".join(machine.settings.command)

    @contextmanager
    def hold(self, machine: ShapingMachine[ScriptFile], owner: Owner) -> Iterator[HeldScript]:
        """Lock the router during the context; at its end, restore the original state of the router.

        If this process is killed, a later process restores the state from the undo journal.
        """
        restore = [*restore_argv(machine.label, machine.kind, machine.settings), owner.token()]
        with owner.lock(self.where(machine)):
            owner.undo.register(
                f"{machine.label}: as it was found",
                lambda: call(machine.label, machine.settings, "restore"),
                commands=[restore],
            )
            yield HeldScript(machine.label, machine.settings)

    def uses(self, machine: ShapingMachine[ScriptFile]) -> str:
        """Return a phrase that names the command. Users read it before they allow the lab file."""
        return f"runs the command '{self.where(machine)}' on this machine"

    def restore(self, label: str, settings: ScriptFile, token: str) -> None:
        """Restore the original state of the router. The command knows no owner, so `token` has no effect."""
        call(label, settings, "restore")

    def give_back(self, machine: ShapingMachine[ScriptFile]) -> None:
        """Restore the original state of the router, even if another process holds it; see `MachineDriver`."""
        try:
            call(machine.label, machine.settings, "restore")
        except DeviceError as error:
            raise LabNotReadyError(str(error)) from error

    def show(self, machine: ShapingMachine[ScriptFile]) -> State:
        """Return a state without information about the router: the command reports none."""
        return State()

    def check(self, machine: ShapingMachine[ScriptFile], lab_file: str) -> Iterator[Finding]:
        """Yield one finding that names the command and the shaped interfaces; the command is not run."""
        yield Finding(machine.label, "ok", f"'{self.where(machine)}' shapes {', '.join(machine.interfaces)}")


DRIVER = Script()
