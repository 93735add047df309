"""Hold a machine, so that no other process can shape it, and explain why a hold was lost.

A heartbeat keeps the hold; its release undoes all changes.
"""

import re
import threading
from collections.abc import Sequence

import structlog

from mplab.base.errors import LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.drivers.shaper.tc import guard
from mplab.drivers.shaper.tc.shell import ConnectionLostError, MachineError, NotHeldError, Shell, check_result, quote

_log = structlog.get_logger(__name__)

_BEATS_PER_LIMIT = 4
_NO_LONGER_OURS = 77
_REBOOTED = "was rebooted while it shaped: nothing is shaped any more"


class Hold:
    """Exclusive right of this run to shape a router, server or phone.

    If the heartbeat of this object stops, the dead-man's switch on the machine undoes all changes and ends the hold.

    Args:
        name: name of the machine in messages: ``router wifi``.
        shell: root shell on the machine.
        state_directory: folder on the machine for owner, heartbeat and undo scripts.
        owner: name of the hold, from `Owner.token`; shown to other processes.
        dead_man_s: time without heartbeat after which the machine undoes all changes itself, s.
        watches_itself: True: `take` starts the dead-man's switch, which runs only during the hold. False: the switch
            is installed on the machine and runs always.
    """

    def __init__(
        self,
        name: str,
        shell: Shell,
        state_directory: str,
        owner: str,
        *,
        dead_man_s: float,
        watches_itself: bool = True,
    ) -> None:
        self.name = name
        self.shell = shell
        self.state_directory = state_directory
        self.owner = owner
        self._dead_man_s = dead_man_s
        self._watches_itself = watches_itself
        self._boot = ""
        self._lost = ""
        self._dropped = ""
        """Reason for the loss of the connection, or ""; `check_alive` then reconnects to examine the machine."""
        self._given_back = False
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    def take(self) -> None:
        """Become the only process that can shape the machine and its kernel (see `guard`); start the heartbeat.

        If the previous owner is silent for too long, its changes are undone first.

        Raises:
            LabNotReadyError: another owner holds the machine, or no file can be written there; nothing was changed.
            MachineError: earlier changes cannot be undone.
        """
        self._given_back = False
        watch = [guard.SCRIPT.read_text(encoding="utf-8")] if self._watches_itself else []
        result = self._guard("take", self.owner, f"{self._dead_man_s:.0f}", *watch)
        if result.exit_code == guard.NOT_OURS:
            holder = guard.holder(self.shell, self.state_directory)
            raise LabNotReadyError(f"{self.name}: {holder}: {guard.WAIT}")
        if result.exit_code == guard.NOT_WRITABLE:
            why = result.stderr.strip().rpartition("\n")[2]
            raise LabNotReadyError(f"{self.name}: {why}. Free some space there, then try again")
        if result.exit_code != 0:
            raise MachineError(
                self.name, "changes of an earlier run could not be undone", stderr=result.stderr or result.stdout
            )
        note = self.note_undo(guard.KERNEL_UNDO_NAME, guard.release_script(self.owner))
        claimed = self.shell.script(f"{note}\n{guard.claim_script(self.owner, self.name)}", check=False)
        if claimed.exit_code == guard.KERNEL_HELD:
            self.give_back()
            raise LabNotReadyError(f"{self.name}: {guard.kernel_refusal(claimed.stdout, self.owner)}")
        check_result(self.name, claimed, "claim of the kernel")
        self._boot = self._boot_now()
        self._keep()

    def _guard(self, action: str, *arguments: str) -> CommandResult:
        return guard.call(self.shell, self.state_directory, action, *arguments, check=False)

    def give_back(self) -> None:
        """Release the machine: stop the heartbeat and undo all changes; reconnect when the connection is lost.

        Does nothing if the machine was already released.

        Raises:
            MachineError: a change could not be undone.
            LabNotReadyError: the machine cannot be reached; its dead-man's switch undoes all changes.
        """
        self.stop_beating()
        if self._given_back:
            return
        try:
            result = self._guard("restore", self.owner)
        except MachineError:  # connection lost: try once more over a new one
            self.shell.connect()
            result = self._guard("restore", self.owner)
        if result.exit_code not in {0, guard.NOT_OURS}:
            raise MachineError(
                self.name, "a change could not be undone", exit_code_found=result.exit_code, stderr=result.stderr
            )
        self._given_back = True

    # --- The heartbeat --------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        self._lost = self._dropped = ""
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, args=(self._stop,), name=f"{self.name} heart", daemon=True)
        self._heart.start()

    def stop_beating(self) -> None:
        """Stop the heartbeat, but do not release the machine."""
        self._stop.set()
        if self._heart is not None:
            self._heart.join()

    def _beat(self, stop: threading.Event) -> None:
        every_s = self._dead_man_s / _BEATS_PER_LIMIT
        while not stop.wait(every_s):
            try:
                self._check_held()
            except ConnectionLostError as error:
                self._dropped = str(error)
                return
            except MachineError as error:
                self._lost = str(error)
                return

    def _check_held(self) -> None:
        result = self._guard("beat", self.owner)
        if result.exit_code == guard.NOT_OURS:
            raise NotHeldError(self.name, self._why_not_ours())
        if result.exit_code != 0:
            raise MachineError(self.name, "the heartbeat failed", stderr=result.stderr)
        if guard.STARTED_AGAIN in result.stdout:
            _log.warning("its dead-man's switch had died and was started again", machine=self.name)

    # --- Why it was lost ------------------------------------------------------------------------------------------

    @property
    def seems_lost(self) -> bool:
        """True when this run has released the machine, or has already noticed that the hold or the connection is lost.

        Reading this property does not contact the machine.
        """
        return bool(self._lost or self._dropped) or self._given_back or not self.shell.alive

    def check_alive(self) -> None:
        """Raise MachineError when this run has lost its hold on the machine since `take`; the message has the cause.

        The machine has then rebooted, is unreachable, or was released by its dead-man's switch.
        """
        if self._lost:
            raise MachineError(self.name, self._lost.removeprefix(f"{self.name}: "))
        if not self._dropped:
            try:
                self._check_held()
            except ConnectionLostError as error:
                self._dropped = str(error)
            except MachineError as error:
                self._lost = str(error)  # now: the caller may hold the machine again before the next heartbeat
                raise
        if self._dropped:
            self._explain_loss()

    def _why_not_ours(self) -> str:
        if self._boot_now() != self._boot:
            return _REBOOTED
        limit = f"{self._dead_man_s:g} s"
        return f"has removed all shaping itself: no heartbeat for {limit} (dead-man's switch)"

    def _explain_loss(self) -> None:
        """Reconnect to find out whether the machine was rebooted, is unreachable, or lost only its connection.

        Raises:
            MachineError: always; the message has the result.
        """
        try:
            self.shell.connect()
            boot = self._boot_now()
        except LabNotReadyError as error:
            text = str(error).removeprefix(f"{self.name} ({self.shell.where}): ")
            raise MachineError(self.name, f"lost while shaping: {text}") from error
        if boot != self._boot:
            raise MachineError(self.name, _REBOOTED)
        why = self._dropped.removeprefix(f"{self.name}: ")
        raise MachineError(self.name, f"the connection was lost while shaping, and is back: {why}")

    def _boot_now(self) -> str:
        return self.shell.script("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    # --- Changes while it is held ---------------------------------------------------------------------------------

    def note_undo(self, name: str, script: str) -> str:
        """Return a shell line that stores `script` on the machine, as undo of a change that the caller makes next.

        Undo scripts run in descending order of `name`.
        """
        file = f"{self.state_directory}/undo.d/{name}"
        return f"printf '%s' {quote(script)} >{file}.new && mv {file}.new {file} || return 1"

    def change(self, script: str, change_name: str, lines: Sequence[str] = ()) -> str:
        """Run a script that changes the machine, but only if this run still holds the machine; return its output.

        Args:
            script: script that first stores its undo (`note_undo`).
            change_name: name of the change for the error message.
            lines: lines of the tc batch in the script, so that the error can show the refused line.

        Raises:
            NotHeldError: this run no longer holds the machine.
            MachineError: the script failed, or the connection was lost.
        """
        ours = (
            f"owner=; read -r _ owner 2>/dev/null <{self.state_directory}/owner; "
            f'[ "$owner" = {quote(self.owner)} ] || return {_NO_LONGER_OURS}'
        )
        result = self.shell.script(f"{ours}\n{script}", check=False)
        if result.exit_code == _NO_LONGER_OURS:
            raise NotHeldError(self.name, self._why_not_ours())
        if result.exit_code != 0:
            match = re.search(r"Command failed \S+:(\d+)", result.stderr)
            where = f" at '{lines[int(match[1]) - 1]}'" if match and int(match[1]) <= len(lines) else ""
            raise MachineError(
                self.name,
                f"{change_name} was refused{where}, all of it was undone",
                exit_code_found=result.exit_code,
                stderr=result.stderr or result.stdout,
            )
        return result.stdout
