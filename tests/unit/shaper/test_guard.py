"""The dead-man's switch: the unchanged script `mplab-guard`, run by a shell of this machine."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.openwrt import guard as installed
from mplab.drivers.shaper.tc.guard import NOT_WRITABLE, SCRIPT
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.shell import CommandShell

_FULL = "No space left on device"
"""Message of busybox ash; dash reports an I/O error."""

Guard = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """Run the script with notes, init script and pid file of this test."""
    env = {
        **os.environ,
        "MPLAB_DIR": str(tmp_path / "notes"),
        "MPLAB_INIT": str(tmp_path / "init"),
        "MPLAB_PIDFILE": str(tmp_path / "pid"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", str(SCRIPT), *arguments], capture_output=True, text=True, env=env, check=False)

    return run


def make_init(folder: Path, start: str) -> None:
    """Write an init script whose action is `start`."""
    (folder / "init").write_text(f"#!/bin/sh\n{start}\n")
    (folder / "init").chmod(0o755)


def test_a_watch_that_has_died_is_started_again_by_the_next_heartbeat(guard: Guard, tmp_path: Path) -> None:
    assert guard("take", "me", "60").returncode == 0
    make_init(tmp_path, f"echo {os.getpid()} >{tmp_path / 'pid'}")
    (tmp_path / "pid").write_text("999999999\n")
    assert guard("beat", "me").stdout == "started again\n"
    assert guard("beat", "me").stdout == "", "it runs"


def test_a_watch_that_does_not_start_again_is_an_error(guard: Guard, tmp_path: Path) -> None:
    guard("take", "me", "60")
    make_init(tmp_path, "exit 1")
    result = guard("beat", "me")
    assert result.returncode == 5
    assert result.stderr == f"the dead-man's switch has died and does not start again: {tmp_path / 'init'} start\n"


def test_without_room_for_notes_nobody_is_said_to_hold_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    fill = f"mount -t tmpfs -o size=64k tmpfs {notes}; dd if=/dev/zero of={notes}/fill bs=4k 2>/dev/null"
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{fill}; echo ready; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as machine:
        assert machine.stdout is not None
        assert machine.stdout.readline() == "ready\n", "its namespaces exist, and the folder is full"
        enter = ["nsenter", "--target", str(machine.pid), "--user", "--mount", "--preserve-credentials"]
        shell = CommandShell("router wifi", enter)
        shell.connect()
        hold = Hold("router wifi", shell, f"{notes}/mplab", "run@host:1:1", dead_man_s=60, watches_itself=False)
        for _ in range(2):
            with pytest.raises(LabNotReadyError) as refused:
                hold.take()
            begin, _, end = str(refused.value).partition(" to: ")
            assert begin == f"router wifi: {notes}/mplab cannot be written"
            assert end in {f"{error}. Free some space there, then try again" for error in ("I/O error", _FULL)}
        shell.script(f"rm {notes}/fill")
        assert shell.script(f"ls {notes}/mplab/owner", check=False).exit_code != 0, "nobody holds it"
        machine.communicate()


def test_notes_that_can_be_written_are_no_problem_for_who_comes_second(guard: Guard) -> None:
    assert guard("take", "me", "60").returncode == 0
    second = guard("take", "other", "60")
    assert (second.returncode, second.stderr) == (3, "held by me\n")
    assert NOT_WRITABLE not in {0, 1, 3}


class Refusing:
    """An SSH connection to a router that lacks something."""

    name = "router wifi"

    def __init__(self, said: str = "", code: int = 0, stderr: str = "") -> None:
        self.said, self.code, self.stderr = said, code, stderr

    def script(self, _text: str, *_arguments: str) -> "Refusing":
        return self

    def run(self, _command: str, **_options: object) -> "Refusing":
        return self

    @property
    def stdout(self) -> str:
        return self.said

    @property
    def exit_code(self) -> int:
        return self.code


def test_a_router_without_md5sum_is_not_one_without_the_switch() -> None:
    with pytest.raises(LabNotReadyError, match="router wifi: no md5sum, with which mplab compares"):
        installed.show(Refusing("lacks=md5sum\nrunning=1\n"))  # type: ignore[arg-type]


def test_a_root_that_may_only_be_read_is_said_in_words() -> None:
    refusing = Refusing(code=1, stderr="sh: can't create /usr/sbin/mplab-guard.new: Read-only file system")
    with pytest.raises(LabNotReadyError) as refused:
        installed._write(refusing, "/usr/sbin/mplab-guard", "text")  # type: ignore[arg-type]
    assert str(refused.value) == "router wifi: /usr/sbin/mplab-guard could not be written: Read-only file system"
