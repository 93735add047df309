"""Only one run holds a machine, whatever name it uses; with a real shell in its own network."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.undo import UndoStack
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.guard import KERNEL_DEVICE
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.shell import CommandShell, MachineError

_READY = "mount -t sysfs sysfs /sys && echo ready && exec cat"


@pytest.fixture
def shell() -> Iterator[CommandShell]:
    """A root shell on a machine with ifb devices; the machine ends with the test."""
    argv = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", _READY]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as machine:
        assert machine.stdout is not None
        assert machine.stdout.readline() == "ready\n"
        enter = ["nsenter", "--target", str(machine.pid), "--user", "--net", "--mount", "--preserve-credentials"]
        opened = CommandShell("router wifi", enter)
        opened.connect()
        if opened.script("ip link add name try type ifb && ip link del try", check=False).exit_code != 0:
            pytest.skip("no ifb: it needs the module ifb of the kernel")
        yield opened
        machine.communicate()


def hold_on(shell: CommandShell, folder: Path, name: str, run_id: str) -> Hold:
    notes, owner = str(folder / name.replace(" ", "-")), Owner(UndoStack(), run_id).token()
    return Hold(name, shell, notes, owner, dead_man_s=600, watches_itself=False)


def devices(shell: CommandShell) -> str:
    return shell.script("ls /sys/class/net").stdout


def test_a_machine_is_held_once_whatever_it_is_called(shell: CommandShell, tmp_path: Path) -> None:
    router, server = hold_on(shell, tmp_path, "router wifi", "a"), hold_on(shell, tmp_path, "server proxy", "b")
    router.take()
    for _ in range(2):
        with pytest.raises(LabNotReadyError) as refused:
            server.take()
        held_by = f"held by {router.owner}, as router wifi: wait for it, or run 'mplab router restore'"
        assert str(refused.value) == f"server proxy: {held_by}"
    assert not (tmp_path / "server-proxy").exists(), "nothing is noted by who does not hold it"
    assert router.change("echo still ours", "a change") == "still ours\n"
    router.give_back()
    assert KERNEL_DEVICE not in devices(shell)
    server.take()
    router.give_back()
    assert KERNEL_DEVICE in devices(shell), "it is the server's now"
    server.give_back()
    assert KERNEL_DEVICE not in devices(shell)


def test_one_run_that_calls_a_machine_by_two_names(shell: CommandShell, tmp_path: Path) -> None:
    hold_on(shell, tmp_path, "server proxy", "a").take()
    message = "router wifi: held by this run already, as server proxy: one machine needs one entry in the lab file"
    with pytest.raises(LabNotReadyError, match=message):
        hold_on(shell, tmp_path, "router wifi", "a").take()


def test_by_one_name_it_is_the_notes_that_say_who_holds_it(shell: CommandShell, tmp_path: Path) -> None:
    first, second = (hold_on(shell, tmp_path, "router wifi", run_id) for run_id in "ab")
    first.take()
    with pytest.raises(LabNotReadyError, match=r"router wifi: held by a@.*, last heard \d+ s ago: wait for it"):
        second.take()
    with pytest.raises(MachineError):
        second.change("true", "a change of who does not hold it")


def test_what_a_silent_owner_left_is_taken_over(shell: CommandShell, tmp_path: Path) -> None:
    silent, next_run = (hold_on(shell, tmp_path, "router wifi", run_id) for run_id in "ab")
    silent.take()
    (tmp_path / "router-wifi" / "limit").write_text("-1\n")
    next_run.take()
    assert next_run.change(f"cat /sys/class/net/{KERNEL_DEVICE}/ifalias", "a look") == f"{next_run.owner} router wifi\n"
    next_run.give_back()
    assert KERNEL_DEVICE not in devices(shell)


def test_what_was_given_back_by_itself_is_known_to_be_lost_when_that_was_seen(
    shell: CommandShell, tmp_path: Path
) -> None:
    held = hold_on(shell, tmp_path, "router wifi", "a")
    held.take()
    held.check_alive()
    before = held.seems_lost
    shutil.rmtree(tmp_path / "router-wifi")
    for _ in range(2):
        with pytest.raises(MachineError, match="router wifi: has removed all shaping itself"):
            held.check_alive()
    assert (before, held.seems_lost) == (False, True)
    held.stop_beating()
