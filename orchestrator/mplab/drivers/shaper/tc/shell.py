"""`Shell`, the protocol of a root shell on a machine, and shells opened by a command line (``sudo``, ``adb … su``)."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.machine import CommandResult

COMMAND_TIMEOUT_S = 30.0
_END = "mplab-script-ended"


class MachineError(DeviceError):
    """A router, server or phone did not apply a command, or can no longer be reached."""


class NotHeldError(MachineError):
    """This run no longer holds the machine (dead-man's switch or reboot), so the run's conditions are not applied."""


class ConnectionLostError(MachineError):
    """The machine no longer answers over an existing connection."""


class Shell(Protocol):
    """A POSIX shell that runs as root: busybox ash, dash, bash, mksh."""

    name: str
    """Name of the machine, for messages: ``router wifi``."""

    @property
    def where(self) -> str:
        """Address of the machine: ``root@192.168.1.1:22``."""

    @property
    def alive(self) -> bool:
        """True unless the connection is known to be lost."""

    def connect(self) -> None:
        """Connect, or reconnect after a loss.

        Raises:
            LabNotReadyError: the machine cannot be reached, or does not accept the login as root.
        """

    def script(
        self, text: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a script and wait for it. The script starts only when it has arrived completely.

        The text becomes the body of a shell function, so a `return` ends the script. A script that has started runs to
        its end even if the connection is lost.

        Raises:
            ConnectionLostError: the connection is lost, or the script did not end within `timeout_s`.
            MachineError: the shell is not connected; with `check`: the script failed.
        """

    def close(self) -> None:
        """Close the connection."""


ShellT = TypeVar("ShellT", bound=Shell)


@contextmanager
def connected(shell: ShellT) -> Iterator[ShellT]:
    """Connect a shell for the duration of the context. Raises LabNotReadyError when `Shell.connect` fails."""
    shell.connect()
    try:
        yield shell
    finally:
        shell.close()


def whole_script(text: str, arguments: Sequence[str]) -> str:
    """Return a script and its arguments as the standard input of a shell.

    The shell runs the script only after it has read the last line.
    """
    quoted = " ".join(quote(argument) for argument in arguments)
    return f"mplab_script() {{\ntrap '' HUP PIPE\n{text}\n}}\nmplab_script {quoted} </dev/null\n"


def check_result(name: str, result: CommandResult, command: str) -> CommandResult:
    """Return the result of a command unchanged. Raises MachineError when its exit code is not 0."""
    if result.exit_code != 0:
        raise MachineError(
            name,
            "a command failed",
            command=(command,),
            exit_code_found=result.exit_code,
            stderr=result.stderr or result.stdout,
        )
    return result


class CommandShell:
    """`Shell` opened by a command line: ``sudo -n`` on this host, ``adb -s SERIAL shell su -c`` for a phone.

    Old versions of `adb` and some versions of `su` lose the exit code, so each script prints its exit code at the end.

    Args:
        name: name of the machine in messages.
        argv: command line to which ``sh`` is appended; the command must hand its standard input to ``sh``. Empty: a
            shell of this user.
        where: address for messages; default: the command line.
    """

    def __init__(self, name: str, argv: Sequence[str], where: str = "") -> None:
        self.name = name
        self._argv = [*argv, "sh"]
        self._where = where or " ".join(argv)
        self._alive = False

    @property
    def where(self) -> str:
        """Address of the machine for messages, or the command line."""
        return self._where

    @property
    def alive(self) -> bool:
        """True unless the connection is known to be lost."""
        return self._alive

    def connect(self) -> None:
        """Check that the command line opens a root shell; see `Shell`."""
        self._alive = True
        try:
            uid = self.script("id -u").stdout.strip()
        except MachineError as error:
            self._alive = False
            raise LabNotReadyError(
                f"{self.name} ({self.where}): no shell: {str(error).removeprefix(f'{self.name}: ')}"
            ) from error
        if uid != "0":
            self._alive = False
            raise LabNotReadyError(f"{self.name} ({self.where}): user {uid} is not root, and only root can shape")

    def script(
        self, text: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a script in a new root shell and wait for it; see `Shell`."""
        if not self._alive:
            raise MachineError(self.name, "not connected")
        full_script = f'{whole_script(text, arguments)}echo "{_END} $?"\n'
        try:
            run = subprocess.run(
                self._argv, input=full_script.encode(), capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            self._alive = False
            raise ConnectionLostError(
                self.name, f"no answer within {timeout_s:g} s", command=tuple(self._argv)
            ) from error
        except OSError as error:
            self._alive = False
            raise ConnectionLostError(self.name, f"cannot be run: {error}", command=tuple(self._argv)) from error
        output, errors = run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")
        end = re.search(rf"{_END} (\d+)\r?\n\Z", output)
        if end is None:
            self._alive = False
            raise ConnectionLostError(
                self.name,
                "the shell ended before the script did",
                command=tuple(self._argv),
                exit_code_found=run.returncode,
                stderr=errors or output,
            )
        result = CommandResult(int(end[1]), output[: end.start()], errors)
        return check_result(self.name, result, " ".join(self._argv)) if check else result

    def close(self) -> None:
        """Refuse further scripts until `connect`; no shell stays open between scripts."""
        self._alive = False


def quote(text: str) -> str:
    """Return `text` quoted as one word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"
