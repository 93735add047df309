"""Only one run at a time uses a phone."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mplab.base import lock
from mplab.base.errors import LabNotReadyError
from mplab.base.lock import check_free, default_lock_directory, is_locked, machine, private_directory, resource_lock

HOLD = """
import sys, time
from pathlib import Path
from mplab.base.lock import is_locked, resource_lock
with resource_lock("phone-1", run_id="run-7", directory=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_elsewhere(directory: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(directory)], stdout=subprocess.PIPE, text=True, cwd=root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.stdout.close()
    return holder


def test_the_second_user_is_told_who_has_it(tmp_path: Path) -> None:
    holder = hold_elsewhere(tmp_path)
    try:
        with (
            pytest.raises(LabNotReadyError) as caught,
            resource_lock("phone-1", directory=tmp_path),
        ):
            pass
        assert f"phone-1 is in use by run run-7 (pid {holder.pid}) since 20" in str(caught.value)
    finally:
        holder.kill()
        holder.wait()


def test_a_machine_is_the_same_with_another_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = tmp_path / "machine-id"
    monkeypatch.setattr(lock, "_MACHINE_ID", number)

    def names() -> list[str]:
        found = []
        for host in ("one", "two"):
            monkeypatch.setattr(os, "uname", lambda host=host: SimpleNamespace(nodename=host))
            found.append(machine())
        return found

    without = names()
    assert without[0] != without[1], "a container without a machine-id"
    number.write_text("0123456789abcdef0123456789abcdef\n")
    first, second = names()
    assert first == second
    number.write_text("f123456789abcdef0123456789abcdef\n")
    assert names()[0] not in {first, *without}


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    holder = hold_elsewhere(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with resource_lock("phone-1", directory=tmp_path):
        lease = json.loads((tmp_path / "phone-1.lease.json").read_text(encoding="utf-8"))
    assert lease["pid"] == os.getpid()


def test_also_within_one_process(tmp_path: Path) -> None:
    with (
        resource_lock("phone-1", directory=tmp_path),
        pytest.raises(LabNotReadyError, match=rf"phone-1 is in use by a process \(pid {os.getpid()}\)"),
        resource_lock("phone-1", directory=tmp_path, wait_s=0.05),
    ):
        pass


def test_free_again_after_the_block_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the block"), resource_lock("phone-1", directory=tmp_path):
        raise RuntimeError("in the block")
    with resource_lock("phone-1", directory=tmp_path):
        assert (tmp_path / "phone-1.lease.json").exists()
    assert not (tmp_path / "phone-1.lease.json").exists()


def test_different_things_do_not_exclude_each_other(tmp_path: Path) -> None:
    with resource_lock("phone-1", directory=tmp_path), resource_lock("phone-2", directory=tmp_path):
        assert len(list(tmp_path.glob("*.lease.json"))) == 2


def test_any_serial_number_is_a_file_in_the_folder(tmp_path: Path) -> None:
    with resource_lock("../192.168.1.2:5555", directory=tmp_path / "locks"):
        assert all(path.parent == tmp_path / "locks" for path in tmp_path.rglob("*.lock"))


def test_a_lease_that_cannot_be_read_still_says_in_use(tmp_path: Path) -> None:
    with resource_lock("phone-1", directory=tmp_path):
        (tmp_path / "phone-1.lease.json").write_text("{", encoding="utf-8")
        with (
            pytest.raises(LabNotReadyError, match="phone-1 is in use: wait for it"),
            resource_lock("phone-1", directory=tmp_path),
        ):
            pass


def test_the_folder_is_private(tmp_path: Path) -> None:
    folder = private_directory(tmp_path / "new")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(LabNotReadyError, match="others may write to it: run 'chmod 700"):
        private_directory(folder)


def test_a_link_or_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(LabNotReadyError, match="not a link or file"):
        private_directory(tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(LabNotReadyError, match="cannot be made: File exists"):
        private_directory(tmp_path / "file")


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(LabNotReadyError, match="belongs to user"):
        private_directory(tmp_path)


def test_where_locks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_lock_directory() == tmp_path / "mplab"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_lock_directory().name == "mplab-1000"
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    assert default_lock_directory() == Path("/run/lock/mplab")


def test_whether_somebody_holds_a_lock_can_be_asked(tmp_path: Path) -> None:
    assert not is_locked("phone-1", directory=tmp_path / "locks")
    with resource_lock("phone-1", directory=tmp_path / "locks"):
        assert is_locked("phone-1", directory=tmp_path / "locks")
    assert not is_locked("phone-1", directory=tmp_path / "locks")


def test_nothing_is_left_of_a_lock_that_is_free(tmp_path: Path) -> None:
    with resource_lock("run-1", directory=tmp_path):
        assert is_locked("run-1", directory=tmp_path)
    assert not is_locked("run-1", directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not is_locked("run-1", directory=tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_the_rest_of_a_killed_holder_goes_with_the_next_one(tmp_path: Path) -> None:
    holder = hold_elsewhere(tmp_path)
    holder.kill()
    holder.wait()
    assert not is_locked("phone-1", directory=tmp_path)
    with resource_lock("phone-1", directory=tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_whoever_looks_keeps_nobody_from_the_lock(tmp_path: Path) -> None:
    (tmp_path / "phone-1.lock").touch()
    end = threading.Event()

    def look() -> None:
        while not end.is_set():
            is_locked("phone-1", directory=tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(100):
            with resource_lock("phone-1", directory=tmp_path):
                time.sleep(0.001)
    finally:
        end.set()
        for looker in lookers:
            looker.join()


def test_one_at_a_time_although_the_file_is_removed_each_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def use() -> None:
        for number in range(50):
            with resource_lock("phone-1", directory=tmp_path, wait_s=60):
                inside.append(number)
                most.append(len(inside))
                inside.pop()

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert most == [1] * 200


def test_what_somebody_holds_can_be_told_before_anything_is_begun(tmp_path: Path) -> None:
    check_free(["phone-1", "phone-2"], directory=tmp_path)
    with (
        resource_lock("phone-2", run_id="run-7", directory=tmp_path),
        pytest.raises(LabNotReadyError, match=r"phone-2 is in use by run run-7"),
    ):
        check_free(["phone-1", "phone-2"], directory=tmp_path)
