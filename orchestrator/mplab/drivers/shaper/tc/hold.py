"""Holding what shapes: taken, kept by a heartbeat, given back as it was found; and why it was lost."""

import re
import threading
from collections.abc import Sequence

import structlog

from mplab.base.errors import LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.drivers.shaper.tc import guard, kernel
from mplab.drivers.shaper.tc.shell import ConnectionLostError, NotHeldError, PlaceError, Shell, check_result, quote

_log = structlog.get_logger(__name__)

_BEATS_PER_LIMIT = 4
_NO_LONGER_OURS = 77
_REBOOTED = "was rebooted in the middle: nothing is shaped any more"


class Hold:
    """This run's hold on a router, server or phone; its dead-man's switch ends it when we go silent.

    Args:
        name: for messages: ``router wifi``.
        shell: on it.
        state_directory: folder for notes there.
        owner: a new name (`Owner.token`), by which others see who holds it.
        dead_man_s: silence after which it takes everything back by itself.
        watches_itself: nothing is installed: the dead-man's switch runs from when it is taken until it is given back.
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
        """Why the connection is lost; what became of the place, `check_alive` finds out."""
        self._given_back = False
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    def take(self) -> None:
        """Hold it, and its kernel, and send the heartbeat from now on. What a silent owner left is taken back first.

        Raises:
            LabNotReadyError: it is somebody else's; nothing was changed.
            PlaceError: what is left on it cannot be taken back.
        """
        self._given_back = False
        watch = [guard.SCRIPT.read_text(encoding="utf-8")] if self._watches_itself else []
        done = self._guard("take", self.owner, f"{self._dead_man_s:.0f}", *watch)
        if done.exit_code == guard.NOT_OURS:
            holder = guard.holder(self.shell, self.state_directory)
            raise LabNotReadyError(f"{self.name}: {holder}: {guard.WAIT}")
        if done.exit_code == guard.NOT_WRITABLE:
            why = done.stderr.strip().rpartition("\n")[2]
            raise LabNotReadyError(f"{self.name}: {why}. Free some space there, then try again")
        if done.exit_code != 0:
            raise PlaceError(
                self.name, "what an earlier run has left could not be taken back", stderr=done.stderr or done.stdout
            )
        note = self.note_undo(kernel.UNDO_NAME, kernel.release_script(self.owner))
        claimed = self.shell.script(f"{note}\n{kernel.claim_script(self.owner, self.name)}", check=False)
        if claimed.exit_code == kernel.HELD:
            self.give_back()
            raise LabNotReadyError(f"{self.name}: {kernel.refusal(claimed.stdout, self.owner)}")
        check_result(self.name, claimed, "claim of the kernel")
        self._boot = self._boot_now()
        self._keep()

    def _guard(self, action: str, *arguments: str) -> CommandResult:
        return guard.call(self.shell, self.state_directory, action, *arguments, check=False)

    def give_back(self) -> None:
        """End the heartbeat, and take every change back; connects again when the connection is lost.

        Does nothing when that was done already.

        Raises:
            PlaceError: something could not be taken back.
            LabNotReadyError: it cannot be reached; its dead-man's switch takes all back.
        """
        self.stop_beating()
        if self._given_back:
            return
        try:
            done = self._guard("restore", self.owner)
        except PlaceError:  # lost: once more over a new connection
            self.shell.connect()
            done = self._guard("restore", self.owner)
        if done.exit_code not in {0, guard.NOT_OURS}:
            raise PlaceError(
                self.name, "something could not be taken back", exit_code_found=done.exit_code, stderr=done.stderr
            )
        self._given_back = True

    # --- The heartbeat --------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        self._lost = self._dropped = ""
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, args=(self._stop,), name=f"{self.name} heart", daemon=True)
        self._heart.start()

    def stop_beating(self) -> None:
        """End the heartbeat."""
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
            except PlaceError as error:
                self._lost = str(error)
                return

    def _check_held(self) -> None:
        done = self._guard("beat", self.owner)
        if done.exit_code == guard.NOT_OURS:
            raise NotHeldError(self.name, self._why_not_ours())
        if done.exit_code != 0:
            raise PlaceError(self.name, "the heartbeat failed", stderr=done.stderr)
        if guard.STARTED_AGAIN in done.stdout:
            _log.warning("its dead-man's switch had died and was started again", place=self.name)

    # --- Why it was lost ------------------------------------------------------------------------------------------

    @property
    def seems_lost(self) -> bool:
        """Whether it is known already that it was lost, or given back."""
        return bool(self._lost or self._dropped) or self._given_back or not self.shell.alive

    def check_alive(self) -> None:
        """Raise PlaceError when it was lost since it was taken: rebooted, unreachable, given back by itself."""
        if self._lost:
            raise PlaceError(self.name, self._lost.removeprefix(f"{self.name}: "))
        if not self._dropped:
            try:
                self._check_held()
            except ConnectionLostError as error:
                self._dropped = str(error)
            except PlaceError as error:
                self._lost = str(error)  # the heartbeat would find it out later: it is to be held anew before that
                raise
        if self._dropped:
            self._explain_loss()

    def _why_not_ours(self) -> str:
        if self._boot_now() != self._boot:
            return _REBOOTED
        limit = f"{self._dead_man_s:g} s"
        return f"has taken the shaping back by itself: it had not heard from us for {limit} (dead-man's switch)"

    def _explain_loss(self) -> None:
        """The connection is lost: was it a reboot, or is it gone? Always raises PlaceError."""
        try:
            self.shell.connect()
            boot = self._boot_now()
        except LabNotReadyError as error:
            text = str(error).removeprefix(f"{self.name} ({self.shell.where}): ")
            raise PlaceError(self.name, f"lost while shaping: {text}") from error
        if boot != self._boot:
            raise PlaceError(self.name, _REBOOTED)
        why = self._dropped.removeprefix(f"{self.name}: ")
        raise PlaceError(self.name, f"the connection was lost while shaping, and is back: {why}")

    def _boot_now(self) -> str:
        return self.shell.script("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    # --- Changes while it is held ---------------------------------------------------------------------------------

    def note_undo(self, name: str, script: str) -> str:
        """The shell line that notes there how a change that follows is taken back; in falling order of names."""
        file = f"{self.state_directory}/undo.d/{name}"
        return f"printf '%s' {quote(script)} >{file}.new && mv {file}.new {file} || return 1"

    def change(self, script: str, what: str, lines: Sequence[str] = ()) -> str:
        """Run a script that changes something, when it is still ours; its output.

        Args:
            script: notes first how it is taken back (`note_undo`).
            what: of which the error says that it was refused.
            lines: of a batch in it, so that the error can show the one that was refused.

        Raises:
            NotHeldError: it is not ours any more.
            PlaceError: refused.
        """
        ours = (
            f"owner=; read -r _ owner 2>/dev/null <{self.state_directory}/owner; "
            f'[ "$owner" = {quote(self.owner)} ] || return {_NO_LONGER_OURS}'
        )
        done = self.shell.script(f"{ours}\n{script}", check=False)
        if done.exit_code == _NO_LONGER_OURS:
            raise NotHeldError(self.name, self._why_not_ours())
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
