"""A shell that a command line opens: its output, its exit code, and the message if it cannot be opened."""

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.tc.shell import CommandShell, ConnectionLostError, MachineError

AS_ROOT = ["unshare", "--user", "--map-root-user"]
"""A command line that passes on standard input and gives root's rights, as `su` does."""


@pytest.fixture
def shell() -> CommandShell:
    opened = CommandShell("phone one", AS_ROOT)
    opened.connect()
    return opened


def test_arguments_output_and_exit_code_come_through(shell: CommandShell) -> None:
    result = shell.script('echo "$1|$2"; echo bad >&2; return 77', "it's", "two words", check=False)
    assert (result.exit_code, result.stdout, result.stderr) == (77, "it's|two words\n", "bad\n")
    assert shell.script("printf 'no newline'").stdout == "no newline"


def test_a_script_that_fails(shell: CommandShell) -> None:
    with pytest.raises(MachineError, match=r"phone one: a command failed \(command: unshare .*exit code 3\): why"):
        shell.script("echo why >&2; return 3")
    assert shell.alive


def test_a_shell_that_ends_before_its_script_is_lost_even_with_exit_code_0(shell: CommandShell) -> None:
    with pytest.raises(ConnectionLostError, match="the shell ended before the script did"):
        shell.script("echo partly; exit 0")
    assert not shell.alive
    with pytest.raises(MachineError, match="not connected"):
        shell.script("true")
    shell.connect()
    assert shell.script("echo again").stdout == "again\n"


def test_no_answer_in_time(shell: CommandShell) -> None:
    with pytest.raises(ConnectionLostError, match=r"no answer within 0\.2 s"):
        shell.script("sleep 5", timeout_s=0.2)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["/no/such/adb", "shell"], r"phone one \(/no/such/adb shell\): no shell: cannot be run: .*No such file"),
        (["sh", "-c", "echo 'device not found' >&2; exit 1"], "no shell: the shell ended before .*device not found"),
        (["unshare", "--user"], "user 65534 is not root, and only root can shape"),
    ],
)
def test_what_is_no_root_shell_is_refused(argv: list[str], message: str) -> None:
    with pytest.raises(LabNotReadyError, match=message):
        CommandShell("phone one", argv).connect()
