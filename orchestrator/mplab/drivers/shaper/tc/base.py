"""Base class of the drivers for machines that shape by traffic control and are reached by a root shell."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Generic

from mplab.base.errors import LabNotReadyError, MplabError
from mplab.base.findings import Finding, Level
from mplab.drivers.shaper.driver import MachineDriver, MachineState, Settings
from mplab.drivers.shaper.tc import guard
from mplab.drivers.shaper.tc.capabilities import check_shaping, find_capabilities
from mplab.drivers.shaper.tc.shell import ShellT, connected
from mplab.format.abilities import Abilities
from mplab.userfiles.labs.machines import ShapingMachine

TC = Abilities(
    "traffic control (an OpenWrt router, a Linux server, a phone)",
    disciplines=("drop-tail", "codel", "fq_codel", "cake"),
    traces=False,
)
"""Abilities of machines that shape by traffic control (docs/routers.md); `mplab doctor` reports missing ones."""


class TcDriver(MachineDriver[Settings], Generic[Settings, ShellT]):
    """Base class of the drivers for machines with Linux, iproute2 and a root shell.

    Attributes:
        state_directory: folder on the machine in which mplab stores owner, heartbeat and undo scripts.
        without_ethtool: level of the finding in ``mplab doctor`` when the machine has no ``ethtool``.
    """

    method = "tc"
    abilities = TC
    state_directory: ClassVar[str]
    without_ethtool: ClassVar[Level] = "missing"

    @abstractmethod
    def shell(self, label: str, settings: Settings) -> ShellT:
        """Return an unconnected root shell on the machine; `label` is the machine's name in messages."""

    def key_problem(self, _settings: Settings) -> str:
        """Return why the SSH key in the settings cannot be used; "" if it can be used or the settings name no key."""
        return ""

    def where(self, machine: ShapingMachine[Settings]) -> str:
        """Return the address of the machine's root shell; see `MachineDriver`."""
        return self.shell(machine.label, machine.settings).where

    def restore(self, label: str, settings: Settings, token: str) -> None:
        """Release a machine whose holder has died, if the hold named `token` still exists; see `MachineDriver`."""
        with connected(self.shell(label, settings)) as shell:
            result = guard.call(shell, self.state_directory, "restore", token, check=False)
        if result.exit_code not in {0, guard.NOT_OURS}:
            raise LabNotReadyError(result.stderr.strip() or f"{label}: not released: exit code {result.exit_code}")

    def give_back(self, machine: ShapingMachine[Settings]) -> None:
        """Undo all changes on the machine and release it, even if another process holds it; see `MachineDriver`."""
        with connected(self.shell(machine.label, machine.settings)) as shell:
            result = guard.call(shell, self.state_directory, "restore", check=False)
        if result.exit_code != 0:
            raise LabNotReadyError(f"{machine.label}: a change could not be undone: {result.stderr.strip()}")

    def show(self, machine: ShapingMachine[Settings]) -> MachineState:
        """Return the process that holds the machine, as the machine reports it; see `MachineDriver`."""
        with connected(self.shell(machine.label, machine.settings)) as shell:
            return guard.holder(shell, self.state_directory)

    def check(self, machine: ShapingMachine[Settings], lab_file: str) -> Iterator[Finding]:
        """Yield findings about the login key, the connection and the abilities of one machine; see `EntryDriver`."""
        if problem := self.key_problem(machine.settings):
            yield Finding(f"{machine.label}: key", "missing", problem, "see 'key' in the lab file")
            return
        try:
            with connected(self.shell(machine.label, machine.settings)) as shell:
                yield from self.check_connected(shell, machine, lab_file)
        except MplabError as error:
            yield Finding(machine.label, "missing", str(error), "see the message")

    def check_connected(self, shell: ShellT, machine: ShapingMachine[Settings], lab_file: str) -> Iterator[Finding]:
        """Yield findings about a machine over its connected root shell.

        Raises:
            MplabError: the machine no longer answers.
        """
        label = machine.label
        yield Finding(label, "ok", f"{shell.where} answers")
        user = shell.script("id -u").stdout.strip()
        if user != "0":
            yield Finding(f"{label}: root", "missing", f"user {user} is not root", "log in as root, or 'sudo: true'")
            return
        held = guard.holder(shell, self.state_directory)
        if held.owner:
            remedy = f"mplab router restore {lab_file} --router {machine.name}"
            yield Finding(f"{label}: in use", "warning", str(held), remedy)
        yield from check_shaping(find_capabilities(shell, machine.interfaces), label)
        if shell.script("command -v ethtool", check=False).exit_code != 0:
            yield Finding(
                f"{label}: ethtool",
                self.without_ethtool,
                "not installed: packets that the kernel joins are delayed and lost as one",
                "install the package ethtool" if self.without_ethtool == "missing" else "",
            )
